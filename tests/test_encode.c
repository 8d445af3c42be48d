/*
 * test_encode.c - what the encoders write, read back with protobuf-c's own unpacking.
 *
 * tests/encode.t reads the same with go tool pprof and with a decoder of its own.
 */
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cmocka.h>
#include <zlib.h>

#include "debug_file.h"
#include "encode.h"
#include "lines.h"
#include "order.h"
#include "profile.pb-c.h"
#include "skip.h"
#include "stack_table.h"
#include "strings.h"
#include "utf8.h"

#define LIMIT     ((size_t)64 << 20)
#define PIECE_MAX ((size_t)64 << 10)
#define STACK     ((size_t)256 << 10) /* what the library's own threads have */
#define ROOM      ((size_t)64 << 20)

#define FUNCTION(name)                                  \
	__attribute__((noinline, noclone)) int name(int n); \
	int name(int n)                                     \
	{                                                   \
		volatile int a = n;                         \
		for (int i = 0; i < n; i++)                 \
			a += i ^ (a << 3);                  \
		return a + __LINE__;                        \
	}
FUNCTION(leaf_one)
FUNCTION(leaf_two)
FUNCTION(middle)
FUNCTION(root)

#define IN(f) ((uintptr_t)(f) + 4)

/* A sanitizer has a malloc of its own and more memory than what it looks at. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

struct sink {
	unsigned char *data;
	size_t         size, pieces, largest;
	size_t         fail_at;   /* this piece fails; 0: none */
	int64_t        heap_used; /* the most that malloc held at any piece */
};

static struct sink sink;

static int64_t
heap_used(void)
{
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
	struct mallinfo m = mallinfo();
#pragma GCC diagnostic pop

	return (int64_t)(unsigned)m.uordblks + (unsigned)m.hblkhd;
}

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

static int
into_sink(void *arg, const void *data, size_t size)
{
	struct sink *s = arg;

	if (++s->pieces == s->fail_at)
		return -EPIPE;
	if (size > s->largest)
		s->largest = size;
	if (heap_used() > s->heap_used)
		s->heap_used = heap_used();
	assert_true(size > 0 && s->size + size <= ROOM);
	memcpy(s->data + s->size, data, size);
	s->size += size;
	s->data[s->size] = '\0';
	return 0;
}

static int
reset(void **state)
{
	unsigned char *data = sink.data ? sink.data : malloc(ROOM + 1);

	(void)state;
	if (!data)
		return -1;
	sink = (struct sink){ .data = data };
	data[0] = '\0';
	stack_table_set_limit(LIMIT);
	return 0;
}

static void
add(struct profile *p, const uintptr_t *pcs, unsigned n, int64_t bytes, const int64_t *values)
{
	struct profile_sample s = { .stack = stack_table_add(pcs, n), .bytes_label = bytes };

	for (unsigned i = 0; i < PROFILE_TYPES_MAX; i++) {
		s.values[i] = values[i];
		s.raw_values[i] = values[i] / 2;
	}
	assert_int_equal(profile_add(p, &s), 0);
}

static void
init_cpu(struct profile *p)
{
	profile_init(p, "profile");
	p->types[0] = (struct profile_type){ "samples", "count" };
	p->types[1] = (struct profile_type){ "cpu", "nanoseconds" };
	p->type_count = 2;
	p->period_type = p->types[1];
	p->period = 10000000;
	p->time_ns = 1700000000123456789;
	p->duration_ns = 5000000000;
}

static void
init_heap(struct profile *p)
{
	profile_init(p, "heap");
	p->types[0] = (struct profile_type){ "alloc_objects", "count" };
	p->types[1] = (struct profile_type){ "alloc_space", "bytes" };
	p->types[2] = (struct profile_type){ "inuse_objects", "count" };
	p->types[3] = (struct profile_type){ "inuse_space", "bytes" };
	p->type_count = 4;
	p->period_type = (struct profile_type){ "space", "bytes" };
	p->period = 524288;
	p->time_ns = 1700000000123456789;
}

struct encoding {
	const struct profile *profile;
	int (*encode)(const struct profile *, struct symbols *, encode_write_fn *, void *);
	int result;
};

