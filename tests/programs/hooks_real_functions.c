/*
 * hooks_real_functions.c - are the functions behind the hooks those that the loader would give?
 *
 * A program linked with the hooks; prints a line for each name: "same", "made" (by the
 * hooks, where there is none or it is another allocator's), "none", or "other" with both.
 * With -DODD it is a library that has functions of those names in ways that are
 * hard to find: by an indirect function, in two versions, hidden.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#ifdef ODD
#define PUBLIC __attribute__((visibility("default")))

static int
poll_chosen(void *fds, unsigned long count, int timeout)
{
	(void)fds;
	(void)count;
	return timeout;
}

static void *
poll_resolver(void)
{
	return (void *)poll_chosen;
}

PUBLIC int poll(void *fds, unsigned long count, int timeout) __attribute__((ifunc("poll_resolver")));

PUBLIC long
old_fsync(int fd)
{
	return fd;
}

PUBLIC long
new_fsync(int fd)
{
	return fd + 1;
}
__asm__(".symver old_fsync, fsync@ODD_1");
__asm__(".symver new_fsync, fsync@@ODD_2");

PUBLIC long
old_fdatasync(int fd)
{
	return fd;
}
__asm__(".symver old_fdatasync, fdatasync@ODD_1"); /* and none for today */

__attribute__((visibility("hidden"))) long
nanosleep(const void *a, void *b)
{
	return a == b;
}

PUBLIC void *
odd_expected(const char *name)
{
	return strcmp(name, "poll") == 0 ? (void *)poll_chosen : strcmp(name, "fsync") == 0 ? (void *)new_fsync : NULL;
}
#else
#include <link.h>

#include "abi.h"

void *odd_expected(const char *name) __attribute__((weak));

static void *
loaders(int i)
{
	const char *name = component_hooks.names[i];
	void       *odd = odd_expected ? odd_expected(name) : NULL;

	if (odd)
		return odd;
#ifdef HOOKS_COND_OLD_VERSION
	/* Many releases of dlsym() find the oldest. */
	if (i == HOOKS_pthread_cond_wait_2_2_5 || i == HOOKS_pthread_cond_wait)
		return dlvsym(RTLD_NEXT, "pthread_cond_wait", i == HOOKS_pthread_cond_wait ? HOOKS_COND_VERSION : HOOKS_COND_OLD_VERSION);
	if (i == HOOKS_pthread_cond_timedwait_2_2_5 || i == HOOKS_pthread_cond_timedwait)
		return dlvsym(RTLD_NEXT, "pthread_cond_timedwait",
			i == HOOKS_pthread_cond_timedwait ? HOOKS_COND_VERSION : HOOKS_COND_OLD_VERSION);
#endif
	if (odd_expected && strcmp(name, "fdatasync") == 0)
		return dlsym(dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD), name);
	return dlsym(RTLD_NEXT, name);
}

static const void *
object_of(void *address)
{
	Dl_info info;

	return dladdr(address, &info) ? info.dli_fbase : NULL;
}

int
main(void)
{
	const void *own = object_of((void *)main);

	component_hooks.resolve();
	for (int i = 0; i < HOOKS_NAME_COUNT; i++) {
		void *next = component_hooks.next[i], *loader = loaders(i);

		if (next == loader)
			printf("%s %s\n", component_hooks.names[i], next ? "same" : "none");
		else if (next && object_of(next) == own)
			printf("%s made\n", component_hooks.names[i]);
		else
			printf("%s other: %p, of the loader %p\n", component_hooks.names[i], next, loader);
	}
	printf("libc %u\n", component_hooks.next_is_libc);
	return 0;
}
#endif
