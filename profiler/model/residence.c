/*
 * residence.c - the table of resident memory, row by row.
 *
 * Tests: tests/memory/memory.t, tests/model/test_residence.c.
 */
#include <config.h>

#include "residence.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "pages.h"
#include "sort.h"
#include "stack_table.h"
#include "utf8.h"

#define ROWS_FIRST 256

void
residence_init(struct residence *r)
{
	memset(r, 0, sizeof(*r));
	r->budget.limit = RESIDENCE_MEMORY_MAX;
	r->allocator = "";
	arena_init(&r->arena, &r->budget);
	table_init(&r->index, &r->budget);
}

static bool
is_row(const void *wanted, uint64_t value)
{
	const struct {
		const struct residence     *r;
		const struct residence_row *row;
	} *w = wanted;
	const struct residence_row *row = &w->r->rows[value - 1];

	return row->class == w->row->class && row->stack == w->row->stack && !strcmp(row->raw, w->row->raw);
}

static int
row_new(struct residence *r, const struct residence_row *wanted, uint64_t key)
{
	struct residence_row *rows;
	size_t                size = strlen(wanted->raw);
	char                 *raw = arena_strndup(&r->arena, wanted->raw, size);
	char                 *name = raw && !utf8_is_clean(raw, size) ? utf8_clean(&r->arena, raw, size) : raw;

	if (!name)
		return -ENOMEM;
	if (r->count == r->room) {
		rows = pages_grow(r->rows, &r->room, ROWS_FIRST, sizeof(*rows));
		if (!rows)
			return -ENOMEM;
		r->rows = rows;
	}
	if (table_put(&r->index, key, r->count + 1))
		return -ENOMEM;
	r->rows[r->count] = *wanted;
	r->rows[r->count].name = name;
	r->rows[r->count].raw = raw;
	if (wanted->stack)
		stack_table_ref(wanted->stack);
	return (int)r->count++;
}

int
residence_row(struct residence *r, enum residence_class class, const char *name, uint32_t stack)
{
	const struct residence_row wanted = { .class = class, .raw = name, .stack = stack, .in_use = -1, .free = -1 };
	const struct {
		const struct residence     *r;
		const struct residence_row *row;
	} what = { r, &wanted };
	const uint64_t words[] = { class, stack, table_hash(0, name, strlen(name)) };
	uint64_t       key = table_hash(0, words, sizeof(words));
	uint64_t       there = table_find(&r->index, key, is_row, &what);

	return there ? (int)there - 1 : row_new(r, &wanted, key);
}

void
residence_note(struct residence *r, const char **list, const char *format, ...)
{
	char    text[512];
	va_list args;

	for (unsigned i = 0; i + 1 < RESIDENCE_WORDS_MAX; i++) {
		if (list[i])
			continue;
		va_start(args, format);
		vsnprintf(text, sizeof(text), format, args);
		va_end(args);
		list[i] = arena_strndup(&r->arena, text, strlen(text));
		return;
	}
}

const char *
residence_class_name(enum residence_class class)
{
	static const char *const names[RESIDENCE_CLASSES] = { "heap", "mappings", "stacks", "files", "shared memory",
		"profiler", "unexplained" };

	return names[class];
}

struct residence_row
residence_sum(const struct residence *r, enum residence_class class)
{
	struct residence_row sum = { .class = class, .name = residence_class_name(class), .in_use = -1, .free = -1 };

	for (size_t i = 0; i < r->count; i++) {
		const struct residence_row *row = &r->rows[i];

		if (row->class != class)
			continue;
		sum.resident += row->resident;
		sum.mapped += row->mapped;
		if (row->in_use >= 0)
			sum.in_use = (sum.in_use < 0 ? 0 : sum.in_use) + row->in_use;
		if (row->free >= 0)
			sum.free = (sum.free < 0 ? 0 : sum.free) + row->free;
	}
	return sum;
}

static bool
is_before(const struct residence_row *a, const struct residence_row *b)
{
	if (a->class != b->class)
		return a->class < b->class;
	if (a->resident != b->resident)
		return a->resident > b->resident;
	return strcmp(a->name, b->name) < 0;
}

HEAP_SORT(rows_sort, struct residence_row, is_before)

void
residence_sort(struct residence *r)
{
	rows_sort(r->rows, r->count);
	table_release(&r->index);
}

void
residence_release(struct residence *r)
{
	for (size_t i = 0; i < r->count; i++)
		if (r->rows[i].stack)
			stack_table_unref(r->rows[i].stack);
	pages_unmap(r->rows, r->room * sizeof(*r->rows));
	table_release(&r->index);
	arena_release(&r->arena);
}
