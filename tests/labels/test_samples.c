/*
 * test_samples.c - samples of every kind, dumps and traces carry the labels of their thread.
 */
#include <config.h>

#include <component/profiler.h>

#include "collector.h"
#include "cpu/cpu.h"
#include "cpu_burn.h"
#include "heap/heap.h"
#include "fixture.h"
#include "trace/tracer.h"

#define ROUNDS  5
#define TURN_NS INT64_C(40000000) /* longer than any tick of a kernel */

BURN_FUNCTION(for_nobody)
static void
for_nobody(void)
{
	burn_ns(TURN_NS);
}

BURN_FUNCTION(for_a)
static void
for_a(void)
{
	burn_ns(TURN_NS);
}

BURN_FUNCTION(for_b)
static void
for_b(void)
{
	burn_ns(TURN_NS);
}

/* The part of p whose labels are these; it shares p's stacks. */
static struct profile
labelled(const struct profile *p, const char *labels)
{
	struct profile part = { .samples = calloc(p->count, sizeof(*p->samples)) };
	char           text[LABELS_TEXT_MAX];

	assert_non_null(part.samples);
	for (size_t i = 0; i < p->count; i++) {
		labels_text(p->samples[i].labels, text, sizeof(text));
		if (strcmp(text, labels) == 0)
			part.samples[part.count++] = p->samples[i];
	}
	return part;
}

static int64_t
value_of(const struct profile *p, const char *labels, unsigned type)
{
	struct profile part = labelled(p, labels);
	int64_t        sum = 0;

	for (size_t i = 0; i < part.count; i++)
		sum += part.samples[i].values[type];
	free(part.samples);
	return sum;
}

static void
goroutines(struct profile *ret)
{
	struct product p = { 0 };

	assert_int_equal(collect_goroutine.snapshot(&collect_goroutine, &(struct collect_params){ .own = true }, &p), 0);
	*ret = p.profile;
}

/* Of the samples with these labels, those of each function.  How often the kernel
 * looks is the machine's affair; what it saw is not. */
static void
assert_samples_of(const struct profile *p, const char *labels, bool nobody, bool a, bool b)
{
	struct profile part = labelled(p, labels);

	assert_int_equal(burn_samples(&part, for_nobody) > 0, nobody);
	assert_int_equal(burn_samples(&part, for_a) > 0, a);
	assert_int_equal(burn_samples(&part, for_b) > 0, b);
	free(part.samples);
}

static void
cpu_time_is_told_apart_by_labels(void **state)
{
	struct cpu_window *w;
	struct profile     p;

	(void)state;
	assert_int_equal(component_profiler_set_cpu_rate(1000), 0);
	assert_int_equal(cpu_window_open(&w), 0);
	for (int i = 0; i < ROUNDS; i++) {
		for_nobody();
		COMPONENT_LABEL_SCOPE("tenant", "a");
		for_a();
		component_label_set("tenant", "b");
		for_b();
	}
	assert_int_equal(cpu_window_close(w, &p), 0);
	component_profiler_set_cpu_rate(0);
	assert_samples_of(&p, "", true, false, false);
	assert_samples_of(&p, "{\"tenant\":\"a\"}", false, true, false);
	assert_samples_of(&p, "{\"tenant\":\"b\"}", false, false, true);
	profile_release(&p);
}

struct storm {
	_Atomic int stop;
	unsigned    number;
	uint64_t    changes;
};

/* Sets of which each value is one letter, many times, and all of a set are the same. */
static void *
change_all_the_time(void *arg)
{
	struct storm *s = arg;
	char          value[LABELS_VALUE_MAX + 1] = "";
	unsigned      random = s->number;

	while (!atomic_load_explicit(&s->stop, memory_order_relaxed)) {
		random = random * 1103515245U + 12345;
		memset(value, 'a' + (int)(random >> 16) % 26, 40 + (random >> 8) % 200);
		value[40 + (random >> 8) % 200] = '\0';
		component_label_clear(NULL);
		COMPONENT_LABEL_SCOPE("one", value);
		component_label_set("two", value);
		if (random & 64) {
			COMPONENT_LABEL_SCOPE("one", NULL);
			component_label_set("three", value);
		}
		s->changes++;
	}
	return NULL;
}

