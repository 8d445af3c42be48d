/*
 * expression.c - the value of a DWARF expression in a frame.
 *
 * Assembly (OpenSSL's, the PLT, libc's signal return) says by expressions what the
 * plain rules cannot.  They are run on a small stack of our own; every load is checked
 * like any other of the walk, and steps and depth are bounded.
 *
 * What a stranger would get wrong: a register that the walk does not follow is not zero
 * but unknown, and ends the expression.
 *
 * Tests: tests/unwind/test_tables.c, tests/unwind/test_bad_registers.c.
 */
#include <config.h>

#include "frame.h"

#include <stdbool.h>
#include <string.h>

#include "tables.h"
#include "varint.h"

#define EXPRESSION_STACK 5 /* deepest in use: 4, of the PLT */
#define EXPRESSION_STEPS 64

struct bytes {
	const uint8_t *at, *end;
	bool           bad;
};

static uint64_t
bytes_fixed(struct bytes *b, unsigned size)
{
	uint64_t v = 0;

	if ((size_t)(b->end - b->at) < size) {
		b->bad = true;
		return 0;
	}
	memcpy(&v, b->at, size);
	b->at += size;
	return v;
}

static uint64_t
bytes_leb(struct bytes *b, bool is_signed)
{
	return varint_read(&b->at, b->end, is_signed, &b->bad);
}

struct stack {
	uintptr_t v[EXPRESSION_STACK];
	unsigned  n;
	bool      bad;
};

static void
push(struct stack *s, uintptr_t v)
{
	if (s->n == EXPRESSION_STACK)
		s->bad = true;
	else
		s->v[s->n++] = v;
}

static uintptr_t
pop(struct stack *s)
{
	if (s->n == 0) {
		s->bad = true;
		return 0;
	}
	return s->v[--s->n];
}

static __attribute__((noinline)) void /* a handler has little stack */
expression_binary(struct stack *s, uint8_t op)
{
	uintptr_t b = pop(s), a = pop(s);

	switch (op) {
	case 0x1a: push(s, a & b); break;
	case 0x1c: push(s, a - b); break;
	case 0x1e: push(s, a * b); break;
	case 0x21: push(s, a | b); break;
	case 0x22: push(s, a + b); break;
	case 0x24: push(s, b < 64 ? a << b : 0); break;
	case 0x25: push(s, b < 64 ? a >> b : 0); break;
	case 0x26: push(s, (uintptr_t)((intptr_t)a >> (b < 63 ? b : 63))); break;
	case 0x27: push(s, a ^ b); break;
	case 0x29: push(s, a == b); break;
	case 0x2a: push(s, (intptr_t)a >= (intptr_t)b); break;
	case 0x2b: push(s, (intptr_t)a > (intptr_t)b); break;
	case 0x2c: push(s, (intptr_t)a <= (intptr_t)b); break;
	case 0x2d: push(s, (intptr_t)a < (intptr_t)b); break;
	case 0x2e: push(s, a != b); break;
	default: s->bad = true;
	}
}

static void
expression_register(struct stack *s, const struct unwind_frame *f, uint64_t reg, uint64_t offset)
{
	if (reg >= CFI_REGS || !UNWIND_KNOWN(f, reg))
		s->bad = true;
	else
		push(s, f->regs[reg] + (uintptr_t)offset);
}

static void
expression_step(struct stack *s, struct bytes *b, uint8_t op, struct unwind_reader *r, const struct unwind_frame *f)
{
	uintptr_t v;
	uint64_t  reg;

	if (op >= 0x30 && op <= 0x4f) { /* lit */
		push(s, op - 0x30U);
		return;
	}
	if (op >= 0x70 && op <= 0x8f) { /* breg */
		expression_register(s, f, op - 0x70U, bytes_leb(b, true));
		return;
	}
	switch (op) {
	case 0x06: /* deref */
		if (!unwind_load(r, pop(s), &v))
			s->bad = true;
		else
			push(s, v);
		break;
	case 0x08: push(s, bytes_fixed(b, 1)); break;
	case 0x09: push(s, (uintptr_t)(intptr_t)(int8_t)bytes_fixed(b, 1)); break;
	case 0x0a: push(s, bytes_fixed(b, 2)); break;
	case 0x0b: push(s, (uintptr_t)(intptr_t)(int16_t)bytes_fixed(b, 2)); break;
	case 0x0c: push(s, bytes_fixed(b, 4)); break;
	case 0x0d: push(s, (uintptr_t)(intptr_t)(int32_t)bytes_fixed(b, 4)); break;
	case 0x0e:
	case 0x0f: push(s, bytes_fixed(b, 8)); break;
	case 0x10: push(s, bytes_leb(b, false)); break;
	case 0x11: push(s, bytes_leb(b, true)); break;
	case 0x12: v = pop(s); push(s, v); push(s, v); break;
	case 0x13: pop(s); break;
	case 0x23: v = pop(s); push(s, v + bytes_leb(b, false)); break;
	case 0x92: reg = bytes_leb(b, false); expression_register(s, f, reg, bytes_leb(b, true)); break;
	case 0x96: break; /* nop */
	default: expression_binary(s, op);
	}
}

bool
unwind_expression(const struct cfi_rule *rule, struct unwind_reader *r, const struct unwind_frame *f, const uintptr_t *cfa,
		  uintptr_t *ret)
{
	struct bytes b = { .at = tables_expression(rule) };
	struct stack s = { .n = 0 };

	b.end = b.at + rule->expr_size;
	if (cfa)
		push(&s, *cfa);
	for (unsigned i = 0; b.at < b.end && !s.bad && !b.bad; i++) {
		if (i == EXPRESSION_STEPS)
			return false;
		expression_step(&s, &b, (uint8_t)bytes_fixed(&b, 1), r, f);
	}
	if (s.bad || b.bad || s.n == 0)
		return false;
	*ret = s.v[s.n - 1];
	return true;
}
