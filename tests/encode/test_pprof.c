/*
 * test_pprof.c - what the encoder of pprof's format writes, read back with protobuf-c's own unpacking.
 *
 * tests/encode/pprof.t reads the same with go tool pprof and with a decoder of its own.
 */
#include <config.h>

#include <sys/resource.h>
#include <unistd.h>
#include <zlib.h>

#include "fixture.h"
#include "profile.pb-c.h"
#include "skip.h"
#include "utf8.h"

#define PIECE_MAX ((size_t)64 << 10)

/* Kilobytes of a line of /proc/self/status. */
static long
status_kb(const char *line)
{
	FILE *f = fopen("/proc/self/status", "re");
	char  buf[256];
	long  kb = -1;

	assert_non_null(f);
	while (kb < 0 && fgets(buf, sizeof(buf), f))
		if (!strncmp(buf, line, strlen(line)))
			kb = strtol(buf + strlen(line), NULL, 10);
	fclose(f);
	return kb;
}

static bool
reset_peak(void)
{
	FILE *f = fopen("/proc/self/clear_refs", "we");

	return f && fputs("5", f) >= 0 && !fclose(f);
}

/* Exactly one gzip member, then nothing. */
static Component__Pprof__Profile *
decode(void)
{
	static unsigned char       raw[ROOM];
	z_stream                   z = { .next_in = sink.data, .avail_in = (uInt)sink.size,
			.next_out = raw, .avail_out = sizeof(raw) };
	Component__Pprof__Profile *p;

	assert_int_equal(inflateInit2(&z, 31), Z_OK);
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
	assert_int_equal(z.avail_in, 0);
	inflateEnd(&z);
	p = component__pprof__profile__unpack(NULL, z.total_out, raw);
	assert_non_null(p);
	return p;
}

static const char *
text(const Component__Pprof__Profile *p, int64_t i)
{
	assert_true(i >= 0 && (size_t)i < p->n_string_table);
	return p->string_table[i];
}

/* Every rule that readers and stores have, on any profile at all. */
static void
check_rules(const Component__Pprof__Profile *p)
{
	assert_string_equal(p->string_table[0], "");
	for (size_t i = 0; i < p->n_string_table; i++) {
		assert_true(utf8_is_clean(p->string_table[i], strlen(p->string_table[i])));
		for (size_t k = 0; k < i && p->n_string_table < 2000; k++)
			assert_string_not_equal(p->string_table[i], p->string_table[k]);
	}
	for (size_t i = 0; i < p->n_mapping; i++) {
		assert_int_equal(p->mapping[i]->id, i + 1);
		assert_true(p->mapping[i]->memory_start < p->mapping[i]->memory_limit);
		assert_true(strlen(text(p, p->mapping[i]->build_id)) != 1);
		assert_true(*text(p, p->mapping[i]->filename) != '\0');
	}
	for (size_t i = 0; i < p->n_function; i++) {
		assert_int_equal(p->function[i]->id, i + 1);
		assert_true(*text(p, p->function[i]->name) != '\0');
		assert_true(*text(p, p->function[i]->system_name) != '\0');
		text(p, p->function[i]->filename);
	}
	for (size_t i = 0; i < p->n_location; i++) {
		const Component__Pprof__Location *l = p->location[i];

		assert_int_equal(l->id, i + 1);
		assert_true(l->n_line > 0);
		for (size_t k = 0; k < l->n_line; k++)
			assert_true(l->line[k]->function_id > 0 && l->line[k]->function_id <= p->n_function);
		assert_true(l->mapping_id <= p->n_mapping);
		if (l->mapping_id) {
			assert_true(l->address >= p->mapping[l->mapping_id - 1]->memory_start);
			assert_true(l->address < p->mapping[l->mapping_id - 1]->memory_limit);
			assert_true(p->mapping[l->mapping_id - 1]->has_functions);
		}
	}
	for (size_t i = 0; i < p->n_sample; i++) {
		assert_int_equal(p->sample[i]->n_value, p->n_sample_type);
		assert_true(p->sample[i]->n_location_id > 0);
		for (size_t k = 0; k < p->sample[i]->n_location_id; k++)
			assert_true(p->sample[i]->location_id[k] > 0 && p->sample[i]->location_id[k] <= p->n_location);
	}
	assert_true(p->n_sample_type > 0);
	assert_non_null(p->period_type);
	assert_true(p->time_nanos != 0);
}