/* How many labelled samples; -1: one is torn. */
static int64_t
whole_samples(const struct profile *p)
{
	struct label labels[LABELS_MAX];
	int64_t      sum = 0;

	for (size_t i = 0; i < p->count; i++) {
		unsigned n = labels_read(p->samples[i].labels, labels);

		for (unsigned k = 0; k < n; k++) {
			if (strspn(labels[k].value, (char[]){ labels[0].value[0], 0 }) != strlen(labels[k].value) ||
			    (strcmp(labels[k].key, "one") && strcmp(labels[k].key, "two") && strcmp(labels[k].key, "three")))
				return -1;
		}
		if (n > 0)
			sum += p->samples[i].values[0];
	}
	return sum;
}

static void
samples_taken_at_any_instruction_have_whole_labels(void **state)
{
	struct storm       storms[3] = { { .number = 1 }, { .number = 2 }, { .number = 3 } };
	pthread_t          threads[3];
	struct cpu_window *w;
	struct profile     p, dump;
	int64_t            found = 0, one;

	(void)state;
	assert_int_equal(component_profiler_set_cpu_rate(1000), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, change_all_the_time, &storms[i]), 0);
	/* Until enough were seen: a loaded machine gives little time. */
	for (int round = 0; round < 200 && found < 1000; round++) {
		assert_int_equal(cpu_window_open(&w), 0);
		for (int i = 0; i < 5; i++) {
			rest_ns(10000000);
			goroutines(&dump);
			assert_true(whole_samples(&dump) >= 0);
			profile_release(&dump);
		}
		assert_int_equal(cpu_window_close(w, &p), 0);
		one = whole_samples(&p);
		profile_release(&p);
		assert_true(one >= 0);
		found += one;
	}
	for (int i = 0; i < 3; i++)
		atomic_store(&storms[i].stop, 1);
	for (int i = 0; i < 3; i++) {
		pthread_join(threads[i], NULL);
		assert_true(storms[i].changes > 100);
	}
	component_profiler_set_cpu_rate(0);
	assert_true(found >= 1000);
}

static void
goroutines_of_equal_stacks_are_apart_when_their_labels_are(void **state)
{
	struct other   o[3] = { 0 };
	pthread_t      t[3];
	struct profile p;
	int64_t        labelled;

	(void)state;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(pthread_create(&t[i], NULL, label_and_wait, &o[i]), 0);
		WAIT_FOR(atomic_load(&o[i].tid) != 0);
	}
	component_label_set("who", "dumps");
	goroutines(&p);
	labelled = value_of(&p, "{\"tenant\":\"first\"}", 0);
	assert_int_equal(value_of(&p, "{\"who\":\"dumps\"}", 0), 1);
	profile_release(&p);
	component_label_clear(NULL);
	for (int i = 0; i < 3; i++) {
		atomic_store(&o[i].go, 2);
		pthread_join(t[i], NULL);
	}
	assert_int_equal(labelled, 3);
}

/* What a trace says of a thread's labels, one after the other. */
static void
told_labels(const struct trace *t, int tid, char *ret, size_t size)
{
	size_t used = 0;

	for (size_t i = 0; i < t->count; i++) {
		const struct trace_record *r = &t->records[i];

		if (r->type == TRACE_LABELS && r->tid == tid && used < size)
			used += (size_t)snprintf(ret + used, size - used, "%s[%s]", r->time_ns == t->start_ns ? "at first " : "",
				trace_string(t, r->text));
	}
}

