/*
 * mmap.c - what the program has mapped itself, by the stack that called mmap().
 *
 *     hook ─ on_map() ─┬─ mmap:   the call, then stack, counts, live_add(); or later.h keeps the stack
 *                      ├─ munmap: live_take(), the call, live_drop()
 *                      └─ mremap: live_take(), the call, live_put() at its new place
 *
 * All are counted, none sampled: a mapping costs the kernel more than a walk.  What is "in use" is
 * address space, touched or not; of what is resident tells resident/, to which the live ranges are lent.
 *
 * What a stranger would get wrong:
 * - The stack of an mmap() is walked after the call, of which errno is the program's.
 * - A hook waits for nobody: the caller may be an allocator with its locks held.  What cannot be walked,
 *   or have its place among the stacks, at once is copied and walked by the next reader (later.c).
 * - Of a mapping whose middle is unmapped two are left, and both count as one that is in use.
 * - Bytes are of whole pages, and what a mapping grows by was made where it was: no more is in use than
 *   ever was made.
 * - MAP_FIXED takes away what was there.  Should the call fail then, perhaps it has, perhaps not: it is
 *   taken for what it was.
 *
 * Tests: tests/memory/mmap.t, tests/memory/test_live.c.
 */
#include <config.h>

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "abi.h"
#include "clock.h"
#include "collector.h"
#include "fork_mark.h"
#include "hidden_frames.h"
#include "later.h"
#include "live.h"
#include "our_thread.h"
#include "pages.h"
#include "resident/resident.h"
#include "sort.h"
#include "stack_counts.h"
#include "stack_lock.h"
#include "stack_table.h"
#include "unwind.h"
#include "which_core.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

static struct stack_counts made; /* calls, and their bytes */
static _Atomic bool        on;
static atomic_int          failed; /* -errno of the last rate_set(); 0: none */
static _Atomic uint64_t    truncated;
static struct fork_mark    mark;

/* ---- one call ---- */

static HOOKS_FRAME long
call(const struct hooks_wait *w)
{
	hooks_call_fn *next = (hooks_call_fn *)component_hooks.next[w->name];

	return next(w->args[0], w->args[1], w->args[2], w->args[3], w->more[0], w->more[1], 0);
}

static uint32_t
place_of(const struct hooks_wait *w, size_t bytes)
{
	struct unwind_regs regs = { .pc = w->pc, .sp = w->sp, .fp = w->fp, .at_once = true };
	uintptr_t          pcs[STACK_FRAMES_MAX];
	unsigned           count;
	int                cut = 0;
	uint32_t           stack = STACK_PSEUDO_LOST, kept;
	size_t             page = (size_t)getpagesize();

	bytes = (bytes + page - 1) & ~(page - 1);

	count = hidden_frames_drop(pcs, unwind_capture(&regs, pcs, STACK_FRAMES_MAX, &cut));
	if (cut != UNWIND_NOT_NOW)
		stack = stack_table_add_within(pcs, count, STACK_LOCK_AT_ONCE);
	kept = stack == STACK_PSEUDO_LOST ? later_keep(&regs, bytes) : 0;
	if (kept)
		return kept;
	if (cut == UNWIND_NOT_NOW) /* what there is of it */
		stack = stack_table_add_within(pcs, count, STACK_LOCK_AT_ONCE);
	if (cut)
		atomic_fetch_add(&truncated, 1);
	return stack_counts_add(&made, stack, SITES_ONE, bytes);
}

static void
grown(uint32_t place, size_t bytes)
{
	bytes = later_grown(place, bytes);
	if (bytes)
		stack_counts_more(&made, later_place(place), 0, bytes);
}

static HOOKS_FRAME long
map(struct hooks_wait *w)
{
	size_t   bytes = w->args[1];
	bool     replaces = (w->args[3] & MAP_FIXED) && !(w->args[3] & MAP_FIXED_NOREPLACE);
	uint32_t taken = replaces ? live_take(w->args[0], bytes) : 0;
	long     r = call(w);
	int      saved = errno;

	if (r == -1 && taken)
		live_put(taken, w->args[0], bytes, bytes);
	else if (taken)
		live_drop(taken);
	if (r != -1)
		live_add((uintptr_t)r, bytes, place_of(w, bytes));
	errno = saved;
	return r;
}

static HOOKS_FRAME long
unmap(struct hooks_wait *w)
{
	uint32_t taken = live_take(w->args[0], w->args[1]);
	long     r = call(w);
	int      saved = errno;

	if ((int)r)
		live_put(taken, w->args[0], w->args[1], w->args[1]);
	else
		live_drop(taken);
	errno = saved;
	return r;
}

