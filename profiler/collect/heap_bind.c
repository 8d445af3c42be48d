/*
 * heap_bind.c - proves that the hooks are in charge, and chooses how to work.
 *
 *     no hooks linked, a static program, another copy of us has
 *     them, a name that is not ours,
 *     a call that does not arrive                             -> nothing, and why
 *     glibc behind us, address space to spare                 -> range
 *     another allocator, a sanitizer, locked or scarce memory -> set
 *
 * What a stranger would get wrong:
 * - A symbol that resolves to us is not proof enough: tools that translate code
 *   (valgrind, asked to) put their own in the place of ours.  So each function is called once and must
 *   be seen to arrive.
 * - Half of the family is worse than nothing: with malloc ours and free another's,
 *   that free gets blocks it does not know.  All or none.
 * - Reserved address space is not free everywhere.  mlockall(MCL_FUTURE) counts it
 *   as locked, RLIMIT_AS as used; and a program that raised RLIMIT_MEMLOCK
 *   means to call mlockall later, which would fail for our range.
 * - A foreign allocator has more doors than the family: jemalloc's sdallocx() or
 *   tcmalloc's tc_free() must never see a block of ours.  And what checks blocks
 *   (a sanitizer, valgrind) must have made them.
 *
 * Tests: tests/hooks.t, tests/heap_guest.t.
 */
#include <config.h>

#include "heap_bind.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "heap_lock.h"
#include "heap_operators.h"
#include "heap_range.h"
#include "heap_set.h"
#include "hooks.h"
#include "hooks_owner.h"
#include "hooks_object.h"
#include "own_fd.h"

/* Above every distribution's default: somebody chose it, and means to lock. */
#define MEMLOCK_CHOSEN_BYTES ((rlim_t)64 << 20)

#define STATIC_STATUS "heap sampling is off: the program is linked with -static, where malloc cannot be hooked"

/* Not there in a static program. */
#pragma weak _DYNAMIC

static enum heap_mode mode;
static bool           decided;
static char           status[512];

static void __attribute__((format(printf, 1, 2)))
say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(status, sizeof(status), format, args);
	va_end(args);
}

static const char *
object_name(const void *symbol)
{
	Dl_info info;

	if (!symbol || !dladdr(symbol, &info) || !info.dli_fname || !info.dli_fname[0])
		return "another object";
	return info.dli_fname;
}

/* Does every name lead to our hook, wherever it is called from? */
static bool
names_are_ours(void)
{
	static const int names[] = { HOOKS_malloc, HOOKS_calloc, HOOKS_realloc, HOOKS_free };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *name = component_hooks.names[names[i]];
		void       *symbol = dlsym(RTLD_DEFAULT, name);

		if (symbol == component_hooks.own[names[i]] || hooks_is_plt_entry(symbol))
			continue; /* where a PLT entry leads, calls_arrive() shows */
		say("heap sampling is off: %s() belongs to %s; load libcomponent's hooks before it, or do without it",
			name, object_name(symbol));
		return false;
	}
	return true;
}

static int
probe_begin(struct hooks_call *c)
{
	c->thread->unused++;
	return HOOKS_PASS;
}

static int
probe_reallocate(struct hooks_call *c)
{
	return probe_begin(c);
}

/* Volatile: a compiler may leave out malloc() and free() in a pair. */
static void *(*volatile call_malloc)(size_t) = malloc;
static void *(*volatile call_calloc)(size_t, size_t) = calloc;
static void *(*volatile call_realloc)(void *, size_t) = realloc;
static void (*volatile call_free)(void *) = free;

/* Do calls arrive?  Other threads that allocate meanwhile are asked and passed on. */
static bool
calls_arrive(void)
{
	struct hooks_thread *t = component_hooks.thread();
	void                *a, *b;

	component_hooks.begin = probe_begin;
	component_hooks.reallocate = probe_reallocate;
	t->unused = 0;
	t->rate = 0;
	hooks_set_heap_state(HOOKS_ON);
	t->left = -1;
	a = call_malloc(1);
	t->left = -1;
	b = call_calloc(1, 1);
	t->left = -1;
	a = call_realloc(a, 2);
	if (a && b)
		heap_operators_probe(t);
	hooks_set_heap_state(HOOKS_OFF);
	call_free(a);
	call_free(b);
	t->left = -1;
	if (t->unused >= 3)
		return true;
	say("heap sampling is off: calls of malloc() do not reach libcomponent's hooks; "
	    "another tool has taken its place");
	return false;
}

