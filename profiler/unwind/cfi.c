/*
 * cfi.c - reads .eh_frame: CIEs, FDEs and their little programs.
 *
 * An FDE describes a function: a program whose instructions either advance the pc
 * or change how a register is found.  It runs after the initial instructions of
 * its CIE, which many FDEs share.  Each pc the program stops at gives a row.
 *
 * What a stranger would get wrong:
 * - Everything read here may be damaged: cfi_cursor.h never leaves its section, and the
 *   one who runs the program looks at `bad` once at the end.
 * - Only four rules of the many registers are kept (CFA, frame pointer, rbx or x19,
 *   return address); remember_state and restore_state nest, and are bounded here.
 * - Descriptions that overlap would cost the square of the section's size: of records so many bytes are run, and what
 *   is left counts as damaged.
 * - DW_CFA_GNU_args_size and the aarch64 sign toggle change no rule.
 *
 * Why not libunwind's parser: it is not reachable without its cursor, which takes
 * locks and allocates.
 *
 * Tests: tests/unwind/test_tables.c.
 */
#include <config.h>

#include "cfi.h"
#include "cfi_cursor.h"

#include <errno.h>
#include <string.h>

#define STATES_MAX 8 /* nested remember_state; compilers use one, assembly two */

const struct cfi_row cfi_row_none = { .signal_frame = false };

struct cie {
	size_t   offset; /* of its record; SIZE_MAX: none read yet */
	uint64_t code_align;
	int64_t  data_align;
	uint8_t  pointer_encoding;
	bool     augmented; /* 'z': FDEs have an augmentation length */
	bool     signal_frame;
	bool     usual; /* alignments that run_usual() counts with */
	uint64_t ra_reg;
	struct cfi_row initial; /* what its program leaves */
};

/* The last ones read: functions of a file with and without exceptions alternate. */
#define CIES 4
/* Times the size of .eh_frame: each function's record once, and a CIE's, which is no longer, for each. */
#define BYTES_RUN 4

struct cies {
	struct cie read[CIES];
	unsigned   next;
	size_t     extent; /* of .eh_frame: where the last function's description ends */
	uint64_t   left;   /* bytes of records that may be run */
};

/* ---- running ---- */

struct machine {
	const struct cie *cie;
	uintptr_t         pc;
	cfi_row_fn       *fn; /* NULL while the CIE's program runs */
	void             *arg;
	int               stop;
	bool              bad;
	unsigned          state_count;
	struct cfi_row    row, states[STATES_MAX];
};

/* All but the states, which are 300 bytes for each function. */
static inline void
machine_start(struct machine *m, const struct cie *cie, uintptr_t pc, cfi_row_fn *fn, void *arg)
{
	m->cie = cie;
	m->pc = pc;
	m->fn = fn;
	m->arg = arg;
	m->stop = 0;
	m->bad = false;
	m->state_count = 0;
}

static inline struct cfi_rule *
rule_of(struct machine *m, uint64_t reg)
{
	if (reg == CFI_REG_FP)
		return &m->row.fp;
	if (reg == CFI_REG_BASE)
		return &m->row.base;
	if (reg == CFI_REG_RA)
		return &m->row.ra;
	return NULL;
}

static inline void
rule_set(struct machine *m, uint64_t reg, enum cfi_kind kind, int64_t offset, uint64_t other)
{
	struct cfi_rule *rule = rule_of(m, reg);

	if (!rule)
		return;
	if (offset > INT32_MAX || offset < INT32_MIN || other >= CFI_REGS) {
		m->bad = true;
		return;
	}
	*rule = (struct cfi_rule){ .kind = (uint8_t)kind, .reg = (uint8_t)other, .offset = (int32_t)offset };
}

static void
rule_restore(struct machine *m, uint64_t reg)
{
	if (reg == CFI_REG_FP)
		m->row.fp = m->cie->initial.fp;
	else if (reg == CFI_REG_BASE)
		m->row.base = m->cie->initial.base;
	else if (reg == CFI_REG_RA)
		m->row.ra = m->cie->initial.ra;
}

static inline void
cfa_set(struct machine *m, uint64_t reg, int64_t offset)
{
	if (reg >= CFI_REGS || offset > INT32_MAX || offset < INT32_MIN) {
		m->bad = true;
		return;
	}
	m->row.cfa = (struct cfi_rule){ .kind = CFI_REGISTER, .reg = (uint8_t)reg, .offset = (int32_t)offset };
}