/* Does what is moved stay where it was, too?  It does where no bytes of it are to move, of shared memory. */
static bool
remap_is_copy(const struct hooks_wait *w)
{
	return w->args[1] == 0 || w->args[3] & MREMAP_DONTUNMAP;
}

static HOOKS_FRAME long
remap(struct hooks_wait *w)
{
	uintptr_t old = w->args[0];
	size_t    had = w->args[1], bytes = w->args[2];
	uint32_t  replaced = w->args[3] & MREMAP_FIXED ? live_take(w->more[0], bytes) : 0;
	uint32_t  taken = remap_is_copy(w) ? 0 : live_take(old, had);
	long      r = call(w);
	int       saved = errno;

	if (r == -1 && taken)
		live_put(taken, old, had, had);
	if (replaced && r == -1)
		live_put(replaced, w->more[0], bytes, bytes);
	else if (replaced)
		live_drop(replaced);
	if (r != -1 && taken)
		live_put(taken, (uintptr_t)r, bytes, had);
	else if (r != -1)
		live_add((uintptr_t)r, bytes, place_of(w, bytes));
	errno = saved;
	return r;
}

/* Off; what the parent has mapped is looked through when it is on again. */
static void
forked(void)
{
	fork_mark_set(&mark);
	if (atomic_exchange(&on, false))
		__atomic_store_n(&component_hooks.map_state, HOOKS_OFF, __ATOMIC_RELEASE);
	later_forked();
	atomic_store(&truncated, 0);
	stack_counts_forked(&made);
}

/* A child of _Fork() or a bare clone(): locks of ours may be held there by threads that it has not. */
static __attribute__((noinline)) void
forked_unseen(void)
{
	live_forked();
	forked();
}

static HOOKS_FRAME long
on_map(struct hooks_wait *w)
{
	if (__builtin_expect(fork_mark_is_gone(&mark), 0)) {
		forked_unseen();
		return call(w);
	}
	if (pages_ours || our_thread_is() || live_is_broken())
		return call(w);
	switch (w->name) {
	case HOOKS_munmap:
		return unmap(w);
	case HOOKS_mremap:
		return remap(w);
	default:
		return map(w);
	}
}

/* ---- on and off ---- */

/* Any of them: what one of them does unseen leaves ranges that are not right. */
static const char *
displaced(void)
{
	if (hooks_displaced(HOOKS_mmap) || hooks_displaced(HOOKS_mmap64))
		return "mappings are not seen: " HOOKS_DISPLACED("mmap");
	if (hooks_displaced(HOOKS_munmap))
		return "mappings are not seen: " HOOKS_DISPLACED("munmap");
	return hooks_displaced(HOOKS_mremap) ? "mappings are not seen: " HOOKS_DISPLACED("mremap") : "";
}

static const char *
status(void)
{
	if (live_is_broken())
		return "mappings are not seen any more: a fork, or the end of a thread, came in the middle of a change";
	if (failed)
		return failed == -EDEADLK ? "mappings are not seen: a thread did not let go of their table for a second" :
		                            "mappings are not seen: no memory for their table";
	if (!UNWIND_AT_ONCE)
		return "mappings are not seen: " HOOKS_UNKNOWN;
	if (hooks_are_others())
		return "mappings are not seen: another copy of libcomponent in this process has the hooks";
	if (HOOKS_HAVE(map))
		return displaced();
	if (&component_hooks && component_hooks.kind == HOOKS_STATIC_STUB)
		return "mappings are not seen: the program is linked with -static";
	if (&component_hooks)
		return "mappings are not seen: the hooks linked into the program are of another version";
	return "mappings are not seen: the program is not linked with -lcomponent_hooks "
	       "(pkg-config --libs libcomponent) nor started with libcomponent-preload.so";
}

static int64_t
rate_get(void)
{
	return atomic_load(&on);
}

static int
rate_set(int64_t rate)
{
	int r;

	atomic_store(&failed, 0);
	if (rate && *status())
		return -ENOTSUP;
	if (!rate) {
		if (atomic_exchange(&on, false)) {
			__atomic_store_n(&component_hooks.map_state, HOOKS_OFF, __ATOMIC_RELEASE);
			live_close();
		}
		return 0;
	}
	if (atomic_load(&on))
		return 0;
	if (!hooks_claim())
		return -ENOTSUP;
	r = stack_counts_open(&made) || fork_mark_open(&mark) || later_open() ? -ENOMEM : live_open();
	atomic_store(&failed, r);
	if (r)
		return r;
	live_grown = grown;
	component_hooks.resolve();
	component_hooks.map = on_map;
	atomic_store(&on, true);
	__atomic_store_n(&component_hooks.map_state, HOOKS_ON, __ATOMIC_RELEASE);
	return 0;
}

