/*
 * functions.c - where a function begins and ends, and which ones it goes on in.
 *
 * A name would say less: functions that are not exported have none in a stripped object,
 * and names are of a room that collectors do not see.  The search table of .eh_frame_hdr has the
 * begin of each function, and is mapped.
 *
 * What a stranger would get wrong:
 * - A call at a function's very end is a jump: glibc's pthread_mutex_timedlock() is nothing
 *   but one, and a thread that waits there has another function on its stack.
 * - Jumps are looked for at each byte where instructions have no fixed size.  What is none
 *   leads to where a function begins by a chance of one in millions.
 *
 * Tests: tests/unwind/test_functions.c.
 */
#include <config.h>

#include "functions.h"

#include "arch_code.h"
#include "tables.h"

#define HEADER_COUNT 8  /* where .eh_frame_hdr has the number of its entries ... */
#define HEADER_TABLE 12 /* ... and those */

/* Of the search table; both count from tables_section.header_base. */
struct entry {
	int32_t begin, description;
};

static bool
begin_read(const struct memory *m, const struct tables_section *s, uint32_t i, uintptr_t *ret)
{
	struct entry e;

	if (!memory_read(m, s->header + HEADER_TABLE + i * sizeof(e), &e, sizeof(e)))
		return false;
	*ret = s->header_base + (uintptr_t)(intptr_t)e.begin;
	return true;
}

bool
functions_around(const struct memory *m, uintptr_t pc, struct functions_range *ret)
{
	struct tables_section  s;
	struct functions_range f = { 0, 0 };
	uint32_t               count, low = 0, high;
	uintptr_t              begin;

	if (!tables_section_of(pc, &s) || s.header_size < HEADER_TABLE ||
	    !memory_read(m, s.header + HEADER_COUNT, &count, sizeof(count)) ||
	    count > (s.header_size - HEADER_TABLE) / sizeof(struct entry))
		return false;
	f.end = s.end;
	for (high = count; low < high;) {
		uint32_t middle = low + (high - low) / 2;

		if (!begin_read(m, &s, middle, &begin))
			return false;
		if (begin <= pc) {
			low = middle + 1;
			f.begin = begin;
		} else {
			high = middle;
			f.end = begin;
		}
	}
	if (!f.begin)
		return false;
	*ret = f;
	return true;
}

static bool
is_among(const struct functions_range *all, size_t count, uintptr_t begin)
{
	for (size_t i = 0; i < count; i++)
		if (all[i].begin == begin)
			return true;
	return false;
}

size_t
functions_jumped_to(const struct memory *m, const struct functions_range *f, struct functions_range *ret, size_t max)
{
	unsigned char          code[FUNCTIONS_CODE_MAX];
	size_t                 size = f->end - f->begin, count = 0;
	struct functions_range to;

	if (size > sizeof(code))
		size = sizeof(code);
	size = memory_read_some(m, f->begin, code, size);
	for (size_t i = 0; i < size && count < max; i++) {
		uintptr_t target = arch_jump_target(code + i, size - i, f->begin + i);

		if (target && target - f->begin >= f->end - f->begin && !is_among(ret, count, target) &&
		    functions_around(m, target, &to) && to.begin == target)
			ret[count++] = to;
	}
	return count;
}
