/*
 * test_read.c - files that were made to harm their reader: damaged anywhere, cut off anywhere, or small and
 * unpacking to gigabytes; and those of gperftools and jemalloc.  What is read is shown, and written and read again, too.
 * Under AddressSanitizer the arena's pieces have borders.
 *
 * The damage is the same in each run.
 */
#include <config.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

#include "draft.h"
#include "legacy.h"
#include "merge.h"
#include "read.h"
#include "top.h"
#include "write.h"

#define ROUNDS 20000

/* Two functions, one inlined into the other, in an object; a third address without a name. */
static const unsigned char good[] = {
	0x0a, 4, 0x08, 1, 0x10, 2, /* sample_type: cpu, nanoseconds */
	0x12, 11, 0x0a, 2, 1, 2, 0x12, 1, 5, 0x1a, 2, 0x08, 1, /* sample: locations 1 2, value 5, label */
	0x12, 7, 0x0a, 2, 2, 2, 0x12, 1, 7, /* recursion */
	0x1a, 10, 0x08, 1, 0x10, 0x10, 0x18, 0x20, 0x28, 3, 0x30, 1, /* mapping 1 */
	0x22, 16, 0x08, 1, 0x10, 1, 0x18, 0x11, 0x22, 4, 0x08, 1, 0x10, 9, 0x22, 2, 0x08, 2, /* location 1: two lines */
	0x22, 6, 0x08, 2, 0x10, 1, 0x18, 0x12, /* location 2: no line */
	0x2a, 8, 0x08, 1, 0x10, 4, 0x18, 4, 0x20, 3, /* functions */
	0x2a, 6, 0x08, 2, 0x10, 5, 0x18, 5,
	0x32, 0, 0x32, 3, 'c', 'p', 'u', 0x32, 11, 'n', 'a', 'n', 'o', 's', 'e', 'c', 'o', 'n', 'd', 's',
	0x32, 4, '/', 'l', 'i', 'b', 0x32, 15, '_', 'Z', 'N', '3', 'f', 'o', 'o', 'I', 'i', 'E', '3', 'b', 'a', 'r', 'v',
	0x32, 4, 'm', 'a', 'i', 'n', 0x32, 7, '(', 'm', '|', 'f', ')', '.', '*',
	0x38, 6, 0x40, 5, 0x48, 1, 0x50, 10, 0x6a, 1, 5, /* drop_frames, keep_frames, time, duration, comment */
};

/* Less the whole file, twice: as a base and as -diff_base has it. */
static int
look_at_difference(const struct pprof *p, struct text *out, struct text *notes, struct component_error *err)
{
	struct pprof              base, both;
	const struct merge_source sources[] = { { p, 1, false }, { &base, -1, false }, { &base, -1, true } };
	int                       r = read_profile(good, sizeof(good), &base, err);

	assert_int_equal(r, 0);
	r = merge_profiles(sources, 3, &both, err);
	if (!r) {
		assert_int_equal(read_drop_frames(&both, err), 0);
		r = top_print(&both, &(struct view){ .tree = true, .rows = 2 }, out, notes, err);
	}
	if (!r && top_print(&both, &(struct view){ .peek = "a" }, out, notes, err) < 0)
		err->text[0] = '\0';
	read_release(&both);
	read_release(&base);
	return r;
}

/* One that has no type of the file above. */
static void
merge_with_itself(const struct pprof *p)
{
	struct component_error    err = COMPONENT_ERROR_INIT;
	struct pprof              both;
	const struct merge_source sources[] = { { p, 1, false }, { p, -1, true } };

	merge_profiles(sources, 2, &both, &err);
	read_release(&both);
}

static int
keep(void *arg, const void *data, size_t size)
{
	text_add_bytes(arg, data, size);
	return 0;
}

static void
assert_same_stack(const struct pprof *a, const struct pprof *b, size_t i)
{
	const struct pprof_sample *s = &a->samples[i], *t = &b->samples[i];

	assert_int_equal(s->count, t->count);
	for (uint32_t k = 0; k < s->count; k++)
		assert_int_equal(s->stack[k] - a->locations, t->stack[k] - b->locations);
	assert_memory_equal(s->values, t->values, a->type_count * sizeof(*s->values));
	assert_int_equal(s->labels_size, t->labels_size);
	assert_memory_equal(s->labels, t->labels, s->labels_size);
	assert_int_equal(s->is_base, t->is_base);
}

