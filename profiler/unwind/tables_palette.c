/*
 * tables_palette.c - every distinct set of unwind rules once, and its number.
 *
 * Rules of the usual form are a code that says all (tables_lookup.h).  The others are
 * few and repeat: a code holds a number of 16 bits, and the palette each of them once.
 * Expressions' bytes are copied to a pool beside it.
 *
 * What a stranger would get wrong: rows and pool only grow, and what stands in them
 * never changes, because a signal handler may be reading them; both lie in one
 * mapping that is touched only as far as it is used.
 *
 * Tests: tests/unwind/test_tables.c, tests/unwind/test_refresh.c.
 */
#include <config.h>

#include "tables_lookup.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "pages.h"
#include "table.h"

#define RULES_MAX 65535U            /* what 16 bits name; 0 is "unknown" */
#define INDEX_MAX (2 * (RULES_MAX + 1))
#define POOL_MAX  ((size_t)1 << 20) /* bytes of expressions */
#define SCAN_MAX  ((size_t)4 << 30) /* bytes of them that one build looks through */

static struct {
	struct cfi_row *rows;
	uint32_t       *index; /* hash to row, open addressing */
	uint8_t        *pool;
	size_t          pool_used, map_bytes, scan_left;
	atomic_uint     count;
} palette;

int
tables_palette_start(void)
{
	size_t rows = (RULES_MAX + 1) * sizeof(struct cfi_row);
	size_t index = INDEX_MAX * sizeof(uint32_t);
	char  *p;

	palette.scan_left = SCAN_MAX;
	if (palette.rows)
		return 0;
	/* Touched only as far as used. */
	p = pages_map_sparse(rows + index + POOL_MAX);
	if (!p)
		return -errno;
	palette.index = (uint32_t *)(void *)(p + rows);
	palette.pool = (uint8_t *)p + rows + index;
	palette.rows = (struct cfi_row *)(void *)p;
	palette.rows[0] = cfi_row_none;
	palette.map_bytes = rows + index + POOL_MAX;
	atomic_store(&palette.count, 1);
	return 0;
}

/* The expression's bytes, once in the pool; -1 when it is full, or was looked through too often. */
static int32_t
pool_add(const uint8_t *bytes, size_t size)
{
	uint8_t *found;
	size_t   scanned;

	if (palette.scan_left == 0)
		return -1;
	found = palette.pool_used ? memmem(palette.pool, palette.pool_used, bytes, size) : NULL;
	scanned = found ? (size_t)(found - palette.pool) + size : palette.pool_used;
	palette.scan_left -= scanned < palette.scan_left ? scanned : palette.scan_left;
	if (!found) {
		if (POOL_MAX - palette.pool_used < size)
			return -1;
		found = memcpy(palette.pool + palette.pool_used, bytes, size);
		palette.pool_used += size;
	}
	return (int32_t)(found - palette.pool);
}

static bool
rule_pool(struct cfi_rule *rule, const struct cfi_section *frames)
{
	if (rule->kind != CFI_AT_EXPR && rule->kind != CFI_IS_EXPR)
		return true;
	rule->offset = pool_add(frames->data + rule->offset, rule->expr_size);
	return rule->offset >= 0;
}

static uint32_t
row_find(const struct cfi_row *row)
{
	uint64_t h = table_hash(0, row, sizeof(*row));
	uint32_t i, at, n = atomic_load(&palette.count);

	for (i = (uint32_t)(h >> 16); (at = palette.index[i % INDEX_MAX]) != 0; i++)
		if (memcmp(&palette.rows[at], row, sizeof(*row)) == 0)
			return at;
	if (n > RULES_MAX)
		return 0;
	memcpy(&palette.rows[n], row, sizeof(*row));
	palette.index[i % INDEX_MAX] = n;
	atomic_store(&palette.count, n + 1);
	return n;
}

uint32_t
tables_palette_add(const struct cfi_row *given, const struct cfi_section *frames)
{
	struct cfi_row row;
	uint32_t       at;

	memset(&row, 0, sizeof(row)); /* padding too: rows are compared as bytes */
	row.cfa = given->cfa;
	row.fp = given->fp;
	row.base = given->base;
	row.ra = given->ra;
	row.signal_frame = given->signal_frame;
	if (!rule_pool(&row.cfa, frames) || !rule_pool(&row.fp, frames) || !rule_pool(&row.base, frames) ||
	    !rule_pool(&row.ra, frames))
		return 0;
	at = row_find(&row);
	return at ? at << 2 | TABLES_CODE_PALETTE : TABLES_CODE_NONE;
}

void
tables_palette_drop(void)
{
	void *old = palette.rows;

	palette.rows = NULL; /* first: a child may be forked in the midst of munmap() */
	pages_unmap(old, palette.map_bytes);
	palette.pool_used = 0;
	atomic_store(&palette.count, 0);
}

size_t
tables_palette_count(void)
{
	return atomic_load(&palette.count);
}

size_t
tables_palette_bytes(void)
{
	return tables_palette_count() * sizeof(struct cfi_row) + palette.pool_used;
}

const struct cfi_row *
tables_palette_row(uint16_t rule)
{
	return &palette.rows[rule];
}

const uint8_t *
tables_expression(const struct cfi_rule *rule)
{
	return palette.pool + rule->offset;
}