static void *
run(void *arg)
{
	struct encoding *e = arg;
	struct symbols  *s;

	e->result = symbols_open(LIMIT, &s);
	if (e->result < 0)
		return NULL;
	e->result = e->encode(e->profile, s, into_sink, &sink);
	symbols_close(s);
	return NULL;
}

/* On a thread with the stack that the library's own have. */
static int
encode(const struct profile *p, int (*fn)(const struct profile *, struct symbols *, encode_write_fn *, void *))
{
	struct encoding e = { p, fn, 1 };
	pthread_attr_t  attr;
	pthread_t       thread;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	assert_int_equal(pthread_create(&thread, &attr, run, &e), 0);
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attr);
	return e.result;
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
	/* The collector has made the sample itself. */
	add(&p, lost, 1, 0, (int64_t[4]){ 7, 70000000 });
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

/* "FILE:LINE" of an address: of this file, if the compiler said so. */
static void
place_of(uintptr_t pc, char *buf, size_t size)
{
	struct symbols     *s;
	struct symbol_frame f[1];

	assert_int_equal(symbols_open(LIMIT, &s), 0);
	symbols_resolve(s, &pc, 1);
	assert_int_equal(symbols_frames(s, pc, f, 1), 1);
	if (f[0].file) {
		assert_non_null(strstr(f[0].file, "test_encode.c"));
		assert_true(f[0].line > 10 && f[0].line < 100);
	}
	snprintf(buf, size, "%s:%d", f[0].file ? f[0].file : f[0].object, f[0].line);
	symbols_close(s);
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
	known = strstr(place, "test_encode.c:");
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
			assert_non_null(strstr(text(q, f->filename), "test_encode.c"));
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
	assert_int_equal(encode(&p, encode_top), -EPIPE);
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
	assert_int_equal(encode(&p, encode_top), 0);
	profile_release(&p);
}

/* What stands in front of the MemStats block, which tests/serve_delta.t reads. */
static const char *
records(void)
{
	char *end = strstr((char *)sink.data, "\n# estimated from samples: ");

	assert_non_null(end);
	assert_non_null(strstr(end, "\n# runtime.MemStats\n# Alloc = "));
	*end = '\0';
	return (const char *)sink.data;
}

static void
heap_text_is_what_Go_writes(void **state)
{
	const uintptr_t a[] = { IN(leaf_one), IN(root) }, b[] = { IN(leaf_two), STACK_PSEUDO_TRUNCATED };
	struct profile  p;
	char            want[16384], places[3][4096];

	(void)state;
	place_of(a[0], places[0], sizeof(places[0]));
	place_of(a[1], places[1], sizeof(places[1]));
	place_of(b[0], places[2], sizeof(places[2]));
	init_heap(&p);
	add(&p, a, 2, 4096, (int64_t[4]){ 200, 819200, 20, 81920 });
	add(&p, b, 2, 4096, (int64_t[4]){ 40, 400000, 40, 400000 });
	assert_int_equal(encode(&p, encode_heap_text), 0);
	/* Not unsampled, the largest in use first. */
	snprintf(want, sizeof(want),
		"heap profile: 30: 240960 [120: 609600] @ heap/1048576\n"
		"20: 200000 [20: 200000] @ 0x%lx 0x%lx\n"
		"#\t0x%lx\tleaf_two+0x4\t%s\n"
		"#\t0x%lx\t[truncated]+0x0\t-:0\n"
		"\n"
		"10: 40960 [100: 409600] @ 0x%lx 0x%lx\n"
		"#\t0x%lx\tleaf_one+0x4\t%s\n"
		"#\t0x%lx\troot+0x4\t%s\n"
		"\n",
		(unsigned long)b[0] + 1, (unsigned long)b[1] + 1, (unsigned long)b[0], places[2], (unsigned long)b[1],
		(unsigned long)a[0] + 1, (unsigned long)a[1] + 1, (unsigned long)a[0], places[0], (unsigned long)a[1], places[1]);
	assert_string_equal(records(), want);
	profile_release(&p);
}

