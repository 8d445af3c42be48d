/*
 * line.c - the line table of one unit.
 *
 * A table is a small program that makes rows (address, file, line), in sequences of
 * rising addresses; a row holds up to the next one.  It is run once, next to the sorted
 * addresses that are looked for, and no row is kept.
 *
 * What a stranger would get wrong: a sequence of code that the linker has thrown away
 * begins at 0 and would lie over real code.  Files count from 1 in DWARF 4 and from 0
 * in 5.  Paths are joined as binutils and LLVM do it: "../" stays, and so does a
 * relative folder of the unit that is told twice, since what all tools call a file is
 * what a person searches for.
 *
 * Tests: tests/symbols/lines.t, tests/symbols/test_dwarf.c
 */
#include <config.h>

#include "line.h"

#include <errno.h>

#include "constants.h"

#define FORMATS_MAX 16          /* columns of a table of files; five are defined */
#define PART_MAX    4096        /* bytes of each of the three parts of a path */
#define ROWS_A_STEP 4           /* bytes of a program that count as one step of work */

struct dwarf_file {
	struct dwarf_value name;
	uint64_t           dir;
	const char        *path; /* once somebody has asked */
};

struct format {
	uint64_t content[FORMATS_MAX], form[FORMATS_MAX];
	unsigned count;
};

static void
read_format(struct dwarf_cursor *c, struct format *f)
{
	f->count = (unsigned)dwarf_number(c, 1);
	if (f->count > FORMATS_MAX) {
		c->bad = true;
		f->count = 0;
	}
	for (unsigned i = 0; i < f->count; i++) {
		f->content[i] = dwarf_uleb(c);
		f->form[i] = dwarf_uleb(c);
		/* A form without bytes would make a count without an end. */
		if (f->form[i] > UINT16_MAX || f->form[i] == DW_FORM_flag_present ||
		    f->form[i] == DW_FORM_implicit_const || f->form[i] == DW_FORM_indirect)
			c->bad = true;
	}
}

/* One table of version 5: of directories, or of files. */
static uint32_t
read_entries(struct dwarf_cursor *c, const struct dwarf_lines *l, struct arena *a,
	struct dwarf_value **dirs, struct dwarf_file **files)
{
	struct format f;
	uint64_t      count;

	read_format(c, &f);
	count = dwarf_uleb(c);
	c->bad |= f.count && count > (uint64_t)(c->end - c->p);
	if (c->bad || !f.count)
		return 0;
	if (dirs)
		*dirs = arena_array(a, (size_t)count, sizeof(**dirs));
	else
		*files = arena_array(a, (size_t)count, sizeof(**files));
	c->bad = dirs ? !*dirs : !*files; /* what follows is not found without it */
	for (uint64_t i = 0; i < count && !c->bad; i++)
		for (unsigned k = 0; k < f.count; k++) {
			struct dwarf_value v;

			dwarf_form(c, &l->encoding, (unsigned)f.form[k], 0, &v);
			if (f.content[k] == DW_LNCT_path && dirs)
				(*dirs)[i] = v;
			else if (f.content[k] == DW_LNCT_path)
				(*files)[i].name = v;
			else if (f.content[k] == DW_LNCT_directory_index && files)
				(*files)[i].dir = v.u;
		}
	return c->bad ? 0 : (uint32_t)count;
}

/* The tables before version 5: strings up to an empty one, which count from 1.  Run
 * twice: to count, and to fill in. */
static void
read_old_tables(struct dwarf_cursor *at, struct dwarf_lines *l, struct arena *a)
{
	static const struct dwarf_encoding any = { 4, 8, 4 };

	for (int pass = 0; pass < 2; pass++) {
		struct dwarf_cursor c = *at;
		struct dwarf_value  v;
		struct dwarf_file   f;

		l->dir_count = l->file_count = 1;
		for (;; l->dir_count++) {
			dwarf_form(&c, &any, DW_FORM_string, 0, &v);
			if (c.bad || !v.u)
				break;
			if (pass)
				l->dirs[l->dir_count] = v;
		}
		for (;; l->file_count++) {
			f = (struct dwarf_file){ .path = NULL };
			dwarf_form(&c, &any, DW_FORM_string, 0, &f.name);
			if (c.bad || !f.name.u)
				break;
			f.dir = dwarf_uleb(&c);
			dwarf_uleb(&c);
			dwarf_uleb(&c);
			if (pass)
				l->files[l->file_count] = f;
		}
		if (!pass) {
			l->dirs = arena_array(a, l->dir_count, sizeof(*l->dirs));
			l->files = arena_array(a, l->file_count, sizeof(*l->files));
			if (!l->dirs || !l->files)
				c.bad = true;
		}
		if (c.bad || pass) {
			*at = c;
			return;
		}
	}
}