/* Kilobytes of locked memory from /proc/self/status; 0 where it cannot be read. */
static unsigned long
locked_kb(void)
{
	char          text[8192], *at;
	ssize_t       n;
	int           fd = own_fd_open("/proc/thread-self/status", O_RDONLY, 0);

	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	own_fd_close(fd);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	at = strstr(text, "\nVmLck:");
	return at ? strtoul(at + 7, NULL, 10) : 0;
}

/* Does a mapping made now count as locked? */
static bool
memory_is_locked(void)
{
	unsigned long before = locked_kb();
	size_t        size = (size_t)1 << 20;
	void         *mem = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	bool          locked = mem == MAP_FAILED || locked_kb() > before;

	if (mem != MAP_FAILED)
		munmap(mem, size);
	return locked;
}

static size_t
address_space_used(void)
{
	char          text[64];
	ssize_t       n;
	int           fd = own_fd_open("/proc/thread-self/statm", O_RDONLY, 0);

	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	own_fd_close(fd);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	return strtoul(text, NULL, 10) * (size_t)getpagesize();
}

static int
is_valgrind(struct dl_phdr_info *info, size_t size, void *arg)
{
	const char *name = info->dlpi_name ? strstr(info->dlpi_name, "/vgpreload_") : NULL;

	(void)size;
	(void)arg;
	/* Every tool brings "core"; those that watch malloc one more of their own. */
	return name && strncmp(name, "/vgpreload_core", strlen("/vgpreload_core")) != 0;
}

/* How much to reserve, 0 for nothing, and then why. */
static size_t
range_bytes(const char **ret_why)
{
	struct rlimit limit;
	size_t        bytes = HEAP_RANGE_MAX, used;

	*ret_why = "";
	if (!component_hooks.next_is_libc)
		*ret_why = "the next allocator is not glibc's";
	else if (dl_iterate_phdr(is_valgrind, NULL))
		*ret_why = "valgrind watches the blocks of malloc";
	else if (memory_is_locked())
		*ret_why = "memory is locked (mlockall)";
	else if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
		limit.rlim_cur > MEMLOCK_CHOSEN_BYTES)
		*ret_why = "RLIMIT_MEMLOCK is raised but not unlimited";
	if (**ret_why)
		return 0;
	if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
		used = address_space_used();
		bytes = limit.rlim_cur > used ? (limit.rlim_cur - used) / 4 : 0;
		if (bytes > HEAP_RANGE_MAX)
			bytes = HEAP_RANGE_MAX;
	}
	if (bytes < HEAP_RANGE_MIN) {
		*ret_why = "RLIMIT_AS leaves no address space";
		return 0;
	}
	return bytes;
}

static enum heap_mode
mode_choose(void)
{
	const char *why;
	size_t      bytes = range_bytes(&why);

	if (bytes && heap_range_reserve(bytes) == 0)
		return HEAP_RANGE;
	if (bytes)
		why = "address space could not be reserved";
	if (heap_set_init() < 0) {
		say("heap sampling is off: no memory for its tables");
		return HEAP_NONE;
	}
	say("heap sampling keeps addresses in a table, which makes free() slower: %s%s%s", why,
		component_hooks.next_is_libc ? "" : ": ",
		component_hooks.next_is_libc ? "" : object_name(component_hooks.next[HOOKS_malloc]));
	return HEAP_SET;
}

enum heap_mode
heap_bind(void)
{
	size_t used;

	if (decided)
		return mode;
	decided = true;
	if (!&component_hooks && !_DYNAMIC) {
		say(STATIC_STATUS);
		return mode;
	}
	if (!&component_hooks) {
		say("heap sampling is off: the program is not linked with -lcomponent_hooks "
		    "(pkg-config --libs libcomponent) nor started with libcomponent-preload.so");
		return mode;
	}
	if (component_hooks.kind == HOOKS_STATIC_STUB) {
		say(STATIC_STATUS);
		return mode;
	}
	if (!HOOKS_HAVE(outranked)) {
		say("heap sampling is off: the hooks linked into the program are of another version");
		return mode;
	}
	if (!hooks_claim()) {
		say("heap sampling is off: another copy of libcomponent in this process has the hooks: %s",
			object_name(component_hooks.owner));
		return mode;
	}
	component_hooks.resolve();
	if (!names_are_ours() || !calls_arrive())
		return mode;
	if (heap_lock_init() < 0) {
		say("heap sampling is off: no memory for its lock");
		return mode;
	}
	mode = mode_choose();
	used = strlen(status);
	if (component_hooks.second_copy && used < sizeof(status))
		snprintf(status + used, sizeof(status) - used,
			"%sa second copy of libcomponent's hooks is loaded and stands aside", used ? "; " : "");
	return mode;
}

enum heap_mode
heap_mode(void)
{
	return mode;
}

const char *
heap_bind_status(void)
{
	return status;
}
