/*
 * names.c - looking up a function's name, once its object's table is there.
 *
 *     names ours
 *
 * Random addresses of the C library's code, each asked for once.
 */
#include <config.h>

#include "bench.h"
#include "symbols.h"

#define ADDRESSES 20000
#define LIMIT     ((size_t)64 << 20)

static uint64_t seed = 88172645463325252ULL;

static uintptr_t
draw(const struct symbol_mapping *m)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return m->start + seed % (m->limit - m->start);
}

int
main(void)
{
	static uintptr_t             pcs[ADDRESSES];
	struct symbol_frame          frames[SYMBOLS_FRAMES_MAX];
	const struct symbol_mapping *m;
	struct symbols              *s;
	int64_t                      begin;
	unsigned                     named = 0;

	if (symbols_open(LIMIT, &s) < 0)
		bench_die("symbols_open");
	m = symbols_mapping(s, (size_t)symbols_mapping_find(s, (uintptr_t)strtod));
	begin = bench_ns(CLOCK_THREAD_CPUTIME_ID);
	symbols_frames(s, m->start, frames, SYMBOLS_FRAMES_MAX);
	printf("# %s: the table took %.1f ms\n", m->path, (double)(bench_ns(CLOCK_THREAD_CPUTIME_ID) - begin) / 1e6);
	for (unsigned i = 0; i < ADDRESSES; i++)
		pcs[i] = draw(m);
	begin = bench_ns(CLOCK_THREAD_CPUTIME_ID);
	for (unsigned i = 0; i < ADDRESSES; i++)
		named += symbols_frames(s, pcs[i], frames, SYMBOLS_FRAMES_MAX) == 1 && frames[0].named;
	begin = bench_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
	symbols_close(s);
	if (named < ADDRESSES / 2)
		bench_die("those were no names");
	bench_print("symbol_name_us", (double)begin / 1e3 / ADDRESSES, "us");
	return 0;
}