static void
assert_same_location(const struct pprof *a, const struct pprof *b, size_t i)
{
	const struct pprof_location *l = &a->locations[i], *m = &b->locations[i];

	assert_string_equal(l->object, m->object);
	assert_int_equal(l->mapping ? l->mapping - a->mappings : -1, m->mapping ? m->mapping - b->mappings : -1);
	assert_int_equal(l->address, m->address);
	assert_int_equal(l->is_folded, m->is_folded);
	assert_int_equal(l->count, m->count);
	for (uint32_t k = 0; k < l->count; k++) {
		assert_int_equal(l->functions[k] - a->functions, m->functions[k] - b->functions);
		assert_memory_equal(&l->lines[k], &m->lines[k], sizeof(l->lines[k]));
	}
}

static void
assert_same_tables(const struct pprof *a, const struct pprof *b)
{
	for (size_t i = 0; i < a->mapping_count; i++) {
		const struct pprof_mapping *m = &a->mappings[i], *n = &b->mappings[i];

		assert_true(m->start == n->start && m->limit == n->limit && m->offset == n->offset);
		assert_true(m->has_functions == n->has_functions && m->has_files == n->has_files);
		assert_true(m->has_lines == n->has_lines && m->has_inlined == n->has_inlined);
		assert_string_equal(m->file, n->file);
		assert_string_equal(m->build_id, n->build_id);
	}
	for (size_t i = 0; i < a->function_count; i++) {
		assert_string_equal(a->functions[i].name, b->functions[i].name);
		assert_string_equal(a->functions[i].system_name, b->functions[i].system_name);
		assert_string_equal(a->functions[i].file, b->functions[i].file);
		assert_int_equal(a->functions[i].start_line, b->functions[i].start_line);
	}
	for (size_t i = 0; i < a->type_count; i++) {
		assert_string_equal(a->types[i].type, b->types[i].type);
		assert_string_equal(a->types[i].unit, b->types[i].unit);
	}
	for (size_t i = 0; i < a->comment_count; i++)
		assert_string_equal(a->comments[i], b->comments[i]);
}

static void
assert_same(const struct pprof *a, const struct pprof *b)
{
	assert_true(a->type_count == b->type_count && a->usual == b->usual && a->sample_count == b->sample_count);
	assert_true(a->mapping_count == b->mapping_count && a->function_count == b->function_count);
	assert_true(a->location_count == b->location_count && a->comment_count == b->comment_count);
	assert_true(a->time_ns == b->time_ns && a->duration_ns == b->duration_ns && a->period == b->period);
	assert_string_equal(a->period_type.type, b->period_type.type);
	assert_string_equal(a->period_type.unit, b->period_type.unit);
	assert_string_equal(a->drop_frames, b->drop_frames);
	assert_string_equal(a->keep_frames, b->keep_frames);
	assert_string_equal(a->object, b->object);
	assert_string_equal(a->build_id, b->build_id);
	assert_same_tables(a, b);
	for (size_t i = 0; i < a->location_count; i++)
		assert_same_location(a, b, i);
	for (size_t i = 0; i < a->sample_count; i++)
		assert_same_stack(a, b, i);
}

/* And read again it is equal. */
static void
write_and_read(const struct pprof *p)
{
	struct component_error err = COMPONENT_ERROR_INIT;
	struct text            bytes = TEXT_INIT;
	struct pprof           again;

	assert_int_equal(write_profile(p, keep, &bytes), 0);
	assert_int_equal(read_profile(bytes.data, bytes.size, &again, &err), 0);
	assert_same(p, &again);
	read_release(&again);
	text_release(&bytes);
}

static int
look(const void *data, size_t size, struct component_error *err)
{
	const struct view view = { .focus = "a", .ignore = "zz", .rows = 3 };
	struct text       out = TEXT_INIT, notes = TEXT_INIT;
	struct pprof      p;
	int               r = read_profile(data, size, &p, err);

	if (!r && legacy_is(data, size))
		merge_with_itself(&p);
	else if (!r)
		write_and_read(&p);
	if (!r && !legacy_is(data, size))
		r = look_at_difference(&p, &out, &notes, err);
	if (!r)
		r = read_drop_frames(&p, err);
	if (!r)
		r = top_print(&p, &view, &out, &notes, err);
	if (!r)
		r = folded_print(&p, &(struct view){ .cum = true }, &out, &notes, err);
	if (!r && listing_print(&p, &(struct view){ .list = "a|^$" }, &out, &notes, err) < 0)
		err->text[0] = '\0';
	read_release(&p);
	text_release(&out);
	text_release(&notes);
	return r;
}

static void
a_whole_file_is_read(void **state)
{
	struct component_error err = COMPONENT_ERROR_INIT;

	(void)state;
	assert_int_equal(look(good, sizeof(good), &err), 0);
	assert_string_equal(err.text, "");
}