static const char *
function_name(const Component__Pprof__Profile *p, size_t sample, size_t frame)
{
	const Component__Pprof__Location *l = p->location[p->sample[sample]->location_id[frame] - 1];

	return text(p, p->function[l->line[0]->function_id - 1]->name);
}

static void
a_cpu_profile_comes_back_as_it_was(void **state)
{
	const uintptr_t            a[] = { IN(leaf_one), IN(middle), IN(root) };
	const uintptr_t            b[] = { IN(leaf_two), IN(middle), IN(root) };
	struct profile             p;
	Component__Pprof__Profile *q;
	char                       self[4096];
	ssize_t                    n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	(void)state;
	init_cpu(&p);
	add(&p, a, 3, 0, (int64_t[4]){ 3, 30000000 });
	add(&p, b, 3, 0, (int64_t[4]){ 1, 10000000 });
	assert_int_equal(encode(&p, encode_pprof), 0);
	q = decode();
	check_rules(q);
	assert_int_equal(q->n_sample, 2);
	assert_int_equal(q->n_location, 4);
	assert_int_equal(q->n_function, 4);
	assert_string_equal(function_name(q, 0, 0), "leaf_one");
	assert_string_equal(function_name(q, 0, 2), "root");
	assert_string_equal(function_name(q, 1, 0), "leaf_two");
	assert_true(q->location[q->sample[0]->location_id[0] - 1]->address == IN(leaf_one));
	assert_true(q->sample[0]->value[0] == 3 && q->sample[0]->value[1] == 30000000);
	assert_int_equal(q->sample[0]->n_label, 0);
	assert_string_equal(text(q, q->sample_type[0]->type), "samples");
	assert_string_equal(text(q, q->sample_type[1]->unit), "nanoseconds");
	assert_string_equal(text(q, q->period_type->type), "cpu");
	assert_true(q->period == 10000000 && q->time_nanos == p.time_ns && q->duration_nanos == p.duration_ns);
	assert_int_equal(q->default_sample_type, 0);
	self[n > 0 ? n : 0] = '\0';
	assert_string_equal(text(q, q->mapping[0]->filename), self);
	component__pprof__profile__free_unpacked(q, NULL);
	profile_release(&p);
}

static void
a_heap_profile_labels_sizes_and_names_its_default(void **state)
{
	const uintptr_t            a[] = { IN(leaf_one), IN(root) };
	struct profile             p;
	Component__Pprof__Profile *q;

	(void)state;
	init_heap(&p);
	p.default_type = "alloc_space";
	add(&p, a, 2, 4096, (int64_t[4]){ 10, 40960, 1, 4096 });
	add(&p, a, 2, 0, (int64_t[4]){ 0, 0, 0, 0 });
	assert_int_equal(encode(&p, encode_pprof), 0);
	q = decode();
	check_rules(q);
	assert_int_equal(q->sample[0]->n_label, 1);
	assert_string_equal(text(q, q->sample[0]->label[0]->key), "bytes");
	assert_true(q->sample[0]->label[0]->num == 4096);
	assert_int_equal(q->sample[0]->label[0]->num_unit, 0);
	assert_int_equal(q->sample[0]->label[0]->str, 0);
	assert_int_equal(q->sample[1]->n_label, 0);
	assert_string_equal(text(q, q->default_sample_type), "alloc_space");
	assert_string_equal(text(q, q->period_type->type), "space");
	component__pprof__profile__free_unpacked(q, NULL);
	profile_release(&p);
}

static void
a_profile_of_nothing_has_types_and_mappings(void **state)
{
	struct profile             p;
	Component__Pprof__Profile *q;

	(void)state;
	init_cpu(&p);
	assert_int_equal(encode(&p, encode_pprof), 0);
	q = decode();
	check_rules(q);
	assert_int_equal(q->n_sample, 0);
	assert_int_equal(q->n_sample_type, 2);
	assert_true(q->n_mapping > 2);
	for (size_t i = 0; i < q->n_mapping; i++)
		assert_false(q->mapping[i]->has_functions);
	component__pprof__profile__free_unpacked(q, NULL);
	profile_release(&p);
}

