/*
 * test_dwarf.c - debug information that is cut, changed or made to hurt.
 *
 * A library built three times (DWARF 4, DWARF 5, compressed) is read from a piece of
 * memory of exactly its size, cut at every few bytes and with bytes changed, with fixed
 * seeds.  What must not happen is a crash, an access outside of the piece or of one of
 * the arena's (under AddressSanitizer these are found), a reading without end, memory
 * over the limit, or memory not given back.
 */
#include <config.h>

#include <errno.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include <zlib.h>

#include "debug_file.h"
#include "dwarf/form.h"
#include "dwarf_feed.h"
#include "dwarf/section.h"
#include "skip.h"
#include "symbols_state.h"

#define LIMIT     ((size_t)32 << 20)
#define FLIPS     1500 /* variants of each file */
#define CPU_MAX_S 5.0  /* no single file may take longer; most take a millisecond */

static struct victim {
	const char    *name;
	unsigned char *data;
	size_t         size, debug, debug_end; /* where its debug sections are */
} victims[] = {
	{ .name = "libdwarf4" }, { .name = "libdwarf5" }, { .name = "libdwarfz" },
};

#define VICTIMS (sizeof(victims) / sizeof(*victims))

static uint32_t
next(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

static double
cpu_s(void)
{
	return (double)clock() / CLOCKS_PER_SEC;
}

static struct feed
feed_checked(const unsigned char *data, size_t size, size_t limit)
{
	double      start = cpu_s();
	struct feed f = feed_file(data, size, limit);

	assert_int_equal(f.lost, 0);
	assert_true(f.peak <= limit);
	assert_true(cpu_s() - start < CPU_MAX_S);
	return f;
}

static void
whole_files_have_lines_and_inlined_functions(void **state)
{
	(void)state;
	for (size_t i = 0; i < VICTIMS; i++) {
		struct feed f = feed_checked(victims[i].data, victims[i].size, LIMIT);

		assert_int_equal(f.status, 0);
		assert_true(f.lines > 20);
		assert_true(f.inlined > 20);
		assert_true(f.named > 20); /* the compiler's own functions have no line and no name */
	}
}

static void
a_file_cut_anywhere_is_no_danger(void **state)
{
	(void)state;
	for (size_t i = 0; i < VICTIMS; i++)
		for (size_t n = 0; n < victims[i].size; n += 53) {
			unsigned char *copy = malloc(n ? n : 1);

			assert_non_null(copy);
			memcpy(copy, victims[i].data, n);
			feed_checked(copy, n, LIMIT);
			free(copy);
		}
}

static void
changed_bytes_are_no_danger(void **state)
{
	(void)state;
	for (size_t i = 0; i < VICTIMS; i++) {
		const struct victim *v = &victims[i];
		unsigned char       *copy = malloc(v->size);
		uint32_t             seed = 7;

		assert_non_null(copy);
		for (unsigned k = 0; k < FLIPS; k++) {
			memcpy(copy, v->data, v->size);
			for (unsigned n = 1 + k % 20; n--;) {
				size_t   at = v->debug + next(&seed) % (v->debug_end - v->debug);
				uint32_t how = next(&seed) % 4;

				copy[at] = how == 0 ? 0 : how == 1 ? 255 : (unsigned char)next(&seed);
			}
			feed_checked(copy, v->size, LIMIT);
		}
		free(copy);
	}
}

/* Each four bytes of the debug sections in turn are the largest number. */
static void
absurd_numbers_are_no_danger(void **state)
{
	const struct victim *v = &victims[1];
	unsigned char       *copy = malloc(v->size);

	(void)state;
	assert_non_null(copy);
	for (size_t at = v->debug; at + 4 < v->debug_end; at += 5) {
		memcpy(copy, v->data, v->size);
		memset(copy + at, 255, 4);
		feed_checked(copy, v->size, LIMIT);
	}
	free(copy);
}

static void
every_limit_of_memory_is_kept(void **state)
{
	size_t lines = 0;

	(void)state;
	for (size_t i = 0; i < VICTIMS; i++)
		for (size_t limit = 0; limit < (size_t)4 << 20; limit = limit * 5 / 4 + 4096) {
			struct feed f = feed_checked(victims[i].data, victims[i].size, limit);

			/* A table that cannot be made for want of memory looks broken, too. */
			assert_true(f.status == 0 || f.status == -ENOMEM || f.status == -ENOEXEC);
			assert_true(f.status == 0 || f.lines <= lines || !lines);
			if (!f.status)
				lines = f.lines;
		}
	assert_true(lines > 0);
}

static void
a_section_that_claims_to_be_large_is_not_unpacked(void **state)
{
	struct victim *v = &victims[2];
	unsigned char *copy = malloc(v->size);
	ElfW(Ehdr)    *h = (ElfW(Ehdr) *)(void *)copy;
	unsigned       changed = 0;
	struct feed    f;

	(void)state;
	assert_non_null(copy);
	memcpy(copy, v->data, v->size);
	for (unsigned i = 1; i < h->e_shnum; i++) {
		ElfW(Shdr) s;
		ElfW(Chdr) c;

		memcpy(&s, copy + h->e_shoff + i * sizeof(s), sizeof(s));
		if (!(s.sh_flags & SHF_COMPRESSED))
			continue;
		memcpy(&c, copy + s.sh_offset, sizeof(c));
		c.ch_size = (uint64_t)1 << 40;
		memcpy(copy + s.sh_offset, &c, sizeof(c));
		changed++;
	}
	if (!changed) {
		free(copy);
		SKIP("this compiler does not compress debug sections");
	}
	f = feed_checked(copy, v->size, LIMIT);
	assert_int_equal(f.status, -ENOMEM);
	assert_int_equal(f.frames, 0);
	free(copy);
}

static void
numbers_end_with_their_piece(void **state)
{
	static const unsigned char bytes[] = { 0x80, 0x80, 0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0x40, 0x80 };
	struct dwarf_cursor        c = { bytes, bytes + sizeof(bytes), false };

	(void)state;
	assert_int_equal(dwarf_uleb(&c), 16384);
	assert_int_equal(dwarf_sleb(&c), -1); /* longer than 64 bits need */
	assert_int_equal(dwarf_sleb(&c), -64);
	assert_false(c.bad);
	assert_int_equal(dwarf_uleb(&c), 0); /* not ended */
	assert_true(c.bad);
	c = (struct dwarf_cursor){ bytes, bytes + 7, false };
	assert_int_equal(dwarf_number(&c, 3), 0x018080);
	assert_int_equal(dwarf_number(&c, 8), 0);
	assert_true(c.bad);
}

/* A section larger than what is kept whole is read through a window. */
static void
a_window_shows_what_the_file_has(void **state)
{
	struct arena_budget  budget = { 0, 400000 };
	struct arena         arena;
	struct image         img;
	struct dwarf_section s = { .image = &img };
	FILE                *f = tmpfile();
	unsigned char       *all = malloc(300000);
	uint32_t             seed = 3;

	(void)state;
	assert_true(f && all);
	for (size_t i = 0; i < 300000; i++)
		all[i] = (unsigned char)next(&seed);
	assert_int_equal(fwrite(all, 1, 300000, f), 300000);
	fflush(f);
	img = (struct image){ .fd = fileno(f), .size = 300000 };
	arena_init(&arena, &budget);
	s.size = 299000;
	s.offset = 1000;
	s.window = arena_alloc(&arena, DWARF_WINDOW);
	for (unsigned i = 0; i < 2000; i++) {
		uint64_t             at = next(&seed) % 310000, want = next(&seed) % 30000;
		size_t               n = 0;
		const unsigned char *p = dwarf_section_view(&s, at, want, &n);

		if (at >= s.size || !want) {
			assert_null(p);
			continue;
		}
		assert_non_null(p);
		assert_true(n > 0 && n <= want && n <= DWARF_WINDOW && at + n <= s.size);
		assert_true(n == want || n == DWARF_WINDOW || at + n == s.size);
		assert_memory_equal(p, all + 1000 + at, n);
	}
	arena_release(&arena);
	free(all);
	fclose(f);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
static long
rss_kb(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	long  pages = 0;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%*s %ld", &pages), 1);
	fclose(f);
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* Addresses of this program and of libc, as a profile has them. */
static size_t
request(void)
{
	struct symbols     *s;
	struct symbol_frame frames[SYMBOLS_FRAMES_MAX];
	uintptr_t           pcs[200];
	size_t              lines = 0;

	for (size_t i = 0; i < 200; i++)
		pcs[i] = (i & 1 ? (uintptr_t)&request : (uintptr_t)&strtoul) + i * 16;
	assert_int_equal(symbols_open(LIMIT, &s), 0);
	symbols_resolve(s, pcs, 200);
	for (size_t i = 0; i < 200; i++) {
		unsigned n = symbols_frames(s, pcs[i], frames, SYMBOLS_FRAMES_MAX);

		for (unsigned k = 0; k < n; k++)
			lines += frames[k].file && frames[k].line;
	}
	assert_int_equal(symbols_unlined(s), 0);
	assert_true(s->budget.used <= LIMIT);
	symbols_close(s);
	return lines;
}

static void
a_hundred_requests_leave_malloc_and_memory_as_they_were(void **state)
{
	struct mallinfo2 before, after;
	long             rss;
	void            *p;

	(void)state;
	request();
	rss = rss_kb(); /* before the next line: it uses malloc */
	before = mallinfo2();
	for (int i = 0; i < 100; i++)
		assert_true(request() > 20);
	after = mallinfo2();
	assert_int_equal(after.uordblks, before.uordblks);
	assert_int_equal(after.hblks, before.hblks);
	assert_int_equal(after.arena, before.arena);
	assert_true(rss_kb() - rss < 5 * 1024);
	/* Freeing one large block would have moved glibc's threshold above this size. */
	p = malloc(160 << 10);
	assert_non_null(p);
	assert_int_equal(mallinfo2().hblks, before.hblks + 1);
	free(p);
}
#endif

static int
setup(void **state)
{
	const char *build = getenv("top_builddir");

	(void)state;
	for (size_t i = 0; i < VICTIMS; i++) {
		struct victim *v = &victims[i];
		struct image   img;
		ElfW(Shdr)     s;
		char           path[4096];
		FILE          *f;

		snprintf(path, sizeof(path), "%s/tests/programs/.libs/%s.so", build ? build : ".", v->name);
		f = fopen(path, "rb");
		v->data = malloc(1 << 20);
		if (!f || !v->data) {
			fprintf(stderr, "cannot read %s\n", path);
			return -1;
		}
		v->size = fread(v->data, 1, 1 << 20, f);
		fclose(f);
		if (image_open_data(&img, v->data, v->size) < 0)
			return -1;
		v->debug = v->size;
		{
			static const char *const names[] = { ".debug_info", ".debug_abbrev", ".debug_line", ".debug_str",
				".debug_line_str", ".debug_ranges", ".debug_rnglists" };

			for (size_t n = 0; n < sizeof(names) / sizeof(*names); n++)
				if (!image_section_find(&img, names[n], &s)) {
					if (s.sh_offset < v->debug)
						v->debug = s.sh_offset;
					if (s.sh_offset + s.sh_size > v->debug_end)
						v->debug_end = s.sh_offset + s.sh_size;
				}
		}
		if (v->debug >= v->debug_end)
			return -1;
	}
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	for (size_t i = 0; i < VICTIMS; i++)
		free(victims[i].data);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
		/* First: the others free large blocks, which moves glibc's threshold. */
		cmocka_unit_test(a_hundred_requests_leave_malloc_and_memory_as_they_were),
#endif
		cmocka_unit_test(whole_files_have_lines_and_inlined_functions),
		cmocka_unit_test(a_file_cut_anywhere_is_no_danger),
		cmocka_unit_test(changed_bytes_are_no_danger),
		cmocka_unit_test(absurd_numbers_are_no_danger),
		cmocka_unit_test(every_limit_of_memory_is_kept),
		cmocka_unit_test(a_section_that_claims_to_be_large_is_not_unpacked),
		cmocka_unit_test(numbers_end_with_their_piece),
		cmocka_unit_test(a_window_shows_what_the_file_has),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
