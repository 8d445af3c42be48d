/*
 * heap.c - the heap sampler: what the hooks ask, and what switches it.
 *
 * A hook that has used up its thread's countdown asks begin(): is this allocation
 * a sample?  If so its stack is taken and interned, the next allocator makes the block as it
 * makes any other, and its address is noted (heap/set.c).  Counts are kept by site
 * (heap/site.c), which is found by a walk or without one (heap/trails.c), and read by heap/profile.c.
 *
 *     hook ─ begin() ─ decide ─ site ─ RECORD ─ next malloc ─ record(block)
 *     hook ─ filter ─ release() ── found: counted as freed ── next free
 *
 * What a stranger would get wrong:
 * - `busy` in the thread's part is raised for as long as we are in here: what
 *   allocates meanwhile (a signal handler of the daemon, a fork handler) is passed
 *   on unsampled and counted as lost.  It is down again before anything of the
 *   daemon's is called, so that an exception may leave the next operator new.
 * - A realloc is a new allocation and the end of the old one, also in place: only
 *   then a live block of n bytes is a sample with the probability for n.
 * - Every function leaves errno alone unless it fails an allocation.
 * - Threads of our own are asked about in begin() and never sampled.
 *
 * Why not scale sums by their mean size when writing, as Go does: with blocks of
 * mixed sizes at one site, or a rate that changed, that is biased; a weight for
 * each sample is not.
 * Tests: tests/heap/test_accuracy.c, tests/heap/test_heap.c, tests/heap/limited_process.t.
 */
#include <config.h>

#include "heap.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

#include "abi.h"
#include "bind.h"
#include "clock.h"
#include "fork.h"
#include "hidden_frames.h"
#include "hot.h"
#include "labels/thread.h"
#include "lock.h"
#include "our_thread.h"
#include "rate.h"
#include "set.h"
#include "site.h"
#include "stack_table.h"
#include "trails.h"
#include "unwind.h"

#define OUR_THREAD_GAP  65536 /* bytes until one of our threads asks again */
#define RATE_DEFAULT    524288 /* bytes; Go's MemProfileRate */

struct heap_hot heap_hot;
static _Atomic uint64_t seed;
static _Atomic uint64_t threads_seeded;
static _Atomic uint64_t lost;
static _Atomic uint64_t taken;
static _Atomic uint64_t truncated;
static _Atomic int64_t  since_ns; /* what was counted then is counted for good */
static _Atomic bool     resumed;
static _Atomic uint64_t last_rate = RATE_DEFAULT; /* the period that is shown while off */
static _Atomic bool     forked;
static _Atomic bool     connected; /* the hooks call us */
static _Thread_local bool fork_held __attribute__((tls_model("initial-exec"))); /* since fork_prepare() */
static pthread_mutex_t  control = PTHREAD_MUTEX_INITIALIZER;

/* ---- one allocation ---- */

static bool
enter(struct hooks_thread *t)
{
	if (t->busy) {
		atomic_fetch_add_explicit(&lost, 1, memory_order_relaxed);
		return false;
	}
	t->busy = 1;
	atomic_signal_fence(memory_order_seq_cst);
	return true;
}

static void
leave(struct hooks_thread *t)
{
	atomic_signal_fence(memory_order_seq_cst);
	t->busy = 0;
}

static __attribute__((noinline, cold)) void
thread_seed(struct hooks_thread *t)
{
	uint64_t x = atomic_load(&seed) + 0x9e3779b97f4a7c15ULL * (1 + atomic_fetch_add(&threads_seeded, 1));

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	t->random = (x ^ x >> 31) | 1;
}

/* Is an allocation, already taken off the countdown, a sample?  The rate that it was drawn with then. */
static bool
decide(struct hooks_thread *t, size_t size, uint64_t *ret_rate)
{
	uint64_t now = atomic_load_explicit(&heap_hot.rate, memory_order_relaxed);

	if (t->random == 0)
		thread_seed(t);
	if (t->rate == 0) { /* the first gap of this thread */
		t->rate = now;
		t->left = heap_gap(now, &t->random) - (int64_t)size;
		if (t->left >= 0)
			return false;
	}
	*ret_rate = t->rate;
	t->rate = now;
	t->left = heap_gap(now, &t->random);
	return true;
}

/* The weight, and the site or references of the stack and labels.  What was sampled before has a site: then
 * the stack table is not asked. */
static __attribute__((noinline)) void
walk(const struct unwind_regs *regs, uint32_t labels, uint64_t drawn_with, struct heap_block *ret)
{
	uintptr_t pcs[STACK_FRAMES_MAX];
	unsigned  walked, count;
	int       cut = 0;

	walked = unwind_capture(regs, pcs, STACK_FRAMES_MAX, &cut);
	count = hidden_frames_drop(pcs, walked);
	ret->weight = heap_weight(ret->size, drawn_with);
	if (cut)
		atomic_fetch_add_explicit(&truncated, 1, memory_order_relaxed);
	ret->site = heap_site_find(pcs, count, labels, ret->size);
	ret->stack = ret->site ? 0 : stack_table_add(pcs, count);
	ret->labels = ret->site ? 0 : labels_here();
	/* After a change of the rate each thread draws one more sample with the old one.  A place for that
	 * would drive out one of the new rate. */
	if (ret->site && !cut && count == walked && drawn_with == heap_rate())
		heap_trails_add(regs, pcs, count, labels, drawn_with, ret);
}