static void
what_is_no_code_of_a_file_has_a_name_and_no_mapping(void **state)
{
	const uintptr_t            a[] = { STACK_PSEUDO_FULL }, b[] = { 0x1234567, IN(root) };
	struct profile             p;
	Component__Pprof__Profile *q;

	(void)state;
	init_cpu(&p);
	add(&p, a, 1, 0, (int64_t[4]){ 1, 10000000 });
	add(&p, b, 2, 0, (int64_t[4]){ 1, 10000000 });
	assert_int_equal(encode(&p, encode_pprof), 0);
	q = decode();
	check_rules(q);
	assert_string_equal(function_name(q, 0, 0), "[stack table full]");
	assert_int_equal(q->location[0]->mapping_id, 0);
	assert_int_equal(q->location[0]->address, 0);
	/* A root gets its number before what it calls. */
	assert_string_equal(function_name(q, 1, 0), "0x1234567");
	assert_int_equal(q->location[2]->mapping_id, 0);
	assert_int_equal(q->location[2]->address, 0x1234567);
	component__pprof__profile__free_unpacked(q, NULL);
	profile_release(&p);
}

static void
lost_samples_are_shown_once(void **state)
{
	const uintptr_t            a[] = { IN(root) }, lost[] = { STACK_PSEUDO_LOST };
	struct profile             p;
	Component__Pprof__Profile *q;

	(void)state;
	init_cpu(&p);
	p.lost = 7;
	add(&p, a, 1, 0, (int64_t[4]){ 1, 10000000 });
	assert_int_equal(encode(&p, encode_pprof), 0);
	q = decode();
	check_rules(q);
	assert_int_equal(q->n_sample, 2);
	assert_string_equal(function_name(q, 1, 0), "[lost samples]");
	assert_true(q->sample[1]->value[0] == 7 && q->sample[1]->value[1] == 70000000);
	component__pprof__profile__free_unpacked(q, NULL);
	/* A sample whose stack is lost says nothing of the others. */
	add(&p, lost, 1, 0, (int64_t[4]){ 1, 10000000 });
	reset(NULL);
	assert_int_equal(encode(&p, encode_pprof), 0);
	q = decode();
	assert_int_equal(q->n_sample, 3);
	assert_true(q->sample[2]->value[0] == 7);
	component__pprof__profile__free_unpacked(q, NULL);
	/* The collector has made the sample itself. */
	p.lost_told = true;
	reset(NULL);
	assert_int_equal(encode(&p, encode_pprof), 0);
	q = decode();
	assert_int_equal(q->n_sample, 2);
	component__pprof__profile__free_unpacked(q, NULL);
	profile_release(&p);
	/* Lost allocations are not in use. */
	init_heap(&p);
	p.lost = 3;
	reset(NULL);
	assert_int_equal(encode(&p, encode_pprof), 0);
	q = decode();
	assert_true(q->sample[0]->value[0] == 3 && q->sample[0]->value[1] == 3 * 524288);
	assert_true(q->sample[0]->value[2] == 0 && q->sample[0]->value[3] == 0);
	component__pprof__profile__free_unpacked(q, NULL);
	profile_release(&p);
}

static void
comments_are_lines_of_clean_text(void **state)
{
	struct profile             p;
	Component__Pprof__Profile *q;

	(void)state;
	init_cpu(&p);
	profile_comment(&p, "first");
	profile_comment(&p, "bad \xff byte");
	assert_int_equal(encode(&p, encode_pprof), 0);
	q = decode();
	check_rules(q);
	assert_int_equal(q->n_comment, 2);
	assert_string_equal(text(q, q->comment[0]), "first");
	assert_string_equal(text(q, q->comment[1]), "bad ? byte");
	component__pprof__profile__free_unpacked(q, NULL);
	profile_release(&p);
}

