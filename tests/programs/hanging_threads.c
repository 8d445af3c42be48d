/*
 * hanging_threads.c - a daemon in which every thread hangs: one holds the lock of its malloc,
 * two those of the loader, one that of stderr, and the loop waits for the first.
 *
 * Says "all stuck" when they do.  With STUCK_OWN_SIGNALS=1 it has handlers for QUIT and
 * USR2 of its own.  Used by tests/threads/hanging_daemon.t.
 */
#include <config.h>

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <component/component.h>

/* The library's calls must meet them, too. */
#define SEEN __attribute__((visibility("default")))

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *p, size_t size);
extern void  __libc_free(void *p);

static pthread_mutex_t memory = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool     closed; /* whoever allocates from now on waits for ever */

static void
pass(void)
{
	if (!closed)
		return;
	pthread_mutex_lock(&memory);
	pthread_mutex_unlock(&memory);
}

SEEN void *
malloc(size_t size)
{
	pass();
	return __libc_malloc(size);
}

SEEN void *
calloc(size_t count, size_t size)
{
	pass();
	return __libc_calloc(count, size);
}

SEEN void *
realloc(void *p, size_t size)
{
	pass();
	return __libc_realloc(p, size);
}

SEEN void
free(void *p)
{
	if (p)
		pass();
	__libc_free(p);
}

static atomic_int held;

static void
hang(void)
{
	held++;
	for (;;)
		pause();
}

static void *
holds_malloc(void *arg)
{
	pthread_mutex_lock(&memory);
	hang();
	return arg;
}

static int
on_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)info, (void)size, (void)arg;
	hang();
	return 0;
}

static void *
holds_object_list(void *arg)
{
	dl_iterate_phdr(on_object, NULL);
	return arg;
}

static void *
holds_loader(void *arg)
{
	held++;
	dlopen(getenv("STUCK_PLUGIN"), RTLD_NOW);
	return arg;
}

static void *
holds_stderr(void *arg)
{
	flockfile(stderr);
	hang();
	return arg;
}

/* In the loop. */
static void
stick(struct component *c, void *arg)
{
	static void *(*const how[])(void *) = { holds_malloc, holds_stderr, holds_loader, holds_object_list };
	static const char text[] = "all stuck\n";
	struct timespec   tick = { 0, 1000000 };
	pthread_t         thread;

	(void)c, (void)arg;
	for (int i = 0; i < 4; i++) {
		if (pthread_create(&thread, NULL, how[i], NULL))
			_exit(3);
		while (held <= i)
			nanosleep(&tick, NULL);
	}
	tick.tv_nsec = 100000000; /* dlopen on its way to the constructor */
	nanosleep(&tick, NULL);
	closed = true;
	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		_exit(3);
	free(malloc(1)); /* never comes back */
}

static void
on_own(int number)
{
	static const char text[] = "own handler\n";

	(void)number;
	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		_exit(3);
}

static int
start(struct component *c, struct component_error *err)
{
	(void)err;
	return component_timer_add(c, 0, 0, stick, NULL, NULL);
}

int
main(int argc, char **argv)
{
	static const struct component_spec spec = COMPONENT_SPEC(
		.name = "hanging_threads", .summary = "Hangs in all its threads.", .version = "0", .start = start);

	if (getenv("STUCK_OWN_SIGNALS")) {
		signal(SIGQUIT, on_own);
		signal(SIGUSR2, on_own);
	}
	return component_main(&spec, argc, argv);
}