/* ---- profiles ---- */

static bool
is_before(const struct live_range *a, const struct live_range *b)
{
	return a->place < b->place;
}

HEAP_SORT(ranges_sort_by_place, struct live_range, is_before)

/* As live_copy(), by stacks that are counted. */
static struct live_range *
in_use(size_t *ret_count, size_t *ret_bytes)
{
	struct live_range *all = live_copy(ret_count, ret_bytes);

	later_walk(&made);
	for (size_t i = 0; i < *ret_count; i++) {
		all[i].place = later_place(all[i].place);
		if (!all[i].place) /* kept since */
			all[i].place = STACK_PSEUDO_LOST;
	}
	return all;
}

/* A sample for each place, of all its ranges. */
static int
add_in_use(struct profile *p, struct live_range *all, size_t count)
{
	struct profile_sample sample;
	int                   r = 0;

	ranges_sort_by_place(all, count);
	for (size_t i = 0, end; i < count && !r; i = end) {
		memset(&sample, 0, sizeof(sample));
		sample.stack = all[i].place;
		for (end = i; end < count && all[end].place == all[i].place; end++) {
			sample.values[2]++;
			sample.values[3] += (int64_t)(all[end].limit - all[end].start);
		}
		stack_table_ref(sample.stack);
		r = profile_add(p, &sample);
	}
	return r;
}

static void
comment(struct profile *p, bool known)
{
	if (*status())
		profile_comment(p, "%s", status());
	else if (!known && atomic_load(&on))
		profile_comment(p, "mmap: what is in use cannot be told just now");
	if (live_lost())
		profile_comment(p, "mmap: %llu changes found no room: what is in use is not all right",
			(unsigned long long)live_lost());
	if (later_not_kept())
		profile_comment(p, "mmap: %llu stacks could not be walked at once nor kept for later: they have their "
			"first functions, or are [lost samples]", (unsigned long long)later_not_kept());
}

static int
collect(const struct collector *c, const struct collect_params *params, struct product *ret)
{
	size_t             count, bytes;
	struct live_range *all = in_use(&count, &bytes); /* first: no more is in use than was made */
	struct profile     p;
	int                r;

	(void)params;
	collector_profile(c, &p);
	p.period_type = (struct profile_type){ "space", "bytes" };
	p.period = 1;
	p.default_type = "inuse_space";
	p.alone = true;
	p.time_ns = clock_ns(CLOCK_REALTIME);
	p.truncated = atomic_load(&truncated);
	comment(&p, all);
	r = stack_counts_profile(&made, &p);
	if (!r)
		r = add_in_use(&p, all, count);
	pages_unmap(all, bytes);
	for (size_t i = 0; i < p.count; i++)
		memcpy(p.samples[i].counted_values, p.samples[i].values, sizeof(p.samples[i].values));
	ret->type = PRODUCT_PROFILE;
	return profile_done(&p, r, &ret->profile);
}

static int
list(int (*add)(void *arg, uintptr_t start, uintptr_t limit, uint32_t stack), void *arg)
{
	size_t             count, bytes;
	struct live_range *all = in_use(&count, &bytes);
	int                r = 0;

	for (size_t i = 0; i < count && !r; i++)
		r = add(arg, all[i].start, all[i].limit, all[i].place);
	pages_unmap(all, bytes);
	return r;
}

static int
start(void)
{
	static const struct resident_maker maker = { list };

	resident_maker = &maker;
	return 0;
}

static size_t
count(const struct collector *c)
{
	(void)c;
	return live_count();
}

static const char *
missing(void)
{
	if (atomic_load(&on) || live_count() > 0)
		return "";
	if (*status())
		return status();
	return "mappings are seen while the profiling server runs, unless mmap-profile-rate is 0";
}

static const struct collector_rate rate = {
	.option = "mmap-profile-rate",
	.help = "1 has each mapping counted that the program makes by mmap(); 0 none.",
	.unit = COLLECTOR_NUMBER,
	.max = 1,
	.get = rate_get,
	.set = rate_set,
	.usual = 1,
};

const struct collector collect_mmap = {
	.name = "mmap",
	.description = "memory that the program has mapped itself, by the stack that called mmap()",
	.beside = true,
	.products = PRODUCT_PROFILE,
	.types = { { "alloc_objects", "count" }, { "alloc_space", "bytes" }, { "inuse_objects", "count" },
		{ "inuse_space", "bytes" } },
	.text = PRODUCT_TEXT_HEAP,
	.snapshot = collect,
	.count = count,
	.status = status,
	.missing = missing,
	.rate = &rate,
	.start = start,
	.forked = forked,
};