/* An expression stays where it is: rules keep its place in the section. */
static void
expression_set(struct machine *m, struct cursor *c, struct cfi_rule *rule, enum cfi_kind kind)
{
	uint64_t size = read_uleb(c);

	if (c->bad || size > c->end - c->at || size > UINT16_MAX || c->at > INT32_MAX) {
		m->bad = true;
		return;
	}
	if (rule)
		*rule = (struct cfi_rule){ .kind = (uint8_t)kind, .expr_size = (uint16_t)size, .offset = (int32_t)c->at };
	c->at += (size_t)size;
}

static inline void
advance(struct machine *m, uint64_t delta)
{
	uint64_t bytes;

	if (__builtin_mul_overflow(delta, m->cie->code_align, &bytes) || bytes > UINT32_MAX) {
		m->bad = true;
		return;
	}
	if (m->fn && !m->stop && bytes > 0)
		m->stop = m->fn(m->arg, m->pc, &m->row);
	m->pc += (uintptr_t)bytes;
}

static inline void
state_push(struct machine *m)
{
	if (m->state_count == STATES_MAX)
		m->bad = true;
	else
		m->states[m->state_count++] = m->row;
}

static inline void
state_pop(struct machine *m)
{
	if (m->state_count == 0)
		m->bad = true;
	else
		m->row = m->states[--m->state_count];
}

static void
run_extended(struct machine *m, struct cursor *c, uint8_t op)
{
	uint64_t reg, other;
	int64_t  align = m->cie->data_align;

	switch (op) {
	case 0x00: break; /* nop */
	case 0x01: { /* set_loc */
		uintptr_t to = read_pointer(c, m->cie->pointer_encoding, 0);

		if (to < m->pc)
			m->bad = true;
		else
			advance(m, (to - m->pc) / (m->cie->code_align ? m->cie->code_align : 1));
		break;
	}
	case 0x02: advance(m, read_fixed(c, 1)); break;
	case 0x03: advance(m, read_fixed(c, 2)); break;
	case 0x04: advance(m, read_fixed(c, 4)); break;
	case 0x05: reg = read_uleb(c); rule_set(m, reg, CFI_AT_CFA, (int64_t)read_uleb(c) * align, 0); break;
	case 0x06: rule_restore(m, read_uleb(c)); break;
	case 0x07: rule_set(m, read_uleb(c), CFI_UNDEFINED, 0, 0); break;
	case 0x08: rule_set(m, read_uleb(c), CFI_SAME, 0, 0); break;
	case 0x09: reg = read_uleb(c); other = read_uleb(c); rule_set(m, reg, CFI_REGISTER, 0, other); break;
	case 0x0a: state_push(m); break; /* remember_state */
	case 0x0b: state_pop(m); break;  /* restore_state */
	case 0x0c: reg = read_uleb(c); cfa_set(m, reg, (int64_t)read_uleb(c)); break;
	case 0x0d: /* def_cfa_register */
		reg = read_uleb(c);
		if (m->row.cfa.kind != CFI_REGISTER)
			m->bad = true;
		else
			cfa_set(m, reg, m->row.cfa.offset);
		break;
	case 0x0e: cfa_set(m, m->row.cfa.reg, (int64_t)read_uleb(c)); break;
	case 0x0f: expression_set(m, c, &m->row.cfa, CFI_IS_EXPR); break;
	case 0x10: reg = read_uleb(c); expression_set(m, c, rule_of(m, reg), CFI_AT_EXPR); break;
	case 0x11: reg = read_uleb(c); rule_set(m, reg, CFI_AT_CFA, read_sleb(c) * align, 0); break;
	case 0x12: reg = read_uleb(c); cfa_set(m, reg, read_sleb(c) * align); break;
	case 0x13: cfa_set(m, m->row.cfa.reg, read_sleb(c) * align); break;
	case 0x14: reg = read_uleb(c); rule_set(m, reg, CFI_IS_CFA, (int64_t)read_uleb(c) * align, 0); break;
	case 0x15: reg = read_uleb(c); rule_set(m, reg, CFI_IS_CFA, read_sleb(c) * align, 0); break;
	case 0x16: reg = read_uleb(c); expression_set(m, c, rule_of(m, reg), CFI_IS_EXPR); break;
	case 0x2d: break; /* aarch64: the return address is signed from here, or no more */
	case 0x2e: read_uleb(c); break; /* GNU_args_size */
	case 0x2f: reg = read_uleb(c); rule_set(m, reg, CFI_AT_CFA, -(int64_t)read_uleb(c) * align, 0); break;
	default: m->bad = true;
	}
}

