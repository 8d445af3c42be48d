/*
 * heap.c - heap profiles of gperftools and jemalloc: lines of text, then the mappings.
 *
 * The values are those that go tool pprof makes of them: a sampled heap is scaled up by how probable it was that a
 * block was sampled.  jemalloc's dump, which go tool pprof does not read, is scaled the same way, as jeprof does.
 *
 * What a stranger would get wrong:
 *  - jemalloc repeats what a stack has for each thread; "t*" is all of them.
 *  - allocators' own functions are dropped by drop_frames, as of other files: read_drop_frames().
 *
 * Tests: tests/componentctl/legacy.t, test_read.c
 */
#include <config.h>

#include "draft.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#define HEAP     "heap profile:"
#define JEMALLOC "heap_v2/"

/* Functions that measure, and are not what is measured: names as pprof knows them. */
#define ALLOCATORS \
	"(__libc_|tc_)?(malloc|calloc|realloc|free|cfree|memalign|valloc|pvalloc)|(__|tc_)?posix_memalign|do_memalign|" \
	"tc_(new|delete)(array)?(_nothrow)?|tcmalloc::.*|BaseArena::.*|(::)?do_malloc(_no_errno|_pages)?|DoSampledAllocation|" \
	"MallocedMemBlock::MallocedMemBlock|_M_allocate|__builtin_(vec_)?(new|delete)|__gnu_cxx::new_allocator::allocate|" \
	"__malloc_alloc_template::allocate|simple_alloc::allocate|allocate|cpp_alloc|operator new(\\[\\])?|runtime\\..*|" \
	"malloc_zone_(malloc|calloc|valloc|realloc|memalign|free)"

static const char drop_heap[] = ALLOCATORS;
/* With jemalloc's own, where it is a part of the program; of the library all goes. */
static const char drop_jemalloc[] = ALLOCATORS
	"|(je_)?prof_(backtrace|tctx_create|alloc_prep)(_.*)?|je_.*|(calloc|malloc|realloc|fallback)_(default|impl).*";
static const char keep_heap[] = "runtime\\.(panic|reflectcall|call[0-9]*)";

/* What so much of a sample stands for. */
static void
scale(const struct legacy *l, int64_t *count, int64_t *bytes)
{
	double share;

	if (!*count || !*bytes)
		*count = *bytes = 0;
	if (!*count || l->period <= 1)
		return;
	share = 1 / (1 - exp(-((double)*bytes / (double)*count) / (double)l->period));
	*count = legacy_whole((double)*count * share);
	*bytes = legacy_whole((double)*bytes * share);
}

/* amounts: in use, allocated.  false: bytes of no block. */
static bool
set_values(const struct legacy *l, int64_t amounts[4], struct draft *d)
{
	int64_t *to = d->values;

	d->block_size = 0;
	for (int i = l->has_all ? 2 : 0; i >= 0; i -= 2, to += 2) {
		to[0] = amounts[i];
		to[1] = amounts[i + 1];
		if (!to[0] && to[1])
			return false;
		if (to[0])
			d->block_size = to[0] == -1 ? (int64_t)-(uint64_t)to[1] : to[1] / to[0];
		if (to[0] && l->is_sampled)
			scale(l, &to[0], &to[1]);
	}
	return true;
}

static int
begin_heap(struct legacy *l, const int64_t totals[4])
{
	static const struct pprof_type types[] = { { "alloc_objects", "count" }, { "alloc_space", "bytes" },
		{ "inuse_objects", "count" }, { "inuse_space", "bytes" }, { "objects", "count" }, { "space", "bytes" } };
	int r;

	l->has_all = (totals[2] != totals[0] && totals[2]) || (totals[3] != totals[1] && totals[3]);
	l->p->drop_frames = drop_heap;
	l->p->keep_frames = keep_heap;
	r = l->has_all ? legacy_set_types(l, types, 4, types[5]) : legacy_set_types(l, types + 4, 2, types[5]);
	return r ? r : legacy_make_room_for_lines(l);
}

