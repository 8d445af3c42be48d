/*
 * unwind_window.c - which memory a walk may read without asking, and the asking.
 *
 * Whether a page can be read is asked of the kernel: rt_sigprocmask(2) with a bad `how`
 * answers EFAULT where the set cannot be read, else EINVAL, changes nothing, and is
 * allowed under every seccomp filter that lets a thread start.  A walk asks once for
 * each page it enters, and the pages proven make its window:
 *
 *       low                floor                          end
 *     ---|-------------------|=== proven in this walk =====|--- the thread's root
 *
 * A question costs as much as ten frames, so a thread remembers its own stack: once a
 * walk has climbed from sp to the function that every thread starts in, at the place
 * where it starts, all between belongs to that thread's stack, which nobody can take
 * away while the thread runs on it.  The next walks begin with that window.
 *
 * What a stranger would get wrong:
 * - Only the stack that ends in a thread's own root is remembered.  A fiber's, an
 *   alternate one, and one that the walk could not follow to its root may be gone the
 *   next time, with a smaller one in its place: those are asked about in each walk.
 * - What is remembered is one word, start and size together.  Threads made by raw
 *   clone(2) may share their maker's thread-local storage, and a start of one with the
 *   size of another would be a lie.
 * - Thread-local storage is new with each thread, also where stack, id and thread
 *   pointer are those of one that has ended.
 * - Other memory, which a bad frame may lead to, is not loaded from: another thread may unmap it
 *   between the question and the load.  Only for the thread's own stack once it is remembered,
 *   and for the first thread's, is it sure what belongs to them.  Any other stack is taken to go
 *   on for as long as page follows page, 1 MiB in a frame.  So a mapping that lies directly
 *   above a fiber's stack, or above a stack that is walked for the first time, counts as stack:
 *   a bad frame there, and a thread that unmaps that neighbour meanwhile, are a crash still.  No
 *   cheap question tells where such a stack ends.
 * - A window is used from sp up, never below: a program may close pages of its own
 *   stack that it does not stand on.
 *
 * Why not pthread_getattr_np(3): it takes locks and memory.  Why not /proc/self/maps:
 * neighbouring mappings look like one.
 *
 * Tests: tests/unwind/test_window.c.
 */
#include <config.h>

#include "unwind.h"
#include "unwind_window.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "per_thread.h"
#include "under_valgrind.h"

#define SIZE_BITS  19 /* of the remembered word: pages, 2 GiB; the rest is the end's page */
#define SIZE_MASK  (((uint64_t)1 << SIZE_BITS) - 1)
#define GAP_MAX    16 /* pages jumped over by large frames; a longer jump may have left the stack */
#define ENTRY_SIZE 64 /* bytes of code of _start */
#define ROOT_SLACK 512 /* bytes by which alignment may move a thread's first frame */
#define RED_BYTES  128 /* below sp, where a leaf that is about to return has its caller's registers still */
#define MAIN_BYTES ((uintptr_t)64 << 20) /* of the first thread's stack */
#define OWN_BYTES  ((uintptr_t)16 << 20) /* of a thread's stack, asked about page by page for a frame above all bounds */
#define ARGS_BYTES ((uintptr_t)2 << 20) /* arguments, environment: above the first frame of main */
#define TOUCH_BYTES ((uintptr_t)16 << 10) /* of a cold stack; more spares nothing */
#define LINE_BYTES  64

/* Roots that are known: their pc, and where they stand. */
static struct {
	atomic_uintptr_t thread_pc, thread_below; /* the thread pointer */
	atomic_uintptr_t entry_pc, stack_top;     /* of the program and its first thread */
} roots;

bool
unwind_probe(uintptr_t address)
{
	uintptr_t word; /* the kernel is asked for as much */

	/* memcheck would report the question. */
	return under_memcheck ? under_memcheck_copy(&word, address, sizeof(word)) :
				arch_syscall(SYS_rt_sigprocmask, -1, (long)address, 0, _NSIG / 8) == -EINVAL;
}

static uintptr_t
page_of(uintptr_t address)
{
	return address & ~(uintptr_t)(UNWIND_PAGE_BYTES - 1);
}

/* The remembered range; empty when there is none.  The word is end / page << SIZE_BITS | pages. */
static void
own_get(uintptr_t *ret_start, uintptr_t *ret_end)
{
	uint64_t word = atomic_load_explicit(&per_thread.own_stack, memory_order_relaxed);

	*ret_end = (uintptr_t)(word >> SIZE_BITS) * UNWIND_PAGE_BYTES;
	*ret_start = *ret_end - (uintptr_t)(word & SIZE_MASK) * UNWIND_PAGE_BYTES;
}

__attribute__((hot)) size_t
unwind_window_own(uintptr_t sp)
{
	uintptr_t start, end;

	own_get(&start, &end);
	return sp >= start && sp < end ? end - sp : 0;
}

static uintptr_t
window_end(const struct unwind_reader *r)
{
	return r->floor + r->words * sizeof(uintptr_t);
}

