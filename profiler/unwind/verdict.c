/*
 * verdict.c - what code is at an address, found out by a thread of ours.
 *
 *     walk --> verdict? --> known: bits
 *                       --> none:  the address is left in the table, and the walk guesses
 *
 *     our thread --> reads the bytes by the kernel, judges them, stores the bits
 *
 * A word on a stack may be anything, and what it points to may be unmapped by another thread
 * at any time.  A walk that asked first and loaded then would be killed between the two, and
 * the kernel's copying calls are not for threads of the program: a filter may end the process
 * for them.  So walks load no code but what their own thread is running.
 *
 * What a stranger would get wrong:
 * - An entry is one word, the address above its bits: neither is ever seen with another's.
 * - Code may be replaced in place, so verdicts are judged anew: an eighth of them in each round,
 *   all when mappings have changed.  What was not asked for in a minute of looks is dropped.
 * - A known entry may stand behind an empty place, since entries are dropped: all places of an
 *   address are looked at.
 * - Where no memory can be read an address stays wanted.
 * - A hook that waits for a verdict may hold any lock of the program.  Who judges takes none of
 *   those, and the wait is bounded; after one in vain nobody waits until something was judged.
 *   Around a fork nobody waits.
 *
 * Tests: tests/unwind/test_verdict.c, tests/unwind/test_generated_code.c.
 */
#include <config.h>

#include "verdict.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "arch_code.h"
#include "fork.h"
#include "futex.h"
#include "memory.h"
#include "unwind.h"
#include "wake.h"

#define ENTRIES_BITS 14 /* callers of a large program that has frame pointers and no tables */
#define ENTRIES      ((size_t)1 << ENTRIES_BITS)
#define PLACES       8 /* of one address */
#define PARTS        8 /* of the table, one in a round */
#define AGE_MAX      8 /* looks without use */
#define BITS         8
#define USED         0x80U
#define AROUND       32 /* bytes of code looked at on each side */
#define WAIT_NS      10000000L /* of a hook, for one stack */
#define TURN_NS      2000000L  /* until it wakes our thread once more */

static struct {
	_Atomic uint64_t entries[ENTRIES]; /* address << BITS | bits; without KNOWN: wanted */
	_Atomic uint8_t  ages[ENTRIES];
	atomic_uint      part;
	atomic_bool      any; /* there was an entry */
	atomic_bool      wanted, given_up; /* a hook has waited in vain */
	atomic_bool      forking; /* our thread may be gone, and who forks holds locks that it needs */
	atomic_uint      settled; /* how often; a futex */
} verdicts;

/* ---- the table ---- */

static uint64_t
entry_of(uintptr_t pc, unsigned bits)
{
	return (uint64_t)pc << BITS | bits;
}

static size_t
place_of(uintptr_t pc, unsigned n)
{
	uint64_t mixed = (uint64_t)pc * 0x9e3779b97f4a7c15U;

	return ((size_t)(mixed >> (64 - ENTRIES_BITS)) + n) % ENTRIES;
}

/* Where the address is; NULL: nowhere. */
static _Atomic uint64_t *
entry_find(uintptr_t pc, uint64_t *ret)
{
	for (unsigned n = 0; n < PLACES; n++) {
		_Atomic uint64_t *e = &verdicts.entries[place_of(pc, n)];

		*ret = atomic_load_explicit(e, memory_order_relaxed);
		if (*ret >> BITS == pc)
			return e;
	}
	return NULL;
}

/* In whose place may an address be put, first to last?  What is wanted comes again. */
static bool
gives_way(uint64_t old, unsigned turn)
{
	switch (turn) {
	case 0: return !old;
	case 1: return old & UNWIND_VERDICT_KNOWN && (!(old & USED) || !(old & UNWIND_VERDICT_RETURN));
	case 2: return !(old & UNWIND_VERDICT_KNOWN);
	default: return true;
	}
}

