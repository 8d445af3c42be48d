/*
 * names.c - looking up a function's name, and making an object's table for that.
 *
 *     names ours       random addresses of the C library's code, each asked for once
 *     names libllvm    the first name of libLLVM-14, 102 MB of code with 30,483 names
 */
#include <config.h>

#include <dlfcn.h>

#include "bench.h"
#include "symbols_state.h"

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

static int
names(void)
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

static int
build(const char *library, const char *function)
{
	struct symbol_frame frame;
	struct symbols     *s;
	int64_t             begin;
	void               *object = dlopen(library, RTLD_LAZY | RTLD_LOCAL), *in = object ? dlsym(object, function) : NULL;

	if (!in) {
		fprintf(stderr, "%s: not here\n", library);
		return BENCH_SKIPPED;
	}
	if (symbols_open(LIMIT, &s) < 0)
		bench_die("symbols_open");
	begin = bench_ns(CLOCK_THREAD_CPUTIME_ID);
	if (symbols_frames(s, (uintptr_t)in, &frame, 1) != 1 || strcmp(frame.name, function) != 0)
		bench_die(function);
	begin = bench_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
	printf("# %s: %zu bytes with the table\n", frame.object, s->budget.used);
	symbols_close(s);
	bench_print("symbol_build_libllvm_ms", (double)begin / 1e6, "ms");
	return 0;
}

int
main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "libllvm"))
		return build("libLLVM-14.so.1", "LLVMContextCreate");
	return names();
}