static void
window_set(struct unwind_reader *r, uintptr_t floor, uintptr_t end)
{
	r->floor = floor;
	r->words = (end - floor) / sizeof(uintptr_t);
}

static void
window_enter(struct unwind_reader *r, uintptr_t sp)
{
	size_t own;

	r->low = sp;
	if (r->copy)
		return;
	own = unwind_window_own(sp);
	if (own)
		window_set(r, sp & ~(sizeof(uintptr_t) - 1), sp + own);
	else
		r->words = 0;
}

/* The kernel writes down, with what it has interrupted, where the alternate stack is. */
bool
unwind_window_alternate(struct unwind_reader *r, uintptr_t ucontext)
{
	uintptr_t at = ucontext + offsetof(ucontext_t, uc_stack), start, size;

	return unwind_load(r, at + offsetof(stack_t, ss_sp), &start) &&
	       unwind_load(r, at + offsetof(stack_t, ss_size), &size) && ucontext - start < size;
}

void
unwind_window_interrupted(struct unwind_reader *r, uintptr_t sp, bool alternate)
{
	uintptr_t top = atomic_load_explicit(&roots.stack_top, memory_order_relaxed);

	if (alternate || unwind_window_own(sp) || top - 1 - sp < MAIN_BYTES)
		window_enter(r, sp);
}

void
unwind_window_open(struct unwind_reader *r, uintptr_t sp)
{
	r->floor = 0;
	r->words = 0;
	r->shift = 0;
	r->unsure = 0;
	r->copy = false;
	window_enter(r, sp);
}

void
unwind_window_copy(struct unwind_reader *r, const void *copy, uintptr_t base, size_t size)
{
	uintptr_t floor = (base + sizeof(uintptr_t) - 1) & ~(sizeof(uintptr_t) - 1);

	*r = (struct unwind_reader){ .copy = true, .shift = (uintptr_t)copy - base, .low = base, .floor = floor };
	if (floor >= base && floor - base < size)
		r->words = (size - (floor - base)) / sizeof(uintptr_t);
}

/* The thread's own stack, met from below or in the middle. */
static bool
window_join(struct unwind_reader *r, uintptr_t address)
{
	uintptr_t start, end;

	own_get(&start, &end);
	if (address < start || address >= end || address < r->low)
		return false;
	if (r->words && r->floor <= start && window_end(r) >= start)
		window_set(r, r->floor, end);
	else
		window_set(r, r->low > start ? r->low & ~(sizeof(uintptr_t) - 1) : start, end);
	return true;
}

/* On the first thread's stack, which nobody unmaps, whatever stack the walk comes from. */
static bool
window_main_has(const struct unwind_reader *r, uintptr_t address)
{
	uintptr_t top = atomic_load_explicit(&roots.stack_top, memory_order_relaxed), start, end;

	if (address < r->low || top - 1 - address >= MAIN_BYTES)
		return false;
	own_get(&start, &end); /* another thread's has no business there */
	return end == 0 || top + UNWIND_PAGE_BYTES - end < MAIN_BYTES;
}

/* Is the page on the stack that the walk stands on, as far as can be told?  A thread's
 * own stack ends below its thread pointer. */
static bool
window_may_have(const struct unwind_reader *r, uintptr_t from, uintptr_t page)
{
	uintptr_t top = (uintptr_t)__builtin_thread_pointer();

	return page >= from && page - from < UNWIND_FRAME_BYTES_MAX &&
	       (r->low >= top || page <= page_of(top) || window_main_has(r, from));
}

/* Can all pages between be read?  Else the stack has ended in there. */
static bool
window_follows(const struct unwind_reader *r, uintptr_t from, uintptr_t page)
{
	for (; from < page; from += UNWIND_PAGE_BYTES)
		if (!unwind_probe(from > r->low ? from : r->low))
			return false;
	return true;
}

/* Above a frame larger than any that a window may grow by, but on the thread's own stack: all
 * from there to the thread pointer can be read, where the guard page of that stack would lie
 * between it and another one.  The window has it all then. */
static bool
window_own_reaches(struct unwind_reader *r, uintptr_t from, uintptr_t page)
{
	uintptr_t end = page_of((uintptr_t)__builtin_thread_pointer()) + UNWIND_PAGE_BYTES;

	if (page < from || page >= end || end - from > OWN_BYTES || !window_follows(r, from, end))
		return false;
	window_set(r, r->words ? r->floor : r->low & ~(sizeof(uintptr_t) - 1), end);
	return true;
}

/* Where the window does not reach. */
static __attribute__((noinline)) bool /* a handler has little stack */
window_elsewhere(struct unwind_reader *r, uintptr_t address, uintptr_t from)
{
	uintptr_t page = page_of(address), low = r->low & ~(sizeof(uintptr_t) - 1);

	if (window_main_has(r, address)) {
		if (!unwind_probe(address))
			return false;
		window_set(r, page > low ? page : low, page + UNWIND_PAGE_BYTES);
		return true;
	}
	return window_own_reaches(r, from, page) || (r->low - address <= RED_BYTES && unwind_probe(address));
}