static void
traces_tell_labels_as_they_were_at_the_start_and_their_changes(void **state)
{
	struct other          o = { 0 };
	struct tracer_window *w;
	struct trace          trace;
	pthread_t             t;
	int                   tid;
	char                  mine_told[200] = "", other_told[200] = "", child_told[200] = "", said[256];

	(void)state;
	component_label_set("job", "x\ny");
	component_label_set("tenant", "acme");
	assert_int_equal(pthread_create(&t, NULL, label_and_wait, &o), 0);
	WAIT_FOR((tid = atomic_load(&o.tid)) != 0);
	assert_int_equal(tracer_open(&w), 0);
	{
		COMPONENT_LABEL_SCOPE("tenant", "zeta");
		component_label_set("tenant", "zeta"); /* no change */
		component_label_clear("job");
	}
	atomic_store(&o.go, 1);
	WAIT_FOR(atomic_load(&o.tid) <= 0);
	atomic_store(&o.go, 2);
	pthread_join(t, NULL);
	assert_int_equal(pthread_create(&t, NULL, say_mine, said), 0);
	pthread_join(t, NULL);
	assert_int_equal(tracer_close(w, &trace), 0);
	told_labels(&trace, (int)syscall(SYS_gettid), mine_told, sizeof(mine_told));
	told_labels(&trace, tid, other_told, sizeof(other_told));
	for (size_t i = 0; i < trace.thread_count; i++)
		if (trace.threads[i].born_ns)
			told_labels(&trace, trace.threads[i].tid, child_told, sizeof(child_told));
	trace_release(&trace);
	component_label_clear(NULL); /* nobody listens any more */
	assert_string_equal(mine_told, "at first [job=x?y tenant=acme][job=x?y tenant=zeta][tenant=zeta][job=x?y tenant=acme]");
	assert_string_equal(other_told, "at first [job=x?y tenant=first][job=x?y]");
	assert_string_equal(child_told, "[job=x?y tenant=acme][job=x?y own=of the child tenant=acme]");
}

#define LABELLED_BYTES 300000

static __attribute__((noinline)) void *
allocate_here(void)
{
	return malloc(LABELLED_BYTES);
}

/* The last of this file: sites keep their labels for ever. */
static void
heap_samples_have_the_labels_of_who_allocated(void **state)
{
	struct profile p, later;
	void          *blocks[3], *volatile resized;
	char           value[16];

	(void)state;
	if (heap_set_rate(1) < 0)
		skip();
	blocks[0] = allocate_here();
	{
		COMPONENT_LABEL_SCOPE("tenant", "a");
		blocks[1] = allocate_here();
	}
	{
		COMPONENT_LABEL_SCOPE("tenant", "b");
		blocks[2] = allocate_here();
		free(blocks[1]);
		resized = realloc(blocks[2], 2 * LABELLED_BYTES);
	}
	assert_int_equal(heap_snapshot(&p, false), 0);
	assert_int_equal(value_of(&p, "{\"tenant\":\"a\"}", 1), LABELLED_BYTES);
	assert_int_equal(value_of(&p, "{\"tenant\":\"a\"}", 3), 0);
	assert_int_equal(value_of(&p, "{\"tenant\":\"b\"}", 1), 3 * LABELLED_BYTES);
	assert_int_equal(value_of(&p, "{\"tenant\":\"b\"}", 3), 2 * LABELLED_BYTES);
	{
		COMPONENT_LABEL_SCOPE("tenant", "a");
		blocks[1] = allocate_here();
	}
	assert_int_equal(heap_snapshot(&later, false), 0);
	assert_int_equal(profile_subtract(&later, &p), 0);
	assert_int_equal(value_of(&later, "{\"tenant\":\"a\"}", 1), LABELLED_BYTES);
	assert_int_equal(value_of(&later, "{\"tenant\":\"b\"}", 1), 0);
	profile_release(&later);
	free(blocks[0]);
	free(blocks[1]);
	free(resized);

	/* A label of too many values ends without, not without memory. */
	for (int i = 0; i < 17000; i++) {
		snprintf(value, sizeof(value), "%d", i);
		COMPONENT_LABEL_SCOPE("request", value);
		free(malloc(64));
	}
	heap_set_rate(0);
	assert_int_equal(heap_snapshot(&p, false), 0);
	assert_int_equal(heap_lost(), 0);
	assert_true(value_of(&p, "{\"request\":\"100\"}", 0) > 0);
	assert_int_equal(value_of(&p, "{\"request\":\"16999\"}", 0), 0);
	assert_non_null(strstr(p.comments, "samples are counted without theirs: 16384 sites"));
	profile_release(&p);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, nothing_is_left)
	const struct CMUnitTest tests[] = {
		TEST(cpu_time_is_told_apart_by_labels),
		TEST(samples_taken_at_any_instruction_have_whole_labels),
		TEST(goroutines_of_equal_stacks_are_apart_when_their_labels_are),
		TEST(traces_tell_labels_as_they_were_at_the_start_and_their_changes),
		cmocka_unit_test(heap_samples_have_the_labels_of_who_allocated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