/* Any instruction. */
static __attribute__((noinline)) void
run_slow(struct machine *m, struct cursor *c)
{
	uint8_t op = (uint8_t)read_fixed(c, 1);

	switch (op >> 6) {
	case 1: advance(m, op & 0x3f); break;
	case 2: rule_set(m, op & 0x3f, CFI_AT_CFA, (int64_t)read_uleb(c) * m->cie->data_align, 0); break;
	case 3: rule_restore(m, op & 0x3f); break;
	default: run_extended(m, c, op);
	}
	m->bad |= c->bad;
}

/* What compilers write, with operands of a byte, and CFA offsets of two: at once, for there
 * are millions.  Returns where another one stands, or the end. */
static __attribute__((noinline)) const uint8_t *
run_usual(struct machine *m, const uint8_t *at, const uint8_t *end)
{
	uint32_t         code_align = (uint32_t)m->cie->code_align;
	int32_t          data_align = (int32_t)m->cie->data_align;
	uintptr_t        pc = m->pc;
	struct cfi_rule *rule;

	for (; at < end; at++) {
		uint32_t op = *at, delta;
		int32_t  offset;

		if (op - 0x41 < 0x3f || (op == 0x02 && end - at > 1 && at[1])) { /* advance_loc, advance_loc1: not by 0 */
			m->stop = m->fn(m->arg, pc, &m->row);
			if (m->stop)
				break;
			delta = op == 0x02 ? *++at : op - 0x40;
			pc += delta * code_align;
		} else if (op == 0x0e) { /* def_cfa_offset */
			if (end - at < 3)
				break;
			offset = *++at;
			if (offset >= 0x80 && at[1] >= 0x80) {
				at--;
				break;
			}
			if (offset >= 0x80)
				offset += (*++at - 1) * 0x80;
			m->row.cfa = (struct cfi_rule){ .kind = CFI_REGISTER, .reg = m->row.cfa.reg, .offset = offset };
		} else if (op - 0x80 < 0x40) { /* offset */
			if (end - at < 2 || at[1] >= 0x80)
				break;
			at++;
			rule = rule_of(m, op - 0x80);
			if (rule)
				*rule = (struct cfi_rule){ .kind = CFI_AT_CFA, .offset = *at * data_align };
		} else if (op >= 0xc0) /* restore */
			rule_restore(m, op - 0xc0);
		else if (op == 0x0a)
			state_push(m);
		else if (op == 0x0b)
			state_pop(m);
		else if (op == 0x0c && end - at > 2 && at[1] < CFI_REGS && at[2] < 0x80) { /* def_cfa */
			m->row.cfa = (struct cfi_rule){ .kind = CFI_REGISTER, .reg = at[1], .offset = at[2] };
			at += 2;
		} else if (op != 0x00) /* nop */
			break;
	}
	m->pc = pc;
	return at;
}

static void
run(struct machine *m, const struct cfi_section *frames, size_t from, size_t to)
{
	struct cursor c = { frames, from, to, false };

	m->bad = from > to || to > frames->size;
	while (!m->bad && !m->stop && c.at < to) {
		if (m->cie->usual)
			c.at = (size_t)(run_usual(m, frames->data + c.at, frames->data + to) - frames->data);
		if (c.at < to && !m->stop)
			run_slow(m, &c);
	}
}

/* ---- descriptions ---- */

/* What holds where a function begins. */
static bool
cie_run(struct cie *cie, const struct cfi_section *frames, size_t from, size_t to)
{
	struct machine m;

	machine_start(&m, cie, 0, NULL, NULL);
	m.row = cfi_row_none;
	m.row.fp.kind = CFI_SAME;
	m.row.base.kind = CFI_SAME;
	m.row.ra.kind = CFI_SAME;
	m.row.signal_frame = cie->signal_frame;
	run(&m, frames, from, to);
	cie->initial = m.row;
	return !m.bad;
}

