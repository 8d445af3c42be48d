/*
 * unwind_recover.c - a frame pointer that nobody has told, found on the stack.
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
 * Tests: tests/threads.t, tests/serve_threads.t, tests/test_unwind_step.c.
 */
#include <config.h>

#include "unwind_recover.h"

#include "tables_lookup.h"
#include "thread_id.h"

#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define ROWS_MAX     256    /* looked at on the way back to a function's beginning */
#define ARGUMENT_BYTES 64  /* of arguments pushed for the call that blocks */
#define SCAN_BYTES   65536  /* of stack above sp */
#define CODE_BYTES   96     /* of a function's first instructions */
#define INSNS_MAX    32
#define CALL_BYTES   8      /* the longest call through a pointer has 7 */

#if defined(__x86_64__)

static const uint8_t *
code_line(struct unwind_code *c, uintptr_t at)
{
	size_t       slot = at / UNWIND_CODE_LINE % UNWIND_CODE_LINES;
	struct iovec local = { c->line[slot], UNWIND_CODE_LINE }, remote = { (void *)at, UNWIND_CODE_LINE };

	if (c->at[slot] == at && at)
		return c->line[slot];
	c->at[slot] = 0;
	if (c->memory ? !memory_read(c->memory, at, c->line[slot], UNWIND_CODE_LINE)
		      : process_vm_readv(thread_id_self(), &local, 1, &remote, 1, 0) != UNWIND_CODE_LINE)
		return NULL;
	c->at[slot] = at;
	return c->line[slot];
}

static bool
code_copy(struct unwind_code *c, uintptr_t address, void *buf, size_t size)
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