/* The same without a walk, where that has led to this site before. */
static void
stack_of(const struct hooks_call *c, uint64_t drawn_with, struct heap_block *ret)
{
	struct unwind_regs regs = { .pc = c->pc, .sp = c->sp, .fp = c->fp };
	uint32_t           labels = labels_peek();

	atomic_fetch_add_explicit(&taken, 1, memory_order_relaxed);
	ret->stack = ret->labels = 0;
	if (!heap_trails_find(&regs, labels, drawn_with, ret))
		walk(&regs, labels, drawn_with, ret);
}

static __attribute__((noinline, cold)) void
give_back(const struct heap_block *b)
{
	if (b->site == 0) {
		stack_table_unref(b->stack);
		labels_unref(b->labels);
	}
}

static __attribute__((noinline, cold)) void
give_up(const struct heap_block *b)
{
	give_back(b);
	atomic_fetch_add_explicit(&lost, 1, memory_order_relaxed);
}

/* A sample's block with its stack and weight; false: pass. */
static __attribute__((hot)) bool
sample(struct hooks_call *c, struct heap_block *ret)
{
	struct hooks_thread *t = c->thread;
	uint64_t             drawn_with;

	if (our_thread_is()) {
		t->left = OUR_THREAD_GAP;
		t->rate = 0;
		return false;
	}
	if (heap_fork_look())
		return false;
	if (c->size > PTRDIFF_MAX) {
		t->rate = 0; /* such a size has left nonsense in the countdown */
		t->left = -1;
		return false;
	}
	if (!decide(t, c->size, &drawn_with))
		return false;
	ret->size = c->size;
	stack_of(c, drawn_with, ret);
	return true;
}

static __attribute__((hot)) int
on_begin(struct hooks_call *c)
{
	struct heap_block b;
	int               answer = HOOKS_PASS;

	if ((c->align & (c->align - 1)) != 0 || !enter(c->thread))
		return HOOKS_PASS; /* a bad alignment is the next one's to judge */
	if (sample(c, &b)) {
		c->stack = b.stack;
		c->weight = b.weight;
		c->reserved[0] = b.labels;
		c->reserved[1] = b.site;
		answer = HOOKS_RECORD;
	}
	leave(c->thread);
	return answer;
}

static __attribute__((hot)) void
on_record(struct hooks_call *c)
{
	struct heap_block b = { .size = c->size, .weight = c->weight, .stack = c->stack,
		.labels = (uint32_t)c->reserved[0], .site = (uint32_t)c->reserved[1] };
	bool              entered = enter(c->thread);

	if (!c->result) /* nothing was allocated */
		give_back(&b);
	else if (!entered)
		give_back(&b); /* counted as lost by enter() */
	else if (!heap_set_add(c->result, &b))
		give_up(&b);
	if (entered)
		leave(c->thread);
}

/* ---- realloc ---- */

typedef void *realloc_fn(void *block, size_t size);

/* It stays the next allocator's, sampled or not: what that can resize in place or by moving
 * pages, it does.  The entry must be gone before the address can be somebody else's. */
static int
reallocate(struct hooks_call *c, bool sampled, struct heap_block *b)
{
	struct heap_block old;
	bool              was = c->old && heap_set_find(c->old, &old);

	if (!was && !sampled)
		return HOOKS_PASS;
	if (was)
		heap_set_remove(c->old);
	c->result = ((realloc_fn *)component_hooks.next[HOOKS_realloc])(c->old, c->size);
	if (sampled && !c->result)
		give_back(b);
	else if (sampled && !heap_set_add(c->result, b))
		give_up(b);
	/* Failed: the old one lives on, and is neither freed nor a new one.  Without a site its references went
	 * with its entry. */
	if (!c->result && was && c->size > 0 && old.site && heap_set_add(c->old, &old))
		heap_site_uncount(&old);
	return HOOKS_DONE;
}

static int
on_reallocate(struct hooks_call *c)
{
	struct heap_block b;
	bool              due, entered, sampled;
	int               answer;

	heap_fork_look();
	due = c->thread->left < 0 && component_hooks.heap_state == HOOKS_ON &&
	      !(c->old && c->size == 0); /* realloc(p, 0) only frees */
	entered = (due || !c->thread->busy) && enter(c->thread);
	sampled = entered && due && sample(c, &b);
	answer = heap_bound() ? reallocate(c, sampled, &b) : HOOKS_PASS;
	if (entered)
		leave(c->thread);
	return answer;
}

