/*
 * tables_code.c - where code is, whether or not a table describes it.
 *
 * A generation has all executable mappings, those without an object among them: code
 * made at run time, objects without unwind tables.  A step by the frame pointer is a guess
 * until the word it found is an address that a call returns to:
 *
 *     in an executable mapping, behind a call instruction, or the return from a handler
 *
 * What a stranger would get wrong:
 * - To be in executable memory is not enough: structures on the stack are full of the
 *   addresses of functions, and nobody returns to the first byte of one.
 * - A mapping may be gone since it was listed, so the bytes are asked about before they are
 *   read.  What was found is remembered for the generation's life.
 * - Without a generation (nobody has started one, or /proc cannot be read) the bytes alone
 *   must do.  So they must for a plugin that has just been loaded, until the next look: where
 *   a described frame says that its caller is, or beside code that is running.
 *
 * Tests: tests/test_unwind.c, tests/test_unwind_generated.c.
 */
#include <config.h>

#include "tables.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "tables_lookup.h"
#include "unwind_load.h"
#include "unwind_undescribed.h"

/* ---- the list ---- */

int
tables_ranges_room(struct tables *t, size_t count)
{
	size_t bytes = (count + 1) * sizeof(*t->ranges);

	t->ranges = tables_map(bytes);
	if (!t->ranges)
		return -ENOMEM;
	t->ranges_bytes = bytes;
	t->range_count = 0;
	return 0;
}

void
tables_ranges_put(struct tables *t, uintptr_t start, uintptr_t limit)
{
	struct tables_range *last = t->range_count ? &t->ranges[t->range_count - 1] : NULL;

	if (last && last->limit >= start) {
		if (last->limit < limit)
			last->limit = limit;
		return;
	}
	if ((t->range_count + 1) * sizeof(*last) <= t->ranges_bytes)
		t->ranges[t->range_count++] = (struct tables_range){ start, limit };
}

bool
tables_is_code(const struct tables *t, uintptr_t pc)
{
	size_t low = 0, high = t->range_count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (pc < t->ranges[middle].start)
			high = middle;
		else if (pc >= t->ranges[middle].limit)
			low = middle + 1;
		else
			return true;
	}
	return false;
}

/* ---- return addresses ---- */

#define BEFORE 8 /* bytes looked at: the longest call has seven, a question is about eight */

static bool
bytes_before(uintptr_t pc, unsigned char bytes[BEFORE])
{
	uintptr_t word;

	if (pc < BEFORE || !unwind_code_word(pc - BEFORE, &word))
		return false;
	memcpy(bytes, &word, BEFORE);
	return true;
}

#if defined(__x86_64__)
/* Is `length` bytes before the end a call through a register or memory: ff /2? */
static bool
is_call_through(const unsigned char *end, unsigned length)
{
	unsigned modrm = end[1 - (int)length], mod = modrm >> 6, rm = modrm & 7, bytes = 2;

	if (end[-(int)length] != 0xff || (modrm >> 3 & 7) != 2)
		return false;
	if (mod != 3) {
		bytes += rm == 4; /* a SIB byte follows */
		bytes += mod == 1 ? 1 : mod == 2 || rm == 5 ? 4 : 0;
		if (mod == 0 && rm == 4 && length >= 3 && (end[2 - (int)length] & 7) == 5)
			bytes += 4;
	}
	return bytes == length;
}

static bool
is_behind_call(const unsigned char bytes[BEFORE])
{
	const unsigned char *end = bytes + BEFORE;

	if (end[-5] == 0xe8)
		return true;
	for (unsigned length = 2; length <= 7; length++)
		if (is_call_through(end, length))
			return true;
	return false;
}

static bool
is_restorer(uintptr_t pc)
{
	static const unsigned char code[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 }; /* mov $15, %rax; syscall */
	uintptr_t                  word;

	return unwind_code_word(pc, &word) && memcmp(&word, code, sizeof(word)) == 0 &&
	       unwind_code_word(pc + 1, &word) && memcmp(&word, code + 1, sizeof(word)) == 0;
}
#elif defined(__aarch64__)
static bool
is_behind_call(const unsigned char bytes[BEFORE])
{
	uint32_t insn;

	memcpy(&insn, bytes + BEFORE - sizeof(insn), sizeof(insn));
	/* bl, blr, and blr with a signed pointer */
	return insn >> 26 == 0x25 || (insn & 0xfffffc1f) == 0xd63f0000 || (insn & 0xfefff800) == 0xd63f0800;
}

static bool
is_restorer(uintptr_t pc)
{
	return unwind_is_sigreturn(pc);
}
#else
static bool
is_behind_call(const unsigned char bytes[BEFORE])
{
	(void)bytes;
	return false;
}

static bool
is_restorer(uintptr_t pc)
{
	(void)pc;
	return false;
}
#endif

bool
tables_looks_return(uintptr_t pc)
{
	unsigned char bytes[BEFORE];

	if (!unwind_code_plausible(pc))
		return false;
	return (bytes_before(pc, bytes) && is_behind_call(bytes)) || is_restorer(pc);
}

bool
tables_is_return(const struct tables *t, uintptr_t pc)
{
	_Atomic uintptr_t *known = t ? &((struct tables *)(uintptr_t)t)->returns[tables_return_at(pc)] : NULL;

	if (!unwind_code_plausible(pc))
		return false; /* nor is 0 that of an empty place */
	if (known && atomic_load_explicit(known, memory_order_relaxed) == pc)
		return true;
	if ((t && !tables_is_code(t, pc - 1)) || !tables_looks_return(pc))
		return false;
	if (known)
		atomic_store_explicit(known, pc, memory_order_relaxed);
	return true;
}

bool
tables_is_entered(const struct tables *t, uintptr_t pc)
{
	return tables_row_begin(t, pc) == pc && tables_code(t, pc) != TABLES_CODE_NONE && !tables_is_return(t, pc);
}

bool
tables_is_signal_frame(const struct tables *t, uintptr_t pc)
{
	uint32_t code = tables_code(t, pc);

	return TABLES_CODE_KIND(code) == TABLES_CODE_PALETTE && tables_palette_row(TABLES_CODE_ROW(code))->signal_frame;
}
