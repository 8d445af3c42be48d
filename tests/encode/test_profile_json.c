/*
 * test_profile_json.c - a profile as JSON: its tables, its tree, what a double does not hold, and errors.  That it
 * says what pprof's form says is tried by tests/viewer/figures.t.
 */
#include <config.h>

#include <sys/resource.h>

#include "fixture.h"

static void
has(const char *text)
{
	if (!strstr((const char *)sink.data, text))
		fail_msg("no %s in %s", text, (const char *)sink.data);
}

static void
make(struct profile *p)
{
	const uintptr_t a[] = { IN(leaf_one), IN(root) }, b[] = { IN(leaf_two), IN(root) };

	init_cpu(p);
	profile_comment(p, "one");
	profile_comment(p, "two \"quoted\"");
	add(p, a, 2, 0, (int64_t[4]){ 3, ((int64_t)1 << 53) + 1 });
	add(p, b, 2, 4096, (int64_t[4]){ -4, -40000000 });
}

static void
stacks_share_nodes_and_samples_name_them(void **state)
{
	struct profile p;

	(void)state;
	make(&p);
	p.lost = 7;
	assert_int_equal(encode(&p, encode_profile_json), 0);
	has("{\"version\":1,\"name\":\"profile\",\"program\":\"");
	has("\"time_ns\":\"1700000000123456789\",\"duration_ns\":5000000000,\"period\":[[\"cpu\",\"nanoseconds\"],10000000],"
	    "\"types\":[[\"samples\",\"count\"],[\"cpu\",\"nanoseconds\"]],\"default\":1,\"lost\":7,\"truncated\":0,\n"
	    "\"strings\":[\"\",");
	has("],\n\"comments\":[\"one\",\"two \\\"quoted\\\"\"],\n\"objects\":[");
	has("\"leaf_one\"");
	has("\"leaf_two\"");
	has("\"[lost samples]\"");
	has("\"nodes\":[-1,0,0,1,0,2,-1,3],\n");
	has("\"samples\":[1,0,3,\"9007199254740993\",2,1,-4,-40000000,3,0,7,70000000]}\n");
	assert_int_equal(sink.data[sink.size - 1], '\n');
	profile_release(&p);
}

static void
a_number_that_a_double_cannot_hold_is_a_string(void **state)
{
	struct profile p;

	(void)state;
	make(&p);
	p.duration_ns = ((int64_t)1 << 53) + 1;
	p.period = -((int64_t)1 << 53) - 1;
	assert_int_equal(encode(&p, encode_profile_json), 0);
	has("\"duration_ns\":\"9007199254740993\",\"period\":[[\"cpu\",\"nanoseconds\"],\"-9007199254740993\"],");
	profile_release(&p);
}

static void
sizes_of_blocks_are_labels(void **state)
{
	const char    *labels;
	struct profile p;

	(void)state;
	make(&p);
	assert_int_equal(encode(&p, encode_profile_json), 0);
	has("\"bytes\",\"4096\"");
	labels = strstr((const char *)sink.data, "\"labels\":[");
	assert_non_null(labels);
	assert_int_equal(strncmp(labels, "\"labels\":[[],[[", 14), 0);
	profile_release(&p);
}

static void
an_empty_profile_is_whole(void **state)
{
	struct profile p;

	(void)state;
	init_heap(&p);
	assert_int_equal(encode(&p, encode_profile_json), 0);
	has(",\n\"strings\":[\"\"],\n\"comments\":[],\n\"objects\":[],\n\"functions\":[],\n\"frames\":[],\n\"labels\":[[]],\n\"nodes\":[],\n\"samples\":[]}\n");
	p.type_count = 0;
	assert_int_equal(encode(&p, encode_profile_json), -EINVAL);
	profile_release(&p);
}

static void
what_names_lack_is_a_comment_as_in_pprofs_form(void **state)
{
	struct rlimit  limit, none;
	struct profile p;
	int            r;

	(void)state;
	make(&p);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = limit;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	r = encode(&p, encode_profile_json);
	setrlimit(RLIMIT_NOFILE, &limit);
	assert_int_equal(r, 0);
	has("\"comments\":[\"one\",\"two \\\"quoted\\\"\",\"there are no names: ");
	profile_release(&p);
}

static void
what_the_writer_answers_ends_it(void **state)
{
	struct profile p;

	(void)state;
	make(&p);
	sink.fail_at = 1;
	assert_int_equal(encode(&p, encode_profile_json), -EPIPE);
	assert_int_equal(sink.pieces, 1);
	profile_release(&p);
}

static void
many_stacks_are_written_in_pieces_and_without_malloc(void **state)
{
	struct profile p;
	int64_t        before;

	(void)state;
	init_cpu(&p);
	for (uintptr_t i = 0; i < 20000; i++) {
		const uintptr_t pcs[] = { 4096 + 16 * i, 4096 + 16 * (i % 100), IN(root) };

		add(&p, pcs, 3, 0, (int64_t[4]){ 1, 1 });
	}
	before = heap_used();
	assert_int_equal(encode(&p, encode_profile_json), 0);
	assert_true(sink.pieces > 10 && sink.largest <= (size_t)64 << 10);
	if (!SANITIZED)
		assert_true(sink.heap_used - before < (int64_t)512 << 10);
	/* 100 callers, below each of which are 200. */
	has("-1,0,0,1,1,1,0,2,3,2,0,3,");
	profile_release(&p);
}

/* Two million nodes are more than the table has memory for: what comes behind is written, and comes again. */
static void
nodes_that_cannot_be_remembered_come_again(void **state)
{
	enum { STACKS = 20000, DEPTH = 100, AGAIN = 10 };
	struct profile p;
	size_t         nodes = 0;

	(void)state;
	init_cpu(&p);
	for (uintptr_t i = 0; i < STACKS + AGAIN; i++) {
		uintptr_t pcs[DEPTH], n = i < STACKS ? i : i - AGAIN;

		for (uintptr_t k = 0; k < DEPTH - 1; k++)
			pcs[k] = 4096 + 16 * k;
		pcs[DEPTH - 1] = 65536 + 16 * n;
		add(&p, pcs, DEPTH, 0, (int64_t[4]){ 1, 1 });
	}
	assert_int_equal(encode(&p, encode_profile_json), 0);
	for (const char *at = strstr((const char *)sink.data, "\"nodes\":["); *at != ']'; at++)
		nodes += *at == ',';
	assert_int_equal((nodes + 1) / 2, (STACKS + AGAIN) * DEPTH);
	profile_release(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(stacks_share_nodes_and_samples_name_them, reset),
		cmocka_unit_test_setup(a_number_that_a_double_cannot_hold_is_a_string, reset),
		cmocka_unit_test_setup(sizes_of_blocks_are_labels, reset),
		cmocka_unit_test_setup(an_empty_profile_is_whole, reset),
		cmocka_unit_test_setup(what_names_lack_is_a_comment_as_in_pprofs_form, reset),
		cmocka_unit_test_setup(what_the_writer_answers_ends_it, reset),
		cmocka_unit_test_setup(many_stacks_are_written_in_pieces_and_without_malloc, reset),
		cmocka_unit_test_setup(nodes_that_cannot_be_remembered_come_again, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