static int
read_header(struct dwarf_lines *l, struct dwarf_cursor *c)
{
	struct dwarf_encoding *e = &l->encoding;
	const unsigned char   *after;
	uint64_t               size;

	e->version = (uint16_t)dwarf_number(c, 2);
	if (e->version < 2 || e->version > 5)
		return -ENOEXEC;
	e->address_size = l->unit->encoding.address_size;
	if (e->version >= 5) {
		e->address_size = (uint8_t)dwarf_number(c, 1);
		dwarf_number(c, 1); /* of a segment */
	}
	size = dwarf_number(c, e->offset_size);
	if (c->bad || size > (uint64_t)(c->end - c->p) || (e->address_size != 8 && e->address_size != 4))
		return -ENOEXEC;
	after = c->p + size;
	l->min_length = (uint8_t)dwarf_number(c, 1);
	l->max_ops = e->version >= 4 ? (uint8_t)dwarf_number(c, 1) : 1;
	dwarf_number(c, 1); /* default of is_stmt: every row counts here */
	l->line_base = (int8_t)dwarf_number(c, 1);
	l->line_range = (uint8_t)dwarf_number(c, 1);
	l->opcode_base = (uint8_t)dwarf_number(c, 1);
	if (c->bad || !l->line_range || !l->opcode_base)
		return -ENOEXEC;
	if (!l->max_ops)
		l->max_ops = 1;
	for (unsigned i = 1; i < l->opcode_base; i++)
		l->lengths[i] = (uint8_t)dwarf_number(c, 1);
	l->program = (struct dwarf_cursor){ after, c->end, false };
	c->end = after;
	return c->bad ? -ENOEXEC : 0;
}

int
dwarf_lines_open(struct dwarf_lines *l, struct dwarf *d, struct arena *scratch,
	const struct dwarf_unit *u, const struct dwarf_entry *root)
{
	size_t               n = 0;
	uint64_t             at = root->stmt_list.u, size;
	const char          *text;
	const unsigned char *p;
	struct dwarf_cursor  c;
	int                  r;

	*l = (struct dwarf_lines){ .d = d, .unit = u };
	text = dwarf_text(d, u, &root->comp_dir, &n);
	l->comp_dir = text && n ? strings_clean(d->texts, text, n) : NULL;
	if (root->stmt_list.class != DWARF_NUMBER)
		return -ENOENT;
	p = dwarf_section_view(&d->line, at, 12, &n);
	c = dwarf_cursor_of(p, n);
	size = dwarf_length(&c, &l->encoding.offset_size);
	if (c.bad)
		return -ENOEXEC;
	at += (uint64_t)(c.p - p);
	if (size > d->line.size - at)
		return -ENOEXEC;
	if (!dwarf_work(d, size / ROWS_A_STEP))
		return -EFBIG;
	p = dwarf_section_piece(&d->line, scratch, at, size);
	l->buf = arena_alloc(scratch, 3 * PART_MAX + 3);
	if (!p || !l->buf)
		return -ENOMEM;
	c = (struct dwarf_cursor){ p, p + size, false };
	r = read_header(l, &c);
	if (r < 0)
		return r;
	if (l->encoding.version >= 5) {
		l->dir_count = read_entries(&c, l, scratch, &l->dirs, NULL);
		l->file_count = c.bad ? 0 : read_entries(&c, l, scratch, NULL, &l->files);
	} else {
		read_old_tables(&c, l, scratch);
	}
	if (c.bad)
		l->dir_count = l->file_count = 0;
	return 0;
}

/* Adds a part to the path, behind a slash.  Returns where it ends now. */
static char *
add_part(char *at, const char *start, const char *text, size_t size)
{
	if (at > start && at[-1] != '/')
		*at++ = '/';
	if (size > PART_MAX)
		size = PART_MAX;
	memcpy(at, text, size);
	return at + size;
}

const char *
dwarf_lines_file(struct dwarf_lines *l, uint64_t number)
{
	struct dwarf_file *f;
	const char        *text;
	size_t             n = 0;
	char              *at = l->buf;

	if (number >= l->file_count)
		return NULL;
	f = &l->files[number];
	if (f->path)
		return f->path;
	text = dwarf_text(l->d, l->unit, &f->name, &n);
	if (!text || !n)
		return NULL;
	if (*text != '/') {
		text = f->dir < l->dir_count && (f->dir || l->encoding.version >= 5) ?
			dwarf_text(l->d, l->unit, &l->dirs[f->dir], &n) : NULL;
		if ((!text || *text != '/') && l->comp_dir)
			at = add_part(at, l->buf, l->comp_dir, strlen(l->comp_dir));
		if (text)
			at = add_part(at, l->buf, text, n);
		/* The directory may have been a view of the same section. */
		text = dwarf_text(l->d, l->unit, &f->name, &n);
		if (!text)
			return NULL;
	}
	at = add_part(at, l->buf, text, n);
	f->path = strings_clean(l->d->texts, l->buf, (size_t)(at - l->buf));
	return f->path;
}