static bool
entry_put(uintptr_t pc, unsigned bits)
{
	atomic_store_explicit(&verdicts.any, true, memory_order_relaxed);
	for (unsigned turn = 0; turn < 4; turn++) {
		for (unsigned n = 0; n < PLACES; n++) {
			_Atomic uint64_t *e = &verdicts.entries[place_of(pc, n)];
			uint64_t          old = atomic_load_explicit(e, memory_order_relaxed);

			if (gives_way(old, turn) &&
			    (atomic_compare_exchange_strong(e, &old, entry_of(pc, bits)) || old >> BITS == pc))
				return true;
		}
	}
	return false;
}

/* 0: memory cannot be read now, not even ours. */
static unsigned
code_judge(const struct memory *m, uintptr_t pc)
{
	unsigned char bytes[2 * AROUND], ours;
	uintptr_t     begin = pc - AROUND, end = pc + AROUND, limit;
	bool          any = false;

	/* By pages: the one beside may not be there. */
	for (uintptr_t at = begin; at != end; at = limit) {
		limit = (at / UNWIND_PAGE_BYTES + 1) * UNWIND_PAGE_BYTES;
		if (limit > end)
			limit = end;
		if (memory_read(m, at, bytes + (at - begin), limit - at))
			any = true;
		else
			memset(bytes + (at - begin), 0, limit - at);
	}
	return any || memory_read(m, (uintptr_t)bytes, &ours, 1) ? arch_judge(pc, bytes + AROUND) : 0;
}

unsigned
unwind_verdict(uintptr_t pc)
{
	uint64_t          old;
	_Atomic uint64_t *e;

	if (!unwind_code_plausible(pc))
		return UNWIND_VERDICT_KNOWN;
	e = entry_find(pc, &old);
	if (e && old & UNWIND_VERDICT_KNOWN) {
		unsigned bits = old & (USED - 1);

		/* Not a store: the verdict may be another by now. */
		if (!(old & USED))
			atomic_compare_exchange_strong(e, &old, old | USED);
		return bits;
	}
	if (!e)
		entry_put(pc, USED);
	atomic_store_explicit(&verdicts.wanted, true, memory_order_release);
	return 0;
}

unsigned
unwind_verdict_now(uintptr_t pc)
{
	unsigned          bits = unwind_verdict(pc);
	_Atomic uint64_t *e;
	uint64_t          old;
	struct memory     m;

	if (bits || memory_open(&m) < 0)
		return bits;
	bits = code_judge(&m, pc);
	memory_close(&m);
	e = bits ? entry_find(pc, &old) : NULL;
	if (e)
		atomic_compare_exchange_strong(e, &old, entry_of(pc, bits | USED));
	return bits;
}

unsigned UNWIND_NO_SANITIZE
unwind_verdict_at(const struct unwind_reader *r, uintptr_t pc)
{
	int           before = (int)(pc % UNWIND_PAGE_BYTES), behind = UNWIND_PAGE_BYTES - before;
	unsigned char bytes[2 * AROUND] = { 0 };
	unsigned      bits = 0;

	/* Beyond its page there may be somebody else's: what is known of it tells more, else what
	 * is on the page must do. */
	if (r->copy || !r->here || before < ARCH_LEAF_BEFORE || behind < ARCH_LEAF_BEHIND)
		bits = unwind_verdict(pc);
	if (bits || r->copy || !r->here)
		return bits;
	if (!unwind_probe(pc))
		return UNWIND_VERDICT_KNOWN;
	for (int i = before < ARCH_LEAF_BEFORE ? -before : -ARCH_LEAF_BEFORE; i < ARCH_LEAF_BEHIND && i < behind; i++)
		bytes[AROUND + i] = ((const volatile unsigned char *)pc)[i];
	/* What takes more bytes than these is not asked about a leaf. */
	return arch_judge(pc, bytes + AROUND);
}

bool
unwind_verdicts_wanted(void)
{
	return atomic_load_explicit(&verdicts.wanted, memory_order_relaxed);
}