/* ---- the end of a block ---- */

static __attribute__((hot)) int
on_release(void *block)
{
	heap_fork_look();
	return block && heap_bound() && heap_set_remove(block) ? HOOKS_RECORD : HOOKS_PASS;
}

/* The next one's to say, of any block. */
static int
on_usable(void *block, size_t *ret)
{
	(void)ret;
	return heap_bound() && heap_set_has(block) ? HOOKS_RECORD : HOOKS_PASS;
}

/* ---- on and off ---- */

static void
fork_prepare(void)
{
	fork_held = connected;
	if (!fork_held)
		return;
	component_hooks.thread()->busy++;
	heap_lock_fork_prepare();
}

static void
fork_parent(void)
{
	if (!fork_held)
		return;
	heap_lock_fork_parent();
	component_hooks.thread()->busy--;
}

/* Where another thread has connected the hooks meanwhile, heap_fork_look() sees that this is a child. */
static void
fork_child(void)
{
	static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

	control = fresh;
	if (!fork_held)
		return;
	heap_lock_fork_child();
	component_hooks.thread()->busy--;
	heap_forked();
}

FORK_SLOT(FORK_HEAP, fork_prepare, fork_parent, fork_child);

/* Hands the table our functions; once. */
static int
connect_hooks(void)
{
	if (connected)
		return 0;
	if (!heap_bind())
		return -ENOTSUP;
	connected = true; /* before a lock is taken that a fork has to know of */
	component_hooks.record = on_record;
	component_hooks.reallocate = on_reallocate;
	component_hooks.release = on_release;
	component_hooks.usable = on_usable;
	/* Last: who still finds the state that heap_bind() tried calls this one, and then record. */
	__atomic_store_n(&component_hooks.begin, on_begin, __ATOMIC_RELEASE);
	/* Hooks of before look at these and not at a filter: every free() asks us. */
	__atomic_store_n(&component_hooks.range_size, UINTPTR_MAX, __ATOMIC_RELEASE);
	__atomic_store_n(&component_hooks.range_start, 0, __ATOMIC_RELEASE);
	if (!atomic_load(&seed))
		atomic_store(&seed, (uint64_t)clock_ns(CLOCK_MONOTONIC) ^ (uint64_t)getpid() << 32);
	return 0;
}

int
heap_set_rate(uint64_t bytes)
{
	int r = 0;

	if (bytes > HEAP_RATE_MAX)
		bytes = HEAP_RATE_MAX;
	pthread_mutex_lock(&control);
	heap_fork_look();
	if (bytes > 0)
		r = connect_hooks();
	if (r < 0)
		bytes = 0;
	if (bytes > 0 && atomic_load(&since_ns) == 0)
		atomic_store(&since_ns, clock_ns(CLOCK_REALTIME));
	else if (bytes > 0 && atomic_load(&heap_hot.rate) == 0)
		atomic_store(&resumed, true);
	atomic_store(&heap_hot.rate, bytes);
	if (bytes > 0) {
		atomic_store(&last_rate, bytes);
		atomic_store(&forked, false);
	}
	if (heap_bound())
		hooks_set_heap_state(bytes ? HOOKS_ON : HOOKS_OFF);
	pthread_mutex_unlock(&control);
	return r;
}

int
heap_foresee(void)
{
	int r;

	pthread_mutex_lock(&control);
	r = heap_bind() ? 0 : -ENOTSUP;
	pthread_mutex_unlock(&control);
	return r;
}

uint64_t
heap_rate(void)
{
	return atomic_load(&heap_hot.rate);
}

void
heap_set_seed(uint64_t s)
{
	atomic_store(&threads_seeded, 0);
	atomic_store(&seed, s);
}

uint64_t
heap_lost(void)
{
	return atomic_load(&lost) + heap_set_lost();
}

uint64_t
heap_taken(void)
{
	return atomic_load(&taken);
}

void
heap_facts(struct heap_facts *ret)
{
	ret->since_ns = atomic_load(&since_ns);
	ret->resumed = atomic_load(&resumed);
	ret->rate = atomic_load(&last_rate);
	ret->truncated = atomic_load(&truncated);
}

/* Async-signal-safe: it runs in fork's child handler. */
void
heap_forked(void)
{
	if (heap_bound())
		hooks_set_heap_state(HOOKS_OFF);
	atomic_store(&heap_hot.rate, 0);
	atomic_store(&forked, true);
}

__attribute__((hot)) bool
heap_fork_look(void)
{
	if (!heap_lock_is_child())
		return false;
	heap_lock_fork_unseen();
	heap_forked();
	return true;
}

const char *
heap_status(void)
{
	if (*heap_bind_status() || heap_rate() > 0)
		return heap_bind_status();
	return atomic_load(&forked) ? "heap sampling is off in this forked process: component_after_fork() brings it back" :
		"heap sampling is off: its rate is 0";
}