/* The machine that makes rows, and the place among the addresses. */
struct machine {
	struct dwarf_lines *l;
	struct dwarf_want  *wants;
	size_t              count, next;
	uint64_t            address, file, line, op_index;
	uint64_t            last_address, last_file, last_line;
	bool                has_last, dead;
};

static void
reset(struct machine *m)
{
	m->address = m->op_index = 0;
	m->file = m->line = 1;
	m->has_last = m->dead = false;
}

/* A row: the last one holds up to here. */
static void
row(struct machine *m)
{
	if (!m->has_last) {
		m->dead = m->address <= 1 || !image_is_code(m->l->d->code, m->address);
		/* An address in front of the first want still finds it. */
		m->next = dwarf_want_first(m->wants, m->count, m->address);
	} else if (m->address < m->last_address) {
		m->next = dwarf_want_first(m->wants, m->count, m->address);
	} else if (!m->dead) {
		for (; m->next < m->count && m->wants[m->next].vaddr < m->address; m->next++) {
			struct dwarf_want *w = &m->wants[m->next];

			if (!dwarf_work(m->l->d, 1))
				return;
			if (w->has_line)
				continue;
			w->has_line = true;
			w->file = m->last_file < UINT32_MAX ? (uint32_t)m->last_file : UINT32_MAX;
			w->line = m->last_line <= INT32_MAX ? (uint32_t)m->last_line : 0;
		}
	}
	m->has_last = true;
	m->last_address = m->address;
	m->last_file = m->file;
	m->last_line = m->line;
}

static void
advance(struct machine *m, uint64_t operations)
{
	const struct dwarf_lines *l = m->l;

	if (l->max_ops == 1) {
		m->address += l->min_length * operations;
		return;
	}
	operations += m->op_index;
	m->address += l->min_length * (operations / l->max_ops);
	m->op_index = operations % l->max_ops;
}

static void
extended(struct machine *m, struct dwarf_cursor *c)
{
	uint64_t             size = dwarf_uleb(c);
	const unsigned char *start = c->p;

	if (!dwarf_skip(c, size) || !size)
		return;
	if (*start == DW_LNE_end_sequence) {
		row(m);
		reset(m);
	} else if (*start == DW_LNE_set_address) {
		struct dwarf_cursor argument = { start + 1, c->p, false };

		m->address = dwarf_number(&argument, size == 9 ? 8 : size == 5 ? 4 : 0);
		m->op_index = 0;
	}
}

static void
standard(struct machine *m, struct dwarf_cursor *c, unsigned opcode)
{
	switch (opcode) {
	case DW_LNS_copy:
		row(m);
		return;
	case DW_LNS_advance_pc:
		advance(m, dwarf_uleb(c));
		return;
	case DW_LNS_advance_line:
		m->line += (uint64_t)dwarf_sleb(c);
		return;
	case DW_LNS_set_file:
		m->file = dwarf_uleb(c);
		return;
	case DW_LNS_const_add_pc:
		advance(m, (255u - m->l->opcode_base) / m->l->line_range);
		return;
	case DW_LNS_fixed_advance_pc:
		m->address += dwarf_number(c, 2);
		m->op_index = 0;
		return;
	default: /* nothing we look at; the header says how long it is */
		for (unsigned i = 0; i < m->l->lengths[opcode]; i++)
			dwarf_uleb(c);
	}
}

void
dwarf_lines_run(struct dwarf_lines *l, struct dwarf_want *wants, size_t count)
{
	struct machine      m = { .l = l, .wants = wants, .count = count };
	struct dwarf_cursor c = l->program;

	reset(&m);
	while (!dwarf_at_end(&c) && !c.bad && *l->d->work) {
		unsigned opcode = *c.p++;

		if (opcode >= l->opcode_base) {
			opcode -= l->opcode_base;
			advance(&m, opcode / l->line_range);
			m.line += (uint64_t)(int64_t)(l->line_base + (int)(opcode % l->line_range));
			row(&m);
		} else if (opcode) {
			standard(&m, &c, opcode);
		} else {
			extended(&m, &c);
		}
	}
}