/* The form that readers of Go's text accept: nothing after the pc, or all of it. */
static void
frames_of_the_text_are_whole_or_bare(void **state)
{
	struct symbols     *s;
	struct symbol_frame f[1];
	uintptr_t           pcs[] = { 0x1234567, 0, IN(root) };
	struct profile      p;
	char                want[8192];

	(void)state;
	assert_int_equal(symbols_open(LIMIT, &s), 0);
	for (size_t i = 0; i < symbols_mapping_count(s); i++)
		if (!strcmp(symbols_mapping(s, i)->path, "[vdso]"))
			pcs[1] = symbols_mapping(s, i)->start + 1;
	if (!pcs[1]) {
		symbols_close(s);
		SKIP("valgrind takes it away");
	}
	assert_int_equal(symbols_frames(s, pcs[1], f, 1), 1);
	assert_false(f[0].named);
	assert_string_equal(f[0].name, "[vdso]+0x1");
	symbols_close(s);
	init_heap(&p);
	add(&p, pcs, 3, 0, (int64_t[4]){ 2, 200, 2, 200 });
	assert_int_equal(encode(&p, encode_heap_text), 0);
	snprintf(want, sizeof(want), "\n#\t0x1234567\n#\t0x%lx\t[vdso]+0x1\t[vdso]:0\n#\t0x%lx\troot+0x4\t/",
		(unsigned long)pcs[1], (unsigned long)pcs[2]);
	assert_non_null(strstr((char *)sink.data, want));
	profile_release(&p);
}

static void
equal_totals_are_told_apart_by_a_byte(void **state)
{
	const uintptr_t a[] = { IN(root) };
	struct profile  p;

	(void)state;
	init_heap(&p);
	assert_int_equal(encode(&p, encode_heap_text), 0);
	assert_string_equal(records(), "heap profile: 0: 0 [0: 1] @ heap/1048576\n");
	reset(NULL);
	add(&p, a, 1, 0, (int64_t[4]){ 2, 200, 2, 200 });
	assert_int_equal(encode(&p, encode_heap_text), 0);
	assert_non_null(strstr((char *)sink.data, "heap profile: 1: 100 [1: 101] @ heap/1048576\n1: 100 [1: 100] @ 0x"));
	profile_release(&p);
	init_cpu(&p);
	assert_int_equal(encode(&p, encode_heap_text), -EINVAL);
	profile_release(&p);
}

static void
top_sums_by_function_and_counts_recursion_once(void **state)
{
	const uintptr_t a[] = { IN(leaf_one), IN(middle), IN(middle) + 1, IN(root) };
	const uintptr_t b[] = { IN(leaf_one) + 1, IN(root) };
	const uintptr_t c[] = { IN(middle), IN(root) };
	struct profile  p;

	(void)state;
	init_cpu(&p);
	p.lost = 1;
	add(&p, a, 4, 0, (int64_t[4]){ 120, 1200000000 });
	add(&p, b, 2, 0, (int64_t[4]){ 30, 300000000 });
	add(&p, c, 2, 0, (int64_t[4]){ 49, 490000000 });
	assert_int_equal(encode(&p, encode_top), 0);
	assert_string_equal((char *)sink.data,
		"profile: cpu, total 2s, duration 5s\n"
		"      flat   flat%         cum    cum%  function\n"
		"     1.50s  75.00%       1.50s  75.00%  leaf_one\n"
		"     490ms  24.50%       1.69s  84.50%  middle\n"
		"      10ms   0.50%        10ms   0.50%  [lost samples]\n"
		"         0   0.00%       1.99s  99.50%  root\n");
	profile_release(&p);
}

static void
top_shows_the_default_type_and_signs_of_a_difference(void **state)
{
	const uintptr_t a[] = { IN(leaf_one) }, b[] = { IN(leaf_two) };
	struct profile  p;

	(void)state;
	init_heap(&p);
	add(&p, a, 1, 0, (int64_t[4]){ 1, 1024, 0, -3145728 });
	add(&p, b, 1, 0, (int64_t[4]){ 1, 3072, 0, 1048576 });
	assert_int_equal(encode(&p, encode_top), 0);
	assert_string_equal((char *)sink.data,
		"heap: inuse_space, total 4MB\n"
		"      flat   flat%         cum    cum%  function\n"
		"      -3MB -75.00%        -3MB -75.00%  leaf_one\n"
		"       1MB  25.00%         1MB  25.00%  leaf_two\n");
	reset(NULL);
	p.default_type = "alloc_space";
	assert_int_equal(encode(&p, encode_top), 0);
	assert_string_equal((char *)sink.data,
		"heap: alloc_space, total 4kB\n"
		"      flat   flat%         cum    cum%  function\n"
		"       3kB  75.00%         3kB  75.00%  leaf_two\n"
		"       1kB  25.00%         1kB  25.00%  leaf_one\n");
	profile_release(&p);
	init_cpu(&p);
	reset(NULL);
	assert_int_equal(encode(&p, encode_top), 0);
	assert_string_equal((char *)sink.data,
		"profile: cpu, total 0, duration 5s\n"
		"      flat   flat%         cum    cum%  function\n");
	profile_release(&p);
}