/* Without debug information, as in a build without -g: nothing is claimed. */
static void
a_mapping_claims_lines_only_where_there_are_some(void **state)
{
	const uintptr_t            a[] = { IN(leaf_one), IN(root), (uintptr_t)&strtoul };
	struct profile             p;
	Component__Pprof__Profile *q;
	char                       place[4096];
	bool                       known;

	(void)state;
	place_of(a[0], place, sizeof(place));
	known = strstr(place, "encode/fixture.h:");
	init_cpu(&p);
	add(&p, a, 3, 0, (int64_t[4]){ 1, 10000000 });
	assert_int_equal(encode(&p, encode_pprof), 0);
	q = decode();
	check_rules(q);
	for (size_t i = 0; i < q->n_mapping; i++) {
		const Component__Pprof__Mapping *m = q->mapping[i];
		bool                             lines = known && i == 0;

		assert_int_equal(m->has_filenames, lines);
		assert_int_equal(m->has_line_numbers, lines);
		assert_false(m->has_inline_frames);
		if (lines)
			assert_true(m->has_functions);
	}
	for (size_t i = 0; known && i < q->n_function; i++) {
		const Component__Pprof__Function *f = q->function[i];

		if (!strcmp(text(q, f->name), "leaf_one")) {
			assert_non_null(strstr(text(q, f->filename), "encode/fixture.h"));
			assert_true(f->start_line > 10 && f->start_line < 100);
		}
	}
	component__pprof__profile__free_unpacked(q, NULL);
	profile_release(&p);
}

static void
lines_that_found_no_memory_are_told_in_a_comment(void **state)
{
	const uintptr_t            a[] = { IN(leaf_one) };
	struct profile             p;
	Component__Pprof__Profile *q;
	size_t                     limit;
	unsigned                   told = 0;

	(void)state;
	init_cpu(&p);
	add(&p, a, 1, 0, (int64_t[4]){ 1, 10000000 });
	/* The least that gives a profile at all is not enough for lines. */
	for (limit = 64 << 10; limit < (size_t)1 << 20 && !told; limit += 32 << 10) {
		struct symbols *s;

		if (symbols_open(limit, &s) < 0)
			continue;
		reset(NULL);
		assert_int_equal(encode_pprof(&p, s, into_sink, &sink), 0);
		if (symbols_unlined(s)) {
			q = decode();
			for (size_t i = 0; i < q->n_comment; i++)
				told += strstr(text(q, q->comment[i]), "without some or all lines") != NULL;
			assert_int_equal(told, 1);
			component__pprof__profile__free_unpacked(q, NULL);
		}
		symbols_close(s);
	}
	profile_release(&p);
	if (!told)
		SKIP("built without -g");
}

static void
the_deepest_stack_fits(void **state)
{
	uintptr_t                  pcs[STACK_FRAMES_MAX];
	struct profile             p;
	Component__Pprof__Profile *q;

	(void)state;
	for (unsigned i = 0; i < STACK_FRAMES_MAX; i++)
		pcs[i] = UINTPTR_MAX - 4096 - i; /* ten bytes each */
	init_heap(&p);
	add(&p, pcs, STACK_FRAMES_MAX, INT64_MIN, (int64_t[4]){ -1, -2, -3, INT64_MIN });
	assert_int_equal(encode(&p, encode_pprof), 0);
	q = decode();
	check_rules(q);
	assert_int_equal(q->sample[0]->n_location_id, STACK_FRAMES_MAX);
	assert_true(q->sample[0]->value[3] == INT64_MIN);
	component__pprof__profile__free_unpacked(q, NULL);
	profile_release(&p);
}

static void
without_descriptors_a_profile_has_bare_addresses(void **state)
{
	const uintptr_t            a[] = { IN(leaf_one), IN(root) };
	struct rlimit              limit, none;
	struct profile             p;
	Component__Pprof__Profile *q;
	char                       want[32];
	int                        r;

	(void)state;
	init_cpu(&p);
	add(&p, a, 2, 0, (int64_t[4]){ 1, 10000000 });
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = limit;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	r = encode(&p, encode_pprof);
	setrlimit(RLIMIT_NOFILE, &limit);
	assert_int_equal(r, 0);
	q = decode();
	check_rules(q);
	assert_int_equal(q->n_mapping, 0);
	assert_int_equal(q->n_comment, 1);
	snprintf(want, sizeof(want), "0x%lx", (unsigned long)a[1]);
	assert_string_equal(function_name(q, 0, 1), want);
	component__pprof__profile__free_unpacked(q, NULL);
	profile_release(&p);
}