static void
a_file_that_is_damaged_or_cut_off_harms_nobody(void **state)
{
	uint64_t      x = 88172645463325252ULL;
	unsigned char bad[sizeof(good)];

	(void)state;
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct component_error err = COMPONENT_ERROR_INIT;
		size_t                 size = sizeof(good);
		unsigned char         *copy;

		memcpy(bad, good, sizeof(good));
		for (unsigned k = 0; k < 1 + i % 4; k++) {
			x ^= x << 13, x ^= x >> 7, x ^= x << 17;
			bad[x % sizeof(bad)] = (unsigned char)(x % 3 ? x >> 40 : 1u << (x >> 40) % 8);
		}
		if (i % 5 == 0)
			size = x % sizeof(good);
		copy = malloc(size + 1);
		assert_non_null(copy);
		memcpy(copy, bad, size);
		if (look(copy, size, &err) < 0)
			assert_string_not_equal(err.text, "");
		free(copy);
	}
}

static uint64_t
next_random(uint64_t *x)
{
	*x ^= *x << 13, *x ^= *x >> 7, *x ^= *x << 17;
	return *x;
}

/* Read as they are, then cut off and with bytes of the others in them. */
static void
damage(const void *data, size_t size, uint64_t *x)
{
	static const char bytes[] = "0123456789abcdefx:[]@-+= \n\t/.*#\xff\x80\x7f";
	char             *copy = malloc(size);

	assert_non_null(copy);
	for (unsigned i = 0; i < ROUNDS / 4; i++) {
		struct component_error err = COMPONENT_ERROR_INIT;
		size_t                 n = i % 4 ? size : 1 + next_random(x) % size;
		char                  *bad = malloc(n);

		assert_non_null(bad);
		memcpy(copy, data, size);
		for (unsigned k = 0; k < i % 5; k++)
			copy[next_random(x) % size] = (char)(next_random(x) % 3 ? bytes[next_random(x) % sizeof(bytes)] : (char)(*x >> 40));
		memcpy(bad, copy, n);
		if (look(bad, n, &err) < 0)
			assert_string_not_equal(err.text, "");
		if (i % 5 == 0 && i % 4)
			assert_string_equal(err.text, "");
		free(bad);
	}
	free(copy);
}

#define MAPS "MAPPED_LIBRARIES:\n400000-401000 r-xp 00000000 fe:00 77  /no/such/program\n0x7f0000-0x7f1000: /no/libx.so (@2000) ab\n"

static void
files_of_gperftools_and_jemalloc_that_are_damaged_harm_nobody(void **state)
{
	static const char *const texts[] = {
		"heap profile: 3: 4000 [ 5: 6000] @ heap_v2/524288\n 1: 2000 [2: 3000] @ 0x400123 0x7f0456\n2: 2000 [3: 3000] @ 0x1\n" MAPS,
		"heap profile: 3: 4000 [ 3: 4000] @ heapprofile\n-1: -2000 [2: 3000] @ 0x400123 0x7f0456\n" MAPS,
		"heap_v2/524288\n  t*: 2: 4000 [0: 0]\n  t0: 2: 4000 [0: 0]\n@ 0x400123 0x7f0456\n  t*: 2: 4000 [0: 0]\n" MAPS,
		"--- contentionz 1 ---\ncycles/second = 1000\nsampling period = 3\nms since reset = 4\n 5 6 @ 0x400123\n" MAPS,
	};
	static const uint64_t words[] = { 0, 3, 0, 10000, 0, 5, 2, 0x400123, 0x400321, 6, 3, 0x400124, 0x7f0456, 0x400321, 0, 1, 0 };
	uint64_t              x = 88172645463325252ULL;
	unsigned char         cpu[sizeof(words) + sizeof(MAPS)], narrow[sizeof(words) / 2];

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		damage(texts[i], strlen(texts[i]), &x);
	memcpy(cpu, words, sizeof(words));
	memcpy(cpu + sizeof(words), MAPS, sizeof(MAPS));
	damage(cpu, sizeof(cpu), &x);
	for (size_t i = 0; i < sizeof(narrow); i++)
		narrow[i] = (unsigned char)(words[i / 4] >> 8 * (i % 4));
	damage(narrow, sizeof(narrow), &x);
}