/* Behind the '@' of the first line: how it was sampled. */
static bool
read_sampling(struct legacy *l, struct line *line)
{
	l->period = 1;
	if (legacy_take(line, "growth") || legacy_take(line, "fragmentation") || legacy_take(line, "heapprofile"))
		return true;
	l->is_sampled = legacy_take(line, "heapz_v2") || legacy_take(line, "heap_v2");
	if (!l->is_sampled && !legacy_take(line, "heap"))
		return false;
	if (line->at < line->end && *line->at != '/' && !isdigit((unsigned char)*line->at))
		return false;
	if (line->at < line->end && (legacy_take(line, "/"), line->at < line->end) && !legacy_take_number(line, &l->period))
		return false;
	/* The first version says how many bytes lie between two samples at most. */
	l->period = l->is_sampled ? l->period : l->period / 2;
	l->is_sampled = true;
	return true;
}

static int
parse_heap(struct legacy *l)
{
	struct line line;
	int64_t     amounts[4];
	int         r;

	if (!legacy_next_line(l, &line) || !legacy_take(&line, HEAP) || !legacy_take_amounts(&line, amounts) || !legacy_take(&line, "@"))
		return legacy_refuse(l, "is no heap profile: its first line has not 'heap profile: N: BYTES [N: BYTES] @ ...'");
	legacy_take(&line, "");
	if (legacy_begins(&line, "growth") || legacy_begins(&line, "fragmentation"))
		amounts[2] = amounts[3] = 0;
	if (!read_sampling(l, &line))
		return legacy_refuse(l, "is a heap profile of a kind that is not known: its first line ends in none of "
			"heap_v2, heapprofile, growthz");
	r = begin_heap(l, amounts);
	while (!r && legacy_next_line(l, &line) && !legacy_is_map(&line)) {
		struct draft d;

		if (line.at == line.end || *line.at == '#')
			continue;
		if (!legacy_take_amounts(&line, amounts) || !legacy_take(&line, "@"))
			return legacy_refuse(l, "is damaged, or cut off: a line has not 'N: BYTES [N: BYTES] @ ADDRESSES'");
		if (!set_values(l, amounts, &d))
			return legacy_refuse(l, "is damaged: it has bytes that are no block's");
		r = legacy_add_stack(l, &line, &d);
	}
	return r ? r : legacy_read_map(l, &line);
}

/* jemalloc: a line with the stack, then "t*: N: BYTES [N: BYTES]" for all threads, and a line for each. */
static int
parse_jemalloc(struct legacy *l)
{
	struct line line, stack = { .at = NULL };
	int64_t     amounts[4];
	int         r = 0;

	l->is_sampled = true;
	if (!legacy_next_line(l, &line) || !legacy_take(&line, JEMALLOC) || !legacy_take_number(&line, &l->period) || line.at != line.end)
		return legacy_refuse(l, "is no heap profile of jemalloc: its first line has not 'heap_v2/BYTES'");
	while (!r && legacy_next_line(l, &line) && !legacy_is_map(&line)) {
		struct draft d;

		if (legacy_take(&line, "@")) {
			stack = line;
			continue;
		}
		if (!legacy_take(&line, "t*:"))
			continue;
		if (!legacy_take_amounts(&line, amounts))
			return legacy_refuse(l, "is damaged, or cut off: a line has not 't*: N: BYTES [N: BYTES]'");
		if (!l->p->types)
			r = begin_heap(l, amounts);
		l->p->drop_frames = drop_jemalloc;
		if (!stack.at || r)
			continue;
		if (!set_values(l, amounts, &d))
			return legacy_refuse(l, "is damaged: it has bytes that are no block's");
		r = legacy_add_stack(l, &stack, &d);
		stack.at = NULL;
	}
	if (!r && !l->p->types)
		return legacy_refuse(l, "is cut off");
	return r ? r : legacy_read_map(l, &line);
}

/* The frames of jemalloc itself, which go where it has names, and here where it has none. */
static void
cut_jemalloc(struct pprof *p)
{
	for (size_t i = 0; i < p->sample_count; i++) {
		struct pprof_sample *s = &p->samples[i];

		for (; s->count > 1; s->stack++, s->count--) {
			const char *base = strrchr(s->stack[0]->object, '/');

			if (!base || strncmp(base, "/libjemalloc", 12))
				break;
		}
	}
}

static bool
is_heap(const char *data, size_t size)
{
	return legacy_begins(&(struct line){ data, data + size }, HEAP);
}

static bool
is_jemalloc(const char *data, size_t size)
{
	return legacy_begins(&(struct line){ data, data + size }, JEMALLOC);
}

const struct legacy_format legacy_heap = { .is = is_heap, .parse = parse_heap };
const struct legacy_format legacy_jemalloc = { .is = is_jemalloc, .parse = parse_jemalloc, .finish = cut_jemalloc };