static void
an_error_of_the_writer_ends_it_and_is_returned(void **state)
{
	const uintptr_t a[] = { IN(root) };
	struct profile  p;

	(void)state;
	init_heap(&p);
	add(&p, a, 1, 0, (int64_t[4]){ 1, 1, 1, 1 });
	sink.fail_at = 1;
	assert_int_equal(encode(&p, encode_pprof), -EPIPE);
	assert_int_equal(sink.pieces, 1);
	sink.pieces = 0;
	assert_int_equal(encode(&p, encode_heap_text), -EPIPE);
	assert_int_equal(sink.pieces, 1);
	sink.pieces = 0;
	assert_int_equal(encode(&p, encode_viewed_top), -EPIPE);
	assert_int_equal(sink.pieces, 1);
	profile_release(&p);
}

/* 100,000 stacks of 30 frames over 5,000 addresses. */
static void
make_big(struct profile *p)
{
	uintptr_t pcs[30];
	uint32_t  seed = 1;

	init_cpu(p);
	for (unsigned k = 0; k < 30; k++)
		pcs[k] = (uintptr_t)&strtoul + k * 64;
	for (unsigned i = 0; i < 100000; i++) {
		for (unsigned k = 0; k < 8; k++) {
			seed = seed * 1103515245 + 12345;
			pcs[k] = (uintptr_t)&strtoul + (seed >> 16) % 5000 * 50;
		}
		add(p, pcs, 30, 0, (int64_t[4]){ 1, 10000000 });
	}
}

static void
a_hundred_thousand_stacks_take_no_memory_of_malloc_and_little_else(void **state)
{
	struct profile             p;
	Component__Pprof__Profile *q;
	int64_t                    heap;
	long                       rss;

	(void)state;
	make_big(&p);
	memset(sink.data, 0, 8 << 20); /* the result's pages are the test's own */
	assert_true(reset_peak());
	rss = status_kb("VmRSS:");
	heap = heap_used();
	assert_int_equal(encode(&p, encode_pprof), 0);
	assert_true(sink.pieces > 10);
	assert_true(sink.largest <= PIECE_MAX);
	if (!SANITIZED) {
		assert_true(sink.heap_used - heap < 1024); /* a thread's bookkeeping */
		assert_true(status_kb("VmHWM:") - rss < 4096);
	}
	q = decode();
	assert_int_equal(q->n_sample, 100000);
	check_rules(q);
	component__pprof__profile__free_unpacked(q, NULL);
	reset(NULL);
	assert_int_equal(encode(&p, encode_viewed_top), 0);
	profile_release(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_cpu_profile_comes_back_as_it_was, reset),
		cmocka_unit_test_setup(a_heap_profile_labels_sizes_and_names_its_default, reset),
		cmocka_unit_test_setup(a_profile_of_nothing_has_types_and_mappings, reset),
		cmocka_unit_test_setup(what_is_no_code_of_a_file_has_a_name_and_no_mapping, reset),
		cmocka_unit_test_setup(lost_samples_are_shown_once, reset),
		cmocka_unit_test_setup(comments_are_lines_of_clean_text, reset),
		cmocka_unit_test_setup(a_mapping_claims_lines_only_where_there_are_some, reset),
		cmocka_unit_test_setup(lines_that_found_no_memory_are_told_in_a_comment, reset),
		cmocka_unit_test_setup(the_deepest_stack_fits, reset),
		cmocka_unit_test_setup(without_descriptors_a_profile_has_bare_addresses, reset),
		cmocka_unit_test_setup(an_error_of_the_writer_ends_it_and_is_returned, reset),
		cmocka_unit_test_setup(a_hundred_thousand_stacks_take_no_memory_of_malloc_and_little_else, reset),
	};
	int failed;

	/* What a distribution's debug files cost is not the encoders' matter. */
	debug_file_root = "/nonexistent";
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	free(sink.data);
	return failed;
}