/* A record that is to be run. */
static bool
record_begin(struct cies *cies, struct cursor *c)
{
	if (!read_record(c) || c->end - c->at > cies->left)
		return false;
	cies->left -= c->end - c->at;
	return true;
}

static bool
cie_read(struct cies *cies, struct cie *cie, const struct cfi_section *frames, size_t offset)
{
	struct cursor c = { frames, offset, frames->size, false };
	const char   *augmentation;
	size_t        augmentation_end = 0;
	uint8_t       version;

	memset(cie, 0, sizeof(*cie));
	cie->offset = SIZE_MAX;
	if (offset >= frames->size || !record_begin(cies, &c) || read_fixed(&c, 4) != 0)
		return false;
	version = (uint8_t)read_fixed(&c, 1);
	augmentation = (const char *)frames->data + c.at;
	while (read_fixed(&c, 1) != 0) {}
	if (c.bad || (version != 1 && version != 3))
		return false;
	cie->code_align = read_uleb(&c);
	cie->data_align = read_sleb(&c);
	cie->ra_reg = version == 1 ? read_fixed(&c, 1) : read_uleb(&c);
	for (; *augmentation && !c.bad; augmentation++) {
		switch (*augmentation) {
		case 'z': {
			uint64_t size = read_uleb(&c);

			if (c.bad || size > c.end - c.at)
				return false;
			cie->augmented = true;
			augmentation_end = c.at + (size_t)size;
			break;
		}
		case 'R': cie->pointer_encoding = (uint8_t)read_fixed(&c, 1); break;
		case 'P': read_pointer(&c, (uint8_t)read_fixed(&c, 1), 0); break;
		case 'L': read_fixed(&c, 1); break;
		case 'S': cie->signal_frame = true; break;
		case 'B': break; /* aarch64: the other pointer signing key */
		default: return false;
		}
	}
	if (c.bad || cie->ra_reg != CFI_REG_RA)
		return false;
	if (!cie_run(cie, frames, augmentation_end ? augmentation_end : c.at, c.end))
		return false;
	cie->usual = cie->code_align <= 4 && cie->data_align >= -8 && cie->data_align <= 8;
	cie->offset = offset;
	return true;
}

static void
cies_start(struct cies *cies, const struct cfi_section *frames)
{
	cies->left = (uint64_t)frames->size * BYTES_RUN;
	cies->next = 0;
	cies->extent = 0;
	for (unsigned i = 0; i < CIES; i++)
		cies->read[i].offset = SIZE_MAX;
}

/* NULL: damaged, or of a form that nobody writes. */
static const struct cie *
cie_find(struct cies *cies, const struct cfi_section *frames, size_t offset)
{
	struct cie *cie;

	for (unsigned i = 0; i < CIES; i++)
		if (cies->read[i].offset == offset)
			return &cies->read[i];
	cie = &cies->read[cies->next++ % CIES];
	return cie_read(cies, cie, frames, offset) ? cie : NULL;
}

/* Where a function begins, and how long it is. */
static inline void
read_range(struct cursor *c, uint8_t encoding, uintptr_t *ret_begin, uintptr_t *ret_size)
{
	if (encoding == POINTER_PCREL_SDATA4 && c->end - c->at >= 2 * sizeof(int32_t)) {
		const uint8_t *at = c->section->data + c->at;

		*ret_begin = c->section->address + c->at + (uintptr_t)(intptr_t)int_at(at);
		*ret_size = (uintptr_t)(intptr_t)int_at(at + sizeof(int32_t));
		c->at += 2 * sizeof(int32_t);
		return;
	}
	*ret_begin = read_pointer(c, encoding, 0);
	*ret_size = read_pointer(c, encoding & 0x0f, 0);
}