/* ---- the look ---- */

static void
entry_settle(const struct memory *m, size_t i, bool age)
{
	uint64_t  old = atomic_load(&verdicts.entries[i]);
	uintptr_t pc = (uintptr_t)(old >> BITS);
	unsigned  bits;

	if (!old)
		return;
	if (age && old & USED)
		atomic_store_explicit(&verdicts.ages[i], 0, memory_order_relaxed);
	else if (age && atomic_fetch_add_explicit(&verdicts.ages[i], 1, memory_order_relaxed) >= AGE_MAX) {
		atomic_compare_exchange_strong(&verdicts.entries[i], &old, 0);
		return;
	}
	bits = code_judge(m, pc);
	/* A walk may use it meanwhile, which changes the entry as well. */
	while (bits && old >> BITS == pc &&
	       !atomic_compare_exchange_strong(&verdicts.entries[i], &old, entry_of(pc, bits) | (age ? 0 : old & USED)))
		;
}

/* Whoever waits sees whether it was for this. */
static void
settled(void)
{
	atomic_store(&verdicts.given_up, false);
	atomic_fetch_add(&verdicts.settled, 1);
	futex_wake(&verdicts.settled, INT_MAX);
}

void
unwind_verdicts_settle(enum unwind_verdicts which)
{
	unsigned      part = PARTS;
	size_t        begin = 0, end = atomic_load(&verdicts.any) ? ENTRIES : 0;
	bool          wanted = atomic_exchange(&verdicts.wanted, false), open = false;
	struct memory m;

	if (which == UNWIND_VERDICTS_SOME)
		part = atomic_fetch_add(&verdicts.part, 1) % PARTS;
	if (end && which == UNWIND_VERDICTS_SOME && !wanted) {
		begin = part * (ENTRIES / PARTS);
		end = begin + ENTRIES / PARTS;
	}
	for (size_t i = begin; i < end; i++) {
		bool     due = i / (ENTRIES / PARTS) == part;
		uint64_t old = atomic_load_explicit(&verdicts.entries[i], memory_order_relaxed);

		if (!old || !(which == UNWIND_VERDICTS_ALL || due || (wanted && !(old & UNWIND_VERDICT_KNOWN))))
			continue;
		if (!open && memory_open(&m) < 0)
			return;
		open = true;
		entry_settle(&m, i, due && old & UNWIND_VERDICT_KNOWN);
	}
	if (open)
		memory_close(&m);
	if (wanted)
		settled();
}

/* ---- who waits for it ---- */

unsigned
unwind_verdicts_settled(void)
{
	return atomic_load(&verdicts.settled);
}

bool
unwind_verdicts_await(unsigned seen, int64_t *until_ns)
{
	int64_t now, left;
	bool    woken = false;

	if (atomic_load(&verdicts.given_up) || atomic_load(&verdicts.forking))
		return false;
	now = clock_ns(CLOCK_MONOTONIC);
	if (*until_ns == 0)
		*until_ns = now + WAIT_NS;
	left = *until_ns - now;
	if (left > 0 && unwind_wake_to_judge()) {
		futex_wait(&verdicts.settled, seen, left < TURN_NS ? left : TURN_NS);
		woken = true;
	} else
		atomic_store(&verdicts.given_up, true);
	return woken;
}

void
unwind_verdicts_fork(bool begins)
{
	atomic_store(&verdicts.forking, begins);
}

static void
fork_prepare(void)
{
	unwind_verdicts_fork(true);
	unwinders_fork_prepare();
}

static void
fork_parent(void)
{
	unwinders_fork_parent();
	unwind_verdicts_fork(false);
}

FORK_SLOT(FORK_UNWIND, fork_prepare, fork_parent, NULL);

void
unwind_verdicts_forked(void)
{
	atomic_store(&verdicts.wanted, true);
	unwind_verdicts_fork(false);
}
