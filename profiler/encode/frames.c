/*
 * frames.c - what the encoders write for one address of a stack.
 *
 * Three kinds of addresses: our own words ([lost samples] and the like), code in a
 * mapping, which symbols.c names in any case, and code outside of all, which gets its
 * number for a name, so that no reader finds a frame without a function.
 *
 * Tests: tests/encode/test_pprof.c
 */
#include <config.h>

#include "frames.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LIST_FIRST ((size_t)1024) /* addresses; 8 KiB */

const uintptr_t frames_lost_stack[1] = { STACK_PSEUDO_LOST };
static const uintptr_t nothing_known[1] = { STACK_PSEUDO_TRUNCATED };

void
frames_of(struct symbols *s, uintptr_t pc, struct frames *ret)
{
	const char *word = stack_pseudo_name(pc);

	ret->mapping = -1;
	ret->pseudo = word != NULL;
	ret->address = word ? pc : symbols_address(s, pc);
	ret->count = word ? 0 : symbols_frames(s, pc, ret->frame, SYMBOLS_FRAMES_MAX);
	if (ret->count) {
		ret->mapping = symbols_mapping_find(s, pc);
		return;
	}
	if (!word)
		snprintf(ret->text, sizeof(ret->text), "0x%lx", (unsigned long)ret->address);
	ret->frame[0] = (struct symbol_frame){ .name = word ? word : ret->text };
	ret->frame[0].system_name = ret->frame[0].name;
	ret->count = 1;
}

int
frames_list_add(struct frames_list *l, uintptr_t pc)
{
	if (l->count == l->room) {
		size_t     room = l->room ? l->room * 2 : LIST_FIRST;
		uintptr_t *pcs = arena_map(l->budget, room * sizeof(*pcs));

		if (!pcs)
			return -ENOMEM;
		if (l->count)
			memcpy(pcs, l->pcs, l->count * sizeof(*pcs));
		arena_unmap(l->budget, l->pcs, l->room * sizeof(*pcs));
		l->pcs = pcs;
		l->room = room;
	}
	l->pcs[l->count++] = pc;
	return 0;
}

void
frames_list_release(struct frames_list *l)
{
	arena_unmap(l->budget, l->pcs, l->room * sizeof(*l->pcs));
	l->pcs = NULL;
	l->count = l->room = 0;
}

int
frames_list_add_stack(struct frames_list *l, struct table *seen, uint32_t stack)
{
	unsigned         n;
	const uintptr_t *pcs = frames_stack(stack, &n);
	int              r = 0;

	for (unsigned k = 0; k < n && !r; k++) {
		if (table_get(seen, pcs[k]))
			continue;
		r = table_put(seen, pcs[k], 1);
		if (!r)
			r = frames_list_add(l, pcs[k]);
	}
	return r;
}

void
frames_resolve(const struct profile *p, struct symbols *s)
{
	struct arena_budget budget = { 0, ENCODE_MEMORY_MAX };
	struct frames_list  list = { .budget = &budget };
	struct table        seen;
	int                 r = 0;

	table_init(&seen, &budget);
	for (size_t i = 0; i < p->count && !r; i++)
		r = frames_list_add_stack(&list, &seen, p->samples[i].stack);
	symbols_resolve(s, list.pcs, list.count);
	frames_list_release(&list);
	table_release(&seen);
}

void
frames_resolve_dump(const struct dump *d, struct symbols *s, struct arena_budget *budget)
{
	size_t     n = d->pc_count, size = (d->pc_count + d->count + 1) * sizeof(uintptr_t);
	uintptr_t *pcs = arena_map(budget, size);
	unsigned   count;

	if (!pcs) {
		symbols_resolve(s, d->pcs, n);
		return;
	}
	if (n > 0)
		memcpy(pcs, d->pcs, n * sizeof(*pcs));
	for (size_t i = 0; i < d->count; i++)
		if (d->threads[i].creator)
			pcs[n++] = frames_stack(d->threads[i].creator, &count)[0];
	symbols_resolve(s, pcs, n);
	arena_unmap(budget, pcs, size);
}

const uintptr_t *
frames_stack(uint32_t stack, unsigned *ret_count)
{
	unsigned         count = 0;
	const uintptr_t *pcs = stack_table_pcs(stack, &count);

	if (!pcs || !count) {
		*ret_count = 1;
		return nothing_known;
	}
	*ret_count = count < STACK_FRAMES_MAX ? count : STACK_FRAMES_MAX;
	return pcs;
}

unsigned
frames_type(const struct profile *p)
{
	for (unsigned i = 0; p->default_type && i < p->type_count; i++)
		if (!strcmp(p->types[i].type, p->default_type))
			return i;
	return p->type_count - 1;
}

bool
frames_lost(const struct profile *p, struct profile_sample *ret)
{
	if (!p->lost || p->lost_told)
		return false;
	*ret = (struct profile_sample){ .stack = 0 };
	for (unsigned i = 0; i < p->type_count; i++) {
		const struct profile_type *t = &p->types[i];

		if (!strncmp(t->type, "inuse_", 6))
			continue;
		if (!strcmp(t->unit, "count"))
			ret->values[i] = (int64_t)p->lost;
		else if (p->period_type.unit && !strcmp(t->unit, p->period_type.unit))
			ret->values[i] = (int64_t)p->lost * p->period;
	}
	return true;
}