static void
top_says_how_many_functions_it_left_out(void **state)
{
	struct profile p;

	(void)state;
	init_cpu(&p);
	for (uintptr_t i = 0; i < 92; i++)
		add(&p, (uintptr_t[1]){ 0x10000 + i }, 1, 0, (int64_t[4]){ 1, 10000000 });
	assert_int_equal(encode(&p, encode_top), 0);
	assert_non_null(strstr((char *)sink.data, "0x1004f\n12 of 92 functions left out\n"));
	profile_release(&p);
}

static void
amounts_are_written_as_pprof_writes_them(void **state)
{
	static const struct {
		int64_t     value;
		const char *unit, *want;
	} cases[] = {
		{ 0, "bytes", "0" }, { 1, "bytes", "1B" }, { 1023, "bytes", "1023B" },
		{ 1024, "bytes", "1kB" }, { 1536, "bytes", "1.50kB" }, { 524288000, "bytes", "500MB" },
		{ -2048, "bytes", "-2kB" }, { INT64_MAX, "bytes", "8192PB" }, { INT64_MIN, "bytes", "-8192PB" },
		{ 999, "nanoseconds", "999ns" }, { 1500, "nanoseconds", "1.50us" },
		{ 10000000, "nanoseconds", "10ms" }, { 61000000000, "nanoseconds", "61s" },
		{ 17, "count", "17" }, { -17, "count", "-17" },
	};
	char buf[LINES_NUMBER_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		lines_value(buf, cases[i].value, cases[i].unit);
		assert_string_equal(buf, cases[i].want);
	}
	lines_percent(buf, INT64_MIN, (uint64_t)1 << 63);
	assert_string_equal(buf, "-100.00%");
	lines_percent(buf, 1, 0);
	assert_string_equal(buf, "0.00%");
}

static bool
smaller(const void *arg, uint32_t a, uint32_t b)
{
	(void)arg;
	return a < b;
}

static void
sorting_sorts(void **state)
{
	uint32_t items[1000], seed = 1;

	(void)state;
	for (size_t n = 0; n < 1000; n = n * 3 / 2 + 1) {
		for (size_t i = 0; i < n; i++)
			items[i] = (seed = seed * 1103515245 + 12345) >> 20;
		order_sort(items, n, smaller, NULL);
		for (size_t i = 1; i < n; i++)
			assert_true(items[i - 1] <= items[i]);
	}
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
		cmocka_unit_test_setup(an_error_of_the_writer_ends_it_and_is_returned, reset),
		cmocka_unit_test_setup(a_hundred_thousand_stacks_take_no_memory_of_malloc_and_little_else, reset),
		cmocka_unit_test_setup(heap_text_is_what_Go_writes, reset),
		cmocka_unit_test_setup(frames_of_the_text_are_whole_or_bare, reset),
		cmocka_unit_test_setup(without_descriptors_a_profile_has_bare_addresses, reset),
		cmocka_unit_test_setup(equal_totals_are_told_apart_by_a_byte, reset),
		cmocka_unit_test_setup(top_sums_by_function_and_counts_recursion_once, reset),
		cmocka_unit_test_setup(top_shows_the_default_type_and_signs_of_a_difference, reset),
		cmocka_unit_test_setup(top_says_how_many_functions_it_left_out, reset),
		cmocka_unit_test(amounts_are_written_as_pprof_writes_them),
		cmocka_unit_test(sorting_sorts),
	};
	int failed;

	/* What a distribution's debug files cost is not the encoders' matter. */
	debug_file_root = "/nonexistent";
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	free(sink.data);
	return failed;
}
