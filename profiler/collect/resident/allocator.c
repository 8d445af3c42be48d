/*
 * allocator.c - asks the program's allocator, on a thread that may be left behind.
 *
 *     a job ── allocator_ask() ──▶ "component-alloc": malloc_info(), mallctl(), ...
 *        waits 1 s at most              may wait for a lock for ever
 *
 * Each allocator is known by a function that it alone has, found by a weak reference: the loader
 * binds it when the program starts, and nothing is looked up where somebody holds a lock.
 *
 * What a stranger would get wrong:
 * - A thread may hold an arena's lock for ever, as one that a fault in malloc() has led into a handler
 *   which waits.  The table comes without these figures then, and says so.
 * - The answer is written where no reader looks, and handed over under the lock.
 *
 * Tests: tests/memory/memory.t.
 */
#include <config.h>

#include "allocator.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "fork.h"
#include "our_thread.h"

/* jemalloc */
int mallctl(const char *name, void *old, size_t *old_size, void *new, size_t new_size) __attribute__((weak));
/* tcmalloc */
int MallocExtension_GetNumericProperty(const char *name, size_t *ret) __attribute__((weak));
/* mimalloc */
void mi_process_info(size_t *elapsed_ms, size_t *user_ms, size_t *system_ms, size_t *rss, size_t *peak_rss,
	size_t *commit, size_t *peak_commit, size_t *faults) __attribute__((weak));
/* AddressSanitizer and its kin */
size_t __sanitizer_get_heap_size(void) __attribute__((weak));
size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

static size_t
jemalloc_number(const char *name)
{
	size_t n = 0, size = sizeof(n);

	return mallctl(name, &n, &size, NULL, 0) ? 0 : n;
}

static bool
jemalloc_ask(struct allocator *ret)
{
	uint64_t epoch = 1;
	size_t   size = sizeof(epoch);

	if (!mallctl || mallctl("epoch", &epoch, &size, &epoch, size))
		return false;
	ret->in_use = jemalloc_number("stats.allocated");
	ret->resident = jemalloc_number("stats.resident");
	ret->free = ret->resident > ret->in_use ? ret->resident - ret->in_use : 0;
	return true;
}

static size_t
tcmalloc_number(const char *name)
{
	size_t n = 0;

	return MallocExtension_GetNumericProperty(name, &n) ? n : 0;
}

static bool
tcmalloc_ask(struct allocator *ret)
{
	size_t heap, unmapped;

	if (!MallocExtension_GetNumericProperty)
		return false;
	heap = tcmalloc_number("generic.heap_size");
	unmapped = tcmalloc_number("tcmalloc.pageheap_unmapped_bytes");
	ret->in_use = tcmalloc_number("generic.current_allocated_bytes");
	ret->resident = heap > unmapped ? heap - unmapped : 0;
	ret->free = ret->resident > ret->in_use ? ret->resident - ret->in_use : 0;
	return true;
}

/* It tells what it has committed, and no more. */
static bool
mimalloc_ask(struct allocator *ret)
{
	size_t unused, commit = 0;

	if (!mi_process_info)
		return false;
	mi_process_info(&unused, &unused, &unused, &unused, &unused, &commit, &unused, &unused);
	ret->resident = commit;
	return true;
}

static bool
sanitizer_ask(struct allocator *ret)
{
	if (!__sanitizer_get_heap_size || !__sanitizer_get_current_allocated_bytes)
		return false;
	ret->resident = __sanitizer_get_heap_size();
	ret->in_use = __sanitizer_get_current_allocated_bytes();
	ret->free = ret->resident > ret->in_use ? ret->resident - ret->in_use : 0;
	return true;
}

/* The first that is there: glibc's is in every program, used or not. */
static bool (*const known[])(struct allocator *) = { sanitizer_ask, jemalloc_ask, tcmalloc_ask, mimalloc_ask,
	malloc_info_ask };

/* Who it is, without asking; as good as an answer says. */
static const char *
name(void)
{
	return __sanitizer_get_heap_size          ? "the sanitizer's allocator" :
	       mallctl                            ? "jemalloc" :
	       MallocExtension_GetNumericProperty ? "tcmalloc" :
	       mi_process_info                    ? "mimalloc" :
	       malloc_info_is_there()             ? "glibc" :
						    "";
}

const void *
allocator_code(void)
{
	return mallctl ? (const void *)mallctl : MallocExtension_GetNumericProperty ?
	       (const void *)MallocExtension_GetNumericProperty : (const void *)mi_process_info;
}

static struct {
	pthread_mutex_t  lock;
	pthread_cond_t   changed;
	bool             asking, there; /* a thread is under way; answer is one that nobody is writing */
	unsigned         turn;          /* answers so far */
	int64_t          until_ns;      /* who asks waits so long */
	struct allocator writing, answer;
} state = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void *
run(void *arg)
{
	(void)arg;
	memset(&state.writing, 0, sizeof(state.writing));
	state.writing.name = name();
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i](&state.writing))
			break;
	pthread_mutex_lock(&state.lock);
	state.answer = state.writing;
	state.asking = false;
	state.turn++;
	pthread_cond_broadcast(&state.changed);
	pthread_mutex_unlock(&state.lock);
	return NULL;
}

static void
changed_init(void)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&state.changed, &attr);
	pthread_condattr_destroy(&attr);
	state.there = true;
}

/* Who comes while a thread is under way for another waits for the same answer.  The lock is not held
 * while a thread is made, which allocates. */
static int
begin(void)
{
	pthread_t thread;
	int       r;

	if (!state.there)
		changed_init();
	if (state.asking)
		return 0;
	state.asking = true;
	state.until_ns = clock_ns(CLOCK_MONOTONIC) + ALLOCATOR_WAIT_S * INT64_C(1000000000);
	pthread_mutex_unlock(&state.lock);
	r = our_thread_start("component-alloc", run, NULL, &thread);
	if (!r)
		pthread_detach(thread);
	pthread_mutex_lock(&state.lock);
	if (r)
		state.asking = false;
	return r;
}

int
allocator_ask(struct allocator *ret)
{
	struct timespec until;
	unsigned        turn;
	int             r, waited = 0;

	pthread_mutex_lock(&state.lock);
	turn = state.turn;
	r = begin();
	until = clock_timespec(state.until_ns);
	while (!r && state.turn == turn && !waited)
		waited = pthread_cond_timedwait(&state.changed, &state.lock, &until);
	if (!r && state.turn == turn)
		r = -EBUSY;
	if (r)
		*ret = (struct allocator){ .name = name() };
	else
		*ret = state.answer;
	pthread_mutex_unlock(&state.lock);
	return r;
}

void
allocator_prepare(void)
{
	if (!strcmp(name(), "glibc"))
		malloc_info_prepare();
}

/* That thread is none of the child's. */
static void
fork_child(void)
{
	static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

	state.lock = fresh;
	state.asking = state.there = false;
}

FORK_SLOT(FORK_ALLOCATOR, NULL, NULL, fork_child);