/* Messages of two bytes, packed by the thousand. */
static void
a_small_file_that_becomes_gigabytes_is_refused(void **state)
{
	static unsigned char   piece[1 << 20], packed[1 << 20];
	struct component_error err = COMPONENT_ERROR_INIT;
	z_stream               z = { .next_out = packed, .avail_out = sizeof(packed) };
	int                    r;

	(void)state;
	for (size_t i = 0; i < sizeof(piece); i += 2)
		piece[i] = 0x12;
	assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 31, 9, Z_DEFAULT_STRATEGY), Z_OK);
	for (int i = 0; i < 200; i++) {
		z.next_in = piece;
		z.avail_in = sizeof(piece);
		assert_int_equal(deflate(&z, i == 199 ? Z_FINISH : Z_NO_FLUSH), i == 199 ? Z_STREAM_END : Z_OK);
	}
	r = look(packed, z.total_out, &err);
	deflateEnd(&z);
	assert_int_equal(r, -ENOMEM);
	assert_non_null(strstr(err.text, "MiB of memory"));
}

/* A heap profile whose mappings have so many bytes of memory left. */
static void
read_mappings_with(size_t left, size_t path_size)
{
	static const char      head[] = "heap profile: 0: 0 [0: 0] @ heapprofile\n", map[] = "MAPPED_LIBRARIES:\n";
	struct component_error err = COMPONENT_ERROR_INIT;
	struct text            t = TEXT_INIT;
	struct pprof           p;

	text_add_bytes(&t, head, sizeof(head) - 1);
	for (size_t n = (READ_MEMORY_MAX - left) / sizeof(struct draft); n > 0; n--)
		text_add_bytes(&t, "\n", 1);
	text_add_bytes(&t, map, sizeof(map) - 1);
	for (int i = 0; i < 10000; i++)
		text_add(&t, "400000-401000 r-xp 00000000 fe:00 77  /%0*d\n", (int)path_size, i);
	assert_false(t.failed);
	assert_int_equal(read_profile(t.data, t.size, &p, &err), -ENOMEM);
	assert_non_null(strstr(err.text, "MiB of memory"));
	read_release(&p);
	text_release(&t);
}

static void
mappings_that_find_no_memory_are_told_of(void **state)
{
	(void)state;
	read_mappings_with(1 << 20, 1); /* for the table of them */
	read_mappings_with(5 << 20, 1000); /* for what their files are called */
}

static void
what_is_no_profile_is_called_so(void **state)
{
	struct component_error err = COMPONENT_ERROR_INIT;

	(void)state;
	assert_int_equal(look("", 0, &err), -EINVAL);
	assert_string_equal(err.text, "is empty");
	assert_int_equal(look("<html>", 6, &err), -EINVAL);
	assert_non_null(strstr(err.text, "is no pprof profile"));
	assert_int_equal(look("\x1f\x8b\x08", 3, &err), -EINVAL);
	assert_string_equal(err.text, "is cut off");
	assert_int_equal(look("\x1f\x8bxxxxxxxxxxxxxxx", 16, &err), -EINVAL);
	assert_non_null(strstr(err.text, "is damaged"));
}

static void
a_label_that_is_added_is_written_and_stands_where_the_reader_puts_it(void **state)
{
	struct component_error err = COMPONENT_ERROR_INIT;
	struct pprof_label     l = { .key = "" };
	struct pprof           p;
	size_t                 at = 0;

	(void)state;
	assert_int_equal(read_profile(good, sizeof(good), &p, &err), 0);
	for (size_t i = 0; i < p.sample_count; i++) {
		assert_int_equal(read_label_add(&p, &p.samples[i], "process", "4711"), 0);
		assert_int_equal(read_label_add(&p, &p.samples[i], "a", "before"), 0);
	}
	assert_true(read_label(&p.samples[0], &at, &l));
	assert_string_equal(l.key, "a");
	assert_true(read_label(&p.samples[0], &at, &l)); /* the file's own */
	assert_string_equal(l.key, "cpu");
	assert_true(read_label(&p.samples[0], &at, &l));
	assert_string_equal(l.text, "4711");
	assert_false(read_label(&p.samples[0], &at, &l));
	write_and_read(&p);
	read_release(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_whole_file_is_read),
		cmocka_unit_test(a_label_that_is_added_is_written_and_stands_where_the_reader_puts_it),
		cmocka_unit_test(a_file_that_is_damaged_or_cut_off_harms_nobody),
		cmocka_unit_test(files_of_gperftools_and_jemalloc_that_are_damaged_harm_nobody),
		cmocka_unit_test(a_small_file_that_becomes_gigabytes_is_refused),
		cmocka_unit_test(mappings_that_find_no_memory_are_told_of),
		cmocka_unit_test(what_is_no_profile_is_called_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