static int32_t
signed_32(const uint8_t *p)
{
	int32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* Where the function begins that pc is in; 0: it does not begin as frames do. */
static uintptr_t
function_begin(const struct tables *t, struct unwind_code *c, uintptr_t pc)
{
	static const uint8_t endbr[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	uintptr_t            begin;
	uint8_t              code[5];

	for (int i = 0; i < ROWS_MAX; i++) {
		uint32_t rules = tables_code(t, pc);

		begin = tables_row_begin(t, pc);
		if (rules == TABLES_CODE_NONE || !begin)
			return 0;
		if (TABLES_CODE_KIND(rules) == TABLES_CODE_PLAIN && !(rules & TABLES_CODE_FROM_FP) &&
		    TABLES_FIELD(rules, CFA) == 16) {
			if (!code_copy(c, begin - sizeof(code), code, sizeof(code)) || code[4] != 0x55)
				return 0;
			return memcmp(code, endbr, sizeof(endbr)) == 0 ? begin - sizeof(code) : begin - 1;
		}
		pc = begin - 1;
	}
	return 0;
}

/* ---- calls ---- */

enum call { CALL_NONE, CALL_OTHER, CALL_THIS, CALL_POINTER };

/* Is it the function, or a stub that jumps to it? */
static bool
leads_to(struct unwind_code *c, uintptr_t target, uintptr_t function)
{
	uint8_t   code[12];
	uintptr_t slot;
	size_t    i = 0;

	if (target == function)
		return true;
	if (!code_copy(c, target, code, sizeof(code)))
		return false;
	if (memcmp(code, "\xf3\x0f\x1e\xfa", 4) == 0)
		i = 4;
	if (code[i] == 0xf2)
		i++;
	if (code[i] != 0xff || code[i + 1] != 0x25)
		return false;
	slot = target + i + 6 + (uintptr_t)(intptr_t)signed_32(code + i + 2);
	return code_copy(c, slot, &slot, sizeof(slot)) && slot == function;
}

/* "call *...", of exactly so many bytes. */
static bool
is_pointer_call(const uint8_t *p, size_t size)
{
	size_t  need = 2;
	uint8_t mod, rm;

	if (size > 2 && (p[0] & 0xf0) == 0x40) {
		p++;
		size--;
	}
	if (p[0] != 0xff || (p[1] >> 3 & 7) != 2)
		return false;
	mod = p[1] >> 6;
	rm = p[1] & 7;
	if (mod != 3 && rm == 4)
		need++;
	if (mod == 1)
		need++;
	if (mod == 2 || (mod == 0 && (rm == 5 || (rm == 4 && size > 2 && (p[2] & 7) == 5))))
		need += 4;
	return need == size;
}

static enum call
call_before(const struct tables *t, struct unwind_code *c, uintptr_t ra, uintptr_t function)
{
	uint8_t   code[CALL_BYTES];
	uintptr_t slot;

	if (!unwind_code_plausible(ra) || tables_code(t, ra - 1) == TABLES_CODE_NONE || !code_copy(c, ra - sizeof(code), code, sizeof(code)))
		return CALL_NONE;
	if (code[3] == 0xe8)
		return leads_to(c, ra + (uintptr_t)(intptr_t)signed_32(code + 4), function) ? CALL_THIS : CALL_OTHER;
	if (code[2] == 0xff && code[3] == 0x15) { /* through the object's own table */
		slot = ra + (uintptr_t)(intptr_t)signed_32(code + 4);
		return code_copy(c, slot, &slot, sizeof(slot)) && slot == function ? CALL_THIS : CALL_OTHER;
	}
	for (size_t size = 2; size < sizeof(code); size++)
		if (is_pointer_call(code + sizeof(code) - size, size))
			return CALL_POINTER;
	return CALL_NONE;
}

/* ---- a function's first instructions ---- */

struct insn {
	const uint8_t *p, *end;
	bool           wide, reg_high, rm_high; /* REX.W, .R, .B */
	bool           bad;
};

static uint8_t
next(struct insn *i)
{
	if (i->p == i->end) {
		i->bad = true;
		return 0;
	}
	return *i->p++;
}

/* Skips the operand; its ModRM byte. */
static uint8_t
operand(struct insn *i)
{
	uint8_t modrm = next(i), mod = modrm >> 6, rm = modrm & 7, base = rm;
	int     skip = mod == 1 ? 1 : mod == 2 ? 4 : 0;

	if (mod == 3)
		return modrm;
	if (rm == 4)
		base = next(i) & 7;
	if (mod == 0 && base == 5)
		skip = 4;
	while (skip--)
		next(i);
	return modrm;
}

static int32_t
immediate(struct insn *i, int size)
{
	uint8_t b[4] = { 0 };

	for (int k = 0; k < size; k++)
		b[k] = next(i);
	return size == 1 ? (int8_t)b[0] : signed_32(b);
}

/* sub $n,%rsp and the like; everything else is a constant for something else. */
static void
arithmetic(struct insn *i, int size, intptr_t *pushed)
{
	uint8_t modrm = operand(i);
	int32_t n = immediate(i, size);

	if (modrm >> 6 != 3 || (modrm & 7) != 4 || i->rm_high)
		return;
	if ((modrm >> 3 & 7) == 5)
		*pushed += n;
	else if ((modrm >> 3 & 7) == 0)
		*pushed -= n;
	else
		i->bad = true; /* and $-32,%rsp */
}

/* Instructions with a ModRM byte and no constant; writes_rm: its operand is the target. */
static void
plain(struct insn *i, bool writes_rm)
{
	uint8_t modrm = operand(i);

	if (writes_rm ? modrm >> 6 == 3 && (modrm & 7) == 4 && !i->rm_high : (modrm >> 3 & 7) == 4 && !i->reg_high)
		i->bad = true; /* sp itself */
}

static void
two_byte(struct insn *i)
{
	uint8_t op = next(i);

	if ((op >= 0x10 && op <= 0x17) || op == 0x1f || op == 0x28 || op == 0x29 || (op >= 0x51 && op <= 0x6f) ||
	    (op >= 0x74 && op <= 0x7f && op != 0x77) || op == 0xef || op == 0xd6)
		operand(i); /* vector registers, or nothing */
	else if ((op >= 0x40 && op <= 0x4f) || op == 0xaf || op == 0xb6 || op == 0xb7 || op == 0xbe || op == 0xbf)
		plain(i, false);
	else
		i->bad = true;
}

/* One instruction that goes on to the next; else bad is set. */
static void
insn_read(struct insn *i, intptr_t *pushed)
{
	uint8_t op = next(i);

	while (op == 0x66 || op == 0x64 || op == 0xf2 || op == 0xf3)
		op = next(i);
	i->wide = i->reg_high = i->rm_high = false;
	if ((op & 0xf0) == 0x40) {
		i->wide = op & 8;
		i->reg_high = op & 4;
		i->rm_high = op & 1;
		op = next(i);
	}
	if (op >= 0x50 && op <= 0x57)
		*pushed += 8;
	else if (op == 0x83)
		arithmetic(i, 1, pushed);
	else if (op == 0x81)
		arithmetic(i, 4, pushed);
	else if (op == 0x0f)
		two_byte(i);
	else if (op == 0x84 || op == 0x85 || (op < 0x40 && (op & 0x3c) == 0x38))
		operand(i); /* tests write nothing */
	else if ((op < 0x40 && (op & 7) < 4) || op == 0x63 || (op >= 0x88 && op <= 0x8b) || op == 0x8d)
		plain(i, op != 0x63 && op != 0x8d && !(op & 2));
	else if (op >= 0xb8 && op <= 0xbf)
		immediate(i, 4), i->wide ? immediate(i, 4) : 0;
	else if (op == 0xc7)
		operand(i), immediate(i, 4);
	else if (op == 0xc6)
		operand(i), immediate(i, 1);
	else if (op != 0x90)
		i->bad = true;
}

/* Bytes between the frame pointer and sp, as the function's beginning makes them. */
static intptr_t
frame_bytes(struct unwind_code *c, uintptr_t begin)
{
	uint8_t     code[CODE_BYTES];
	struct insn i = { .p = code, .end = code + sizeof(code) };
	intptr_t    pushed = 0, before = 0;
	bool        framed = false;

	if (!code_copy(c, begin, code, sizeof(code)))
		return 0;
	if (memcmp(code, "\xf3\x0f\x1e\xfa", 4) == 0)
		i.p += 4;
	i.p++; /* push %rbp */
	for (int n = 0; n < INSNS_MAX; n++) {
		if (i.end - i.p >= 3 && (memcmp(i.p, "\x48\x89\xe5", 3) == 0 || memcmp(i.p, "\x48\x8b\xec", 3) == 0)) {
			framed = true;
			pushed = 0;
		}
		before = pushed;
		insn_read(&i, &pushed);
		if (i.bad)
			break;
	}
	return framed ? (i.bad ? before : pushed) : -1;
}

/* The one place from low to high that has the return address of this call. */
static bool
find_between(const struct tables *t, struct unwind_code *c, struct unwind_reader *r, uintptr_t low, uintptr_t high, uintptr_t function,
	     bool by_pointer, uintptr_t *ret)
{
	uintptr_t ra, found = 0;

	for (uintptr_t fp = low; fp <= high && unwind_load(r, fp + 8, &ra); fp += 8) {
		enum call call = call_before(t, c, ra, function);

		if (call != CALL_THIS && !(by_pointer && call == CALL_POINTER))
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
		c->function[slot].begin = function_begin(t, c, pc);
		c->function[slot].bytes = c->function[slot].begin ? frame_bytes(c, c->function[slot].begin) : -1;
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

#else

bool
unwind_recover_fp(const struct tables *t, struct unwind_code *c, struct unwind_reader *r, uintptr_t sp, uintptr_t pc,
		  uintptr_t *ret)
{
	(void)t, (void)c, (void)r, (void)sp, (void)pc, (void)ret;
	return false;
}

#endif
