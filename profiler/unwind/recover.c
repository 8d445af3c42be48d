/*
 * recover.c - a frame pointer that nobody has told, found on the stack.
 *
 * Of a blocked thread only sp and pc can be had.  A walk from there stops at the first
 * caller that keeps its frame by the frame pointer, unless a callee has saved it.  But
 * the pointer's value is an address on the stack, and what stands there is known:
 *
 *     fp + 8   the return address of this call: behind an instruction that calls
 *              the function the walk stands in
 *     fp       the caller's frame pointer
 *     ...      so many bytes as the function's first instructions push and subtract
 *     sp
 *
 * First the place is computed from those instructions, and must hold a return address
 * behind a call of this very function, or behind one through a pointer; a little above
 * it if the blocked call has arguments on the stack.  Where they are
 * too strange, all places are looked at, and only a single one behind a direct call of
 * this function will do.  No proof, no pointer: such a thread is signalled.
 *
 * What a stranger would get wrong:
 * - Left-overs of older calls look the same as live frames, so the lowest place that
 *   fits is not good enough, and a call through a pointer proves nothing by itself.
 * - The tables have no beginnings of functions.  Only right after the first "push %rbp"
 *   is the CFA sp + 16, so the last such row before pc tells.
 * - Code is read by the kernel (memory.c): it may be unloaded meanwhile.  A line of it is
 *   read once in a dump (struct unwind_code).
 *
 * Not on aarch64: there, rules seldom ask for the frame pointer, and what waits in libc
 * under poll, epoll_wait, read, nanosleep or a mutex has a frame that holds it beside x30.
 * What lacks is x30 itself, where the system call is made without a frame: syscall(),
 * semtimedop(), flock(), sendfile(), waits for a mutex with a time or with inherited
 * priority.  No return address of that call lies on the stack then, so there is nothing to
 * prove one by: such a thread is signalled.
 *
 * Tests: tests/threads/thousand_blocked.t, tests/threads/goroutine.t, tests/unwind/test_step.c.
 */
#include <config.h>

#include "recover.h"

#include "arch_recover.h"
#include "process.h"
#include "tables_lookup.h"

#include <string.h>
#include <sys/uio.h>

#define ARGUMENT_BYTES 64  /* of arguments pushed for the call that blocks */
#define SCAN_BYTES   65536  /* of stack above sp */

static const uint8_t *
code_line(struct unwind_code *c, uintptr_t at)
{
	size_t       slot = at / UNWIND_CODE_LINE % UNWIND_CODE_LINES;
	struct iovec local = { c->line[slot], UNWIND_CODE_LINE }, remote = { (void *)at, UNWIND_CODE_LINE };

	if (c->at[slot] == at && at)
		return c->line[slot];
	c->at[slot] = 0;
	if (c->memory ? !memory_read(c->memory, at, c->line[slot], UNWIND_CODE_LINE)
		      : process_vm_readv(process_memory_id(), &local, 1, &remote, 1, 0) != UNWIND_CODE_LINE)
		return NULL;
	c->at[slot] = at;
	return c->line[slot];
}

bool
unwind_code_copy(struct unwind_code *c, uintptr_t address, void *buf, size_t size)
{
	uint8_t *to = buf;

	while (size > 0) {
		size_t         skip = address % UNWIND_CODE_LINE, part = UNWIND_CODE_LINE - skip;
		const uint8_t *line = code_line(c, address - skip);

		if (!line)
			return false;
		if (part > size)
			part = size;
		memcpy(to, line + skip, part);
		to += part;
		address += part;
		size -= part;
	}
	return true;
}

/* The one place from low to high that has the return address of this call. */
static bool
find_between(const struct tables *t, struct unwind_code *c, struct unwind_reader *r, uintptr_t low, uintptr_t high, uintptr_t function,
	     bool by_pointer, uintptr_t *ret)
{
	uintptr_t ra, found = 0;

	for (uintptr_t fp = low; fp <= high && unwind_load(r, fp + 8, &ra); fp += 8) {
		enum unwind_call call = arch_call_before(t, c, ra, function);

		if (call != UNWIND_CALL_THIS && !(by_pointer && call == UNWIND_CALL_POINTER))
			continue;
		if (found)
			return false;
		found = fp;
	}
	if (found)
		*ret = found;
	return found != 0;
}

/* What its code says of the function that pc is in. */
static void
function_of(const struct tables *t, struct unwind_code *c, uintptr_t pc, uintptr_t *ret_begin, intptr_t *ret_bytes)
{
	size_t slot = pc * 0x9e3779b97f4a7c15ULL >> 48 & (UNWIND_CODE_FUNCTIONS - 1);

	if (c->function[slot].pc != pc) {
		c->function[slot].pc = pc;
		c->function[slot].begin = arch_function_begin(t, c, pc);
		c->function[slot].bytes = c->function[slot].begin ? arch_frame_bytes(c, c->function[slot].begin) : -1;
	}
	*ret_begin = c->function[slot].begin;
	*ret_bytes = c->function[slot].bytes;
}

bool
unwind_recover_fp(const struct tables *t, struct unwind_code *c, struct unwind_reader *r, uintptr_t sp, uintptr_t pc,
		  uintptr_t *ret)
{
	uintptr_t begin, fp;
	intptr_t  bytes;

	function_of(t, c, pc, &begin, &bytes);
	fp = sp + (uintptr_t)bytes;
	if (!begin)
		return false;
	if (bytes >= 0 && (find_between(t, c, r, fp, fp, begin, true, ret) ||
			   find_between(t, c, r, fp + 8, fp + ARGUMENT_BYTES, begin, true, ret)))
		return true;
	return find_between(t, c, r, sp, sp + SCAN_BYTES, begin, false, ret);
}