static __attribute__((noinline)) bool /* it has registers to save */
window_prove(struct unwind_reader *r, uintptr_t address)
{
	uintptr_t page = page_of(address), from;

	if (r->copy || address % sizeof(uintptr_t) != 0 || page == 0)
		return false;
	if (window_join(r, address))
		return true;
	from = r->words ? window_end(r) : page_of(r->low);
	if (!window_may_have(r, from, page))
		return window_elsewhere(r, address, from);
	/* The address itself, not the page's first word, which valgrind may know to be
	 * nobody's. */
	if ((from < page && !window_follows(r, from, page)) || !unwind_probe(address))
		return false;
	window_set(r, r->words ? r->floor : r->low & ~(sizeof(uintptr_t) - 1), page + UNWIND_PAGE_BYTES);
	return true;
}

bool
unwind_window_prove(struct unwind_reader *r, uintptr_t address)
{
	uintptr_t top = (uintptr_t)__builtin_thread_pointer();

	/* Mostly, the next page of a stack of which nothing is remembered. */
	if (page_of(address) != window_end(r) || !r->words || r->copy || address % sizeof(uintptr_t) != 0 ||
	    (r->low < top && address > top) || atomic_load_explicit(&per_thread.own_stack, memory_order_relaxed))
		return window_prove(r, address);
	if (!unwind_probe(address))
		return false;
	r->words += UNWIND_PAGE_BYTES / sizeof(uintptr_t);
	return true;
}

size_t
unwind_window_extent(uintptr_t sp, size_t max)
{
	struct unwind_reader r;
	uintptr_t            top = page_of((uintptr_t)__builtin_thread_pointer()), at;

	if (sp % sizeof(uintptr_t) != 0)
		return 0;
	unwind_window_open(&r, sp);
	for (at = sp; at - sp < max && (sp > top || at <= top); at = page_of(at) + UNWIND_PAGE_BYTES)
		if (!unwind_window_has(r.floor, r.words, at) && !unwind_window_prove(&r, at))
			break;
	return at - sp < max ? at - sp : max;
}

/* All of it at once, where a walk would wait for one frame after the other.  Loads, not
 * prefetches, which are a third slower here: so only what is remembered as the thread's own. */
void UNWIND_NO_SANITIZE
unwind_window_touch(struct unwind_reader *r)
{
	uintptr_t at = r->low & ~(sizeof(uintptr_t) - 1), end = at + TOUCH_BYTES;

	for (; at < end && unwind_window_has(r->floor, r->words, at); at += LINE_BYTES)
		(void)unwind_word(at);
}

void
unwind_window_roots(uintptr_t pc, uintptr_t sp)
{
	atomic_store(&roots.entry_pc, getauxval(AT_ENTRY));
	atomic_store(&roots.stack_top, getauxval(AT_RANDOM)); /* on the stack, above all frames */
	atomic_store(&roots.thread_below, (uintptr_t)__builtin_thread_pointer() - sp);
	atomic_store(&roots.thread_pc, pc);
}

bool
unwind_roots_known(void)
{
	return atomic_load(&roots.thread_pc) != 0;
}

/* Words that look like a root lie about; one at the right place is the root. */
static bool
is_root(uintptr_t pc, uintptr_t sp)
{
	uintptr_t below = (uintptr_t)__builtin_thread_pointer() - sp, top = atomic_load(&roots.stack_top);

	if (pc == atomic_load(&roots.thread_pc))
		return below - atomic_load(&roots.thread_below) + ROOT_SLACK < 2 * ROOT_SLACK;
	return pc - atomic_load(&roots.entry_pc) < ENTRY_SIZE && sp < top && top - sp < ARGS_BYTES;
}

void
unwind_window_learn(struct unwind_reader *r, uintptr_t pc, uintptr_t sp)
{
	uintptr_t start, end, own_start, own_end, pages, low = page_of(r->low);

	r->root = sp;
	own_get(&own_start, &own_end);
	if (r->low >= own_start && r->low < own_end)
		return;
	if (r->copy || !is_root(pc, sp) || sp <= r->low)
		return;
	end = window_end(r);
	start = page_of(r->floor);
	if (sp <= r->floor || sp > end || end % UNWIND_PAGE_BYTES != 0)
		return; /* the root's frame was not read through the window */
	if (own_end == end && own_start < start)
		start = own_start;
	if (start > low && start - low <= GAP_MAX * UNWIND_PAGE_BYTES) {
		while (start > low && unwind_probe(start - sizeof(uintptr_t)))
			start -= UNWIND_PAGE_BYTES;
	}
	pages = (end - start) / UNWIND_PAGE_BYTES;
	if (pages <= SIZE_MASK)
		atomic_store_explicit(&per_thread.own_stack, (uint64_t)(end / UNWIND_PAGE_BYTES) << SIZE_BITS | pages,
				      memory_order_relaxed);
}
