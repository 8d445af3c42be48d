/*
 * safe_point.c - may this thread make a thread of ours where it is, in the middle of the program?
 *
 * pthread_create() takes three locks besides the kernel's, none of which this thread may have:
 *
 *     the allocator's            for the new thread's part of thread-local storage
 *     glibc's of stacks          free() is called with it held, when stacks are given back
 *     the loader's of that part  malloc() is called with it held, by dlopen(): the lock is recursive, but the list is half
 *                                done
 *
 * Only code of the C library, the loader and the allocator holds one of them, and none of it calls the program
 * meanwhile.  So a call that comes from other code comes without them, unless it is a signal handler's, which may have
 * interrupted them.
 *
 * What a stranger would get wrong:
 * - A thread does not know that it is in a handler.  But a handler blocks its own signal.  So a thread is in none when
 *   each signal that has a handler can reach it, and when it blocks none that it has not blocked all the time: the
 *   handler may have been taken off.  With SA_NODEFER nothing is known; that flag outlives SA_RESETHAND.
 * - The first call that malloc() makes for us is of a clock, which may be another library's (libfaketime).  So such
 *   libraries count as the C library does.
 * - A handler that unblocks its own signal, or switches to another stack in the middle of malloc(), is not seen.
 * - A note that a thread is in its allocator would say less: free() and malloc_trim() do not come by a slow way of ours.
 * - dlopen() calls IFUNC resolvers of the program with its lock held.  What they call may not be relocated yet, so they
 *   allocate nothing and read nothing.
 * - Our own fork handlers block all signals while locks of ours are held: that looks like a handler, too.
 * - An allocator that comes before ours is not known here (component_hooks.outranked).
 *
 * Tests: tests/componentctl/follow_forks.t.
 */
#include <config.h>

#include "safe_point.h"

#include <gnu/libc-version.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "abi.h"
#include "our_mask.h"

#define SIGNALS 64

/* As the kernel has it: glibc's sigaction() does not tell of its own signals, and a hook of ours may stand before it. */
struct kernel_action {
	uintptr_t     handler;
	unsigned long flags, more[2]; /* a restorer, where there is one, and the mask */
};

struct range {
	uintptr_t start, end;
};

enum { MALLOC, CALLOC, PTHREAD_CREATE, OUR_PTHREAD_CREATE, CLOCK, GETPID, CORE, LIBC, LOADER, OBJECTS };

static uintptr_t    of[OBJECTS]; /* an address in each */
static struct range inside[OBJECTS];
static _Atomic uint64_t blocked_always; /* since the child began, as far as was seen */

static int
take_range(struct dl_phdr_info *object, size_t size, void *arg)
{
	struct range r = { UINTPTR_MAX, 0 };

	(void)size;
	(void)arg;
	for (size_t i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &object->dlpi_phdr[i];

		if (p->p_type != PT_LOAD)
			continue;
		if (object->dlpi_addr + p->p_vaddr < r.start)
			r.start = object->dlpi_addr + p->p_vaddr;
		if (object->dlpi_addr + p->p_vaddr + p->p_memsz > r.end)
			r.end = object->dlpi_addr + p->p_vaddr + p->p_memsz;
	}
	for (int i = 0; i < OBJECTS; i++)
		if (of[i] >= r.start && of[i] < r.end)
			inside[i] = r;
	return 0;
}

void
safe_point_begin(void)
{
	of[MALLOC] = (uintptr_t)component_hooks.next[HOOKS_malloc];
	of[CALLOC] = (uintptr_t)component_hooks.next[HOOKS_calloc];
	of[PTHREAD_CREATE] = (uintptr_t)component_hooks.next[HOOKS_pthread_create];
	of[OUR_PTHREAD_CREATE] = (uintptr_t)pthread_create; /* which may be a wrapper's */
	of[CLOCK] = (uintptr_t)clock_gettime;
	of[GETPID] = (uintptr_t)getpid;
	of[CORE] = (uintptr_t)safe_point_begin;
	of[LIBC] = (uintptr_t)gnu_get_libc_version;
	of[LOADER] = (uintptr_t)_r_debug.r_ldbase; /* AT_BASE is 0 where the loader was run as the program */
	dl_iterate_phdr(take_range, NULL);
}

static uint64_t
blocked_now(void)
{
	sigset_t now;
	uint64_t blocked;

	our_mask_change(SIG_BLOCK, NULL, &now);
	memcpy(&blocked, &now, sizeof(blocked));
	return blocked;
}

void
safe_point_mask(void)
{
	blocked_always = blocked_now();
}

bool
safe_point_is_inside(uintptr_t pc)
{
	for (int i = 0; i < OBJECTS; i++)
		if (inside[i].end == 0 || (pc >= inside[i].start && pc < inside[i].end))
			return true;
	return false;
}

bool
safe_point_may_be_in_handler(void)
{
	struct kernel_action a;
	uint64_t             blocked = blocked_now();

	blocked_always &= blocked;
	if (blocked & ~blocked_always)
		return true;
	for (int i = 1; i <= SIGNALS; i++) {
		if (syscall(SYS_rt_sigaction, i, NULL, &a, OUR_MASK_BYTES))
			return true;
		if (a.flags & SA_NODEFER || (a.handler != (uintptr_t)SIG_DFL && a.handler != (uintptr_t)SIG_IGN &&
		    blocked & OUR_MASK_BIT(i)))
			return true;
	}
	return false;
}