/* One FDE: rows for [pc, *ret_end).  0, -EINVAL when damaged, or what fn returned. */
static int
fde_parse(struct cies *cies, const struct cfi_section *frames, size_t offset, uintptr_t pc, cfi_row_fn *fn, void *arg,
	  uintptr_t *ret_end)
{
	struct cursor     c = { frames, offset, frames->size, false };
	struct machine    m;
	const struct cie *cie;
	size_t            id_at;
	uint64_t          id, size;
	uintptr_t         begin, range;

	if (!record_begin(cies, &c))
		return -EINVAL;
	if (c.end > cies->extent)
		cies->extent = c.end;
	id_at = c.at;
	id = read_fixed(&c, 4);
	if (c.bad || id == 0 || id > id_at)
		return -EINVAL;
	cie = cie_find(cies, frames, id_at - (size_t)id);
	if (!cie)
		return -EINVAL;
	read_range(&c, cie->pointer_encoding, &begin, &range);
	if (cie->augmented) {
		size = read_uleb(&c);
		if (c.bad || size > c.end - c.at)
			return -EINVAL;
		c.at += (size_t)size;
	}
	if (c.bad || begin != pc || range > UINT32_MAX)
		return -EINVAL;
	machine_start(&m, cie, pc, fn, arg);
	m.row = cie->initial;
	run(&m, frames, c.at, c.end);
	*ret_end = pc + range;
	if (m.stop)
		return m.stop;
	if (m.bad)
		return -EINVAL;
	return m.pc < *ret_end ? fn(arg, m.pc, &m.row) : 0;
}

int
cfi_parse(const struct cfi_section *header, const struct cfi_section *frames, cfi_row_fn *fn, void *arg,
	  size_t *ret_bad, size_t *ret_extent)
{
	struct cursor c = { header, 0, header->size, false };
	struct cies   cies;
	uint8_t       version, pointer_encoding, count_encoding, table_encoding;
	const uint8_t *entry;
	uintptr_t     covered = 0;
	uint64_t      count, i;
	int           err = 0;

	cies_start(&cies, frames);
	*ret_bad = *ret_extent = 0;
	version = (uint8_t)read_fixed(&c, 1);
	pointer_encoding = (uint8_t)read_fixed(&c, 1);
	count_encoding = (uint8_t)read_fixed(&c, 1);
	table_encoding = (uint8_t)read_fixed(&c, 1);
	read_pointer(&c, pointer_encoding, header->address);
	count = read_pointer(&c, count_encoding, header->address);
	/* Every linker writes this one form; anything else is not worth a search. */
	if (c.bad || version != 1 || table_encoding != POINTER_DATAREL_SDATA4 || count > (c.end - c.at) / 8)
		return -ENOENT;
	entry = header->data + c.at;
	for (i = 0; i < count && !err; i++, entry += 8) {
		uintptr_t pc = header->address + (uintptr_t)(intptr_t)int_at(entry);
		uintptr_t fde = header->address + (uintptr_t)(intptr_t)int_at(entry + 4);
		uintptr_t end = pc;

		if (pc < covered || fde < frames->address || fde - frames->address >= frames->size) {
			(*ret_bad)++;
			continue;
		}
		if (covered && pc > covered)
			err = fn(arg, covered, &cfi_row_none);
		if (!err)
			err = fde_parse(&cies, frames, fde - frames->address, pc, fn, arg, &end);
		if (err == -EINVAL) {
			(*ret_bad)++;
			err = fn(arg, pc, &cfi_row_none);
			end = end > pc ? end : pc + 1;
		}
		/* A length that is wrong hides none of those that follow. */
		if (i + 1 < count) {
			uintptr_t next = header->address + (uintptr_t)(intptr_t)int_at(entry + 8);

			end = next > pc && next < end ? next : end;
		}
		covered = end;
	}
	if (!err && covered)
		err = fn(arg, covered, &cfi_row_none);
	*ret_extent = cies.extent;
	return err;
}

int
cfi_functions(const struct cfi_section *frames, cfi_function_fn *fn, void *arg)
{
	struct cies   cies;
	struct cursor c = { frames, 0, frames->size, false };

	cies_start(&cies, frames);
	while (frames->size - c.at >= sizeof(int32_t) && int_at(frames->data + c.at) != 0) {
		size_t            record = c.at, id_at, end;
		uint64_t          id;
		const struct cie *cie;
		uintptr_t         pc;

		if (!read_record(&c))
			return -EINVAL;
		id_at = c.at;
		end = c.end;
		id = read_fixed(&c, 4);
		cie = id != 0 && id <= id_at ? cie_find(&cies, frames, id_at - (size_t)id) : NULL;
		pc = cie ? read_pointer(&c, cie->pointer_encoding, 0) : 0;
		if (cie && !c.bad)
			fn(arg, pc, record);
		c = (struct cursor){ frames, end, frames->size, false };
	}
	return 0;
}
