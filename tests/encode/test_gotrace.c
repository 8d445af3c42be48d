/*
 * test_gotrace.c - the story that encoders make of a trace keeps the rules of its
 * readers, whatever the records say; and what the two Go formats want of bytes.
 *
 * tests/encode/gotrace.t opens such files with the real go tool trace.
 */
#include <config.h>

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>

#include "encode.h"
#include "named_function.h"
#include "skip.h"
#include "stack_table.h"
#include "trace/stacks.h"
#include "trace/story.h"
#include "trace/streams.h"

#define LIMIT   ((size_t)64 << 20)
#define ROOM    ((size_t)64 << 20)
#define STACK   ((size_t)256 << 10) /* what the library's own threads have */
#define EVENTS  20000
#define SERIALS 4096
#define CPUS    64
#define START   1000000u

/* ---- traces ---- */

static struct trace trace;

static void
trace_make(int source, unsigned cpus)
{
	trace_init(&trace);
	trace.source = source;
	trace.cpus = cpus;
	trace.start_ns = START;
	trace.end_ns = START + 1000000;
}

static uint32_t
stack_of(uintptr_t seed, unsigned depth)
{
	uintptr_t pcs[STACK_FRAMES_MAX];

	for (unsigned i = 0; i < depth; i++)
		pcs[i] = 0x10000 + seed * 1000 + i;
	return stack_table_add(pcs, depth);
}

static void
thread(int32_t tid, uint64_t born, enum trace_state state, const char *name)
{
	struct trace_thread t = { .tid = tid, .state = (uint8_t)state, .born_ns = born, .main = tid == 1,
		.reason = TRACE_NETWORK, .stack = state == TRACE_STATE_WAITING ? stack_of((uintptr_t)tid, 3) : 0 };

	snprintf(t.name, sizeof(t.name), "%s", name);
	assert_int_equal(trace_add_thread(&trace, &t), 0);
}

static void
add(uint64_t after, int32_t tid, enum trace_type type, struct trace_record r)
{
	r.time_ns = START + after;
	r.tid = tid;
	r.type = (uint8_t)type;
	assert_int_equal(trace_add(&trace, &r), 0);
}

#define ADD(after, tid, type, ...) add(after, tid, type, (struct trace_record){ .unused = 0, ##__VA_ARGS__ })

/* ---- a listener that keeps the readers' rules, and a text of what it heard ---- */

struct listener {
	uint8_t  state[SERIALS]; /* 0: not created */
	uint32_t cpu[SERIALS], regions[SERIALS];
	uint32_t runs[CPUS];     /* serial */
	bool     started[CPUS];
	uint64_t last, counts[STORY_LOG + 1];
	uint64_t reasons[256];
	bool     tasks[512];
	char     label[64]; /* of the last who started */
	size_t   used;
	char     heard[1 << 20];
};

static struct listener ear;

static void
hear_state(const struct story_event *e)
{
	uint32_t g = e->type == STORY_CREATE || e->type == STORY_UNBLOCK ? e->other->serial : e->on->serial;

	assert_in_range(g, 1, SERIALS - 1);
	switch (e->type) {
	case STORY_CPU_START:
		assert_false(ear.started[e->cpu]);
		ear.started[e->cpu] = true;
		break;
	case STORY_CPU_STOP:
		assert_true(ear.started[e->cpu]);
		assert_int_equal(ear.runs[e->cpu], 0);
		ear.started[e->cpu] = false;
		break;
	case STORY_CREATE:
		assert_int_equal(ear.state[g], 0);
		ear.state[g] = 1 + STORY_RUNNABLE;
		break;
	case STORY_START:
		assert_true(ear.started[e->cpu]);
		assert_int_equal(ear.runs[e->cpu], 0);
		assert_int_equal(ear.state[g], 1 + STORY_RUNNABLE);
		ear.state[g] = 1 + STORY_RUNNING;
		ear.runs[e->cpu] = g;
		break;
	case STORY_UNBLOCK:
		assert_int_equal(ear.state[g], 1 + STORY_WAITING);
		assert_true(ear.started[e->cpu]);
		assert_true(e->made == STORY_WAKEUP ? !ear.runs[e->cpu] : ear.runs[e->cpu] == e->on->serial);
		ear.state[g] = 1 + STORY_RUNNABLE;
		break;
	case STORY_PREEMPT:
	case STORY_BLOCK:
	case STORY_END:
		assert_int_equal(ear.state[g], 1 + STORY_RUNNING);
		assert_int_equal(ear.runs[e->cpu], g);
		ear.runs[e->cpu] = 0;
		ear.state[g] = 1 + (e->type == STORY_BLOCK ? STORY_WAITING : e->type == STORY_END ? STORY_DEAD :
			STORY_RUNNABLE);
		break;
	case STORY_SAMPLE:
		assert_true(e->cpu == STORY_NO_CPU || ear.runs[e->cpu] == g);
		assert_true(ear.state[g] != 0);
		break;
	case STORY_HEAP:
		assert_true(ear.started[e->cpu]);
		break;
	default: /* what a thread says of itself */
		assert_int_equal(ear.runs[e->cpu], g);
	}
	if (e->type == STORY_CREATE && ear.runs[e->cpu])
		assert_int_equal(ear.runs[e->cpu], e->on->serial);
}

static void
hear_names(const struct story_event *e)
{
	if (e->type == STORY_TASK_BEGIN) {
		assert_false(ear.tasks[e->value % 512]);
		ear.tasks[e->value % 512] = true;
	} else if (e->type == STORY_TASK_END) {
		ear.tasks[e->value % 512] = false;
	} else if (e->type == STORY_REGION_END && e->on->regions) {
		assert_true(e->on->regions->task == e->value);
		assert_string_equal(e->on->regions->name, e->name);
	}
}

static int
hear(void *arg, const struct story_event *e)
{
	static const char *const words[] = { "cpu+", "cpu-", "create", "start", "preempt", "block", "unblock", "end", "label",
		"sample", "heap", "task+", "task-", "region+", "region-", "log" };
	const struct story_thread *who = e->other ? e->other : e->on;

	(void)arg;
	assert_true(e->time > ear.last);
	ear.last = e->time;
	assert_true(e->cpu < CPUS || (e->type == STORY_SAMPLE && e->cpu == STORY_NO_CPU));
	hear_state(e);
	hear_names(e);
	if (e->type == STORY_START)
		snprintf(ear.label, sizeof(ear.label), "%s", e->on->label);
	ear.counts[e->type]++;
	ear.reasons[e->reason] += e->type == STORY_BLOCK;
	if (e->type != STORY_CPU_START && e->type != STORY_CPU_STOP && ear.used < sizeof(ear.heard) - 64)
		ear.used += (size_t)snprintf(ear.heard + ear.used, 64, "%s %d%s%s; ", words[e->type], who->tid,
			e->type == STORY_BLOCK && e->made == STORY_TAKEN ? "!" : "", e->made == STORY_WAKEUP ? "?" : "");
	return 0;
}

static struct story story;

/* What a listener heard after the beginning's creations and parks. */
static const char *
told(void)
{
	struct arena_budget budget = { 0, LIMIT };
	const char         *from;

	memset(&ear, 0, sizeof(ear));
	assert_int_equal(trace_sort(&trace), 0);
	assert_int_equal(story_tell(&story, &trace, &budget, NULL, hear, NULL), 0);
	for (unsigned i = 0; i < CPUS; i++) { /* older viewers die of one who runs at the end */
		assert_int_equal(ear.runs[i], 0);
		assert_false(ear.started[i]);
	}
	story_end(&story);
	assert_int_equal(budget.used, 0);
	trace_release(&trace);
	assert_int_equal(stack_table_bytes(), 0);
	from = strstr(ear.heard, "| ");
	return from ? from : ear.heard;
}

static void
a_thread_that_waits_at_the_start_says_where_from_the_beginning(void **state)
{
	(void)state;
	trace_make(TRACE_BY_SWITCHES, 2);
	thread(1, 0, TRACE_STATE_WAITING, "main");
	thread(2, 0, TRACE_STATE_UNKNOWN, "idle");
	assert_string_equal(told(), "create 1; create 2; start 1; block 1!; start 2; block 2; ");
}

static void
who_leaves_a_cpu_first_was_on_it_since_the_start(void **state)
{
	(void)state;
	trace_make(TRACE_BY_SWITCHES, 2);
	thread(1, 0, TRACE_STATE_UNKNOWN, "main");
	thread(2, 0, TRACE_STATE_UNKNOWN, "w");
	ADD(10, 1, TRACE_OUT, .flags = TRACE_PREEMPTED);
	ADD(20, 2, TRACE_IN);
	ADD(30, 2, TRACE_OUT);
	assert_string_equal(told(), "create 1; create 2; start 2; block 2; start 1; preempt 1; unblock 2?; start 2; block 2; ");
}

static void
a_sample_tells_of_a_thread_that_never_leaves_its_cpu(void **state)
{
	(void)state;
	trace_make(TRACE_BY_SWITCHES, 2);
	thread(1, 0, TRACE_STATE_RUNNING, "main");
	ADD(10, 1, TRACE_SAMPLE, .cpu = 1, .stack = stack_of(1, 2));
	assert_string_equal(told(), "create 1; start 1; sample 1; preempt 1; ");
}

static void
a_thread_that_nothing_is_told_of_runs_all_the_time_where_nobody_else_does(void **state)
{
	(void)state;
	trace_make(TRACE_BY_SWITCHES, 2);
	thread(1, 0, TRACE_STATE_UNKNOWN, "main");
	thread(2, 0, TRACE_STATE_RUNNING, "w");
	thread(3, 0, TRACE_STATE_RUNNING, "x"); /* there is no third processor */
	ADD(10, 1, TRACE_OUT, .cpu = 0);
	ADD(20, 2, TRACE_SAMPLE, .cpu = TRACE_CPU_NONE, .stack = stack_of(1, 2));
	told();
	assert_int_equal(ear.counts[STORY_START], 2);
	assert_int_equal(ear.counts[STORY_SAMPLE], 1);
}

static void
labels_of_the_start_are_those_of_a_thread_that_never_leaves_its_cpu(void **state)
{
	(void)state;
	trace_make(TRACE_BY_SWITCHES, 2);
	thread(1, 0, TRACE_STATE_RUNNING, "main");
	ADD(0, 1, TRACE_LABELS, .text = trace_text(&trace, "tenant=acme", 64));
	ADD(10, 1, TRACE_SAMPLE, .cpu = 1, .stack = stack_of(1, 2));
	told();
	assert_string_equal(ear.label, "tenant=acme"); /* the main thread bears the program's name */
}

static void
a_wait_is_a_block_only_when_the_thread_leaves_its_cpu(void **state)
{
	(void)state;
	trace_make(TRACE_BY_SWITCHES, 1);
	thread(1, 0, TRACE_STATE_RUNNING, "main");
	ADD(1, 1, TRACE_IN);
	ADD(2, 1, TRACE_WAIT, .reason = TRACE_SYNC, .stack = stack_of(1, 2));
	ADD(3, 1, TRACE_WAIT_END);
	ADD(4, 1, TRACE_OUT);
	ADD(5, 1, TRACE_IN);
	ADD(6, 1, TRACE_WAIT, .reason = TRACE_SYNC, .stack = stack_of(1, 2));
	ADD(7, 1, TRACE_OUT); /* twice in one wait */
	ADD(8, 1, TRACE_IN);
	ADD(9, 1, TRACE_OUT);
	ADD(10, 1, TRACE_IN);
	ADD(11, 1, TRACE_WAIT_END);
	ADD(12, 1, TRACE_OUT, .flags = TRACE_PREEMPTED);
	assert_string_equal(told(), "create 1; start 1; block 1; unblock 1?; start 1; block 1!; unblock 1?; start 1; block 1!; "
		"unblock 1?; start 1; preempt 1; ");
}

/* Nobody tells the end of that wait: the next one may be another. */
static void
a_wait_of_the_start_is_over_when_its_thread_runs(void **state)
{
	(void)state;
	trace_make(TRACE_BY_SWITCHES, 2);
	thread(1, 0, TRACE_STATE_WAITING, "main");
	for (unsigned i = 0; i < 3; i++) {
		ADD(10 * i + 1, 1, TRACE_IN);
		ADD(10 * i + 2, 1, TRACE_OUT);
	}
	ADD(41, 1, TRACE_IN);
	ADD(42, 1, TRACE_WAIT, .reason = TRACE_SYNC, .stack = stack_of(2, 2));
	ADD(43, 1, TRACE_OUT);
	assert_string_equal(told(), "create 1; start 1; block 1!; unblock 1?; start 1; block 1; unblock 1?; start 1; block 1; "
		"unblock 1?; start 1; block 1; unblock 1?; start 1; block 1!; ");
	assert_int_equal(ear.reasons[TRACE_NETWORK], 1);
	assert_int_equal(ear.reasons[TRACE_OTHER], 3);
}

static void
by_hooks_a_sample_ends_the_wait_of_the_start_and_none_that_was_told(void **state)
{
	(void)state;
	trace_make(TRACE_BY_HOOKS, 0);
	thread(1, 0, TRACE_STATE_WAITING, "main");
	thread(2, 0, TRACE_STATE_WAITING, "woken");
	ADD(1, 1, TRACE_SAMPLE, .cpu = TRACE_CPU_NONE, .stack = stack_of(1, 2));
	ADD(2, 1, TRACE_WAKE, .other = 2, .stack = stack_of(1, 2));
	ADD(3, 2, TRACE_SAMPLE, .cpu = TRACE_CPU_NONE, .stack = stack_of(2, 2));
	ADD(4, 1, TRACE_WAIT, .reason = TRACE_SYNC, .stack = stack_of(1, 2));
	ADD(5, 1, TRACE_SAMPLE, .cpu = TRACE_CPU_NONE, .stack = stack_of(1, 2)); /* of a signal handler */
	assert_string_equal(told(), "create 1; create 2; start 1; block 1!; start 2; block 2!; unblock 1?; start 1; sample 1; "
		"unblock 2; start 2; sample 2; block 1!; sample 1; preempt 2; ");
}

static void
a_wake_makes_runnable_whoever_waits_and_nobody_else(void **state)
{
	(void)state;
	trace_make(TRACE_BY_SWITCHES, 2);
	thread(1, 0, TRACE_STATE_RUNNING, "main");
	thread(2, 0, TRACE_STATE_WAITING, "w");
	ADD(1, 1, TRACE_IN);
	ADD(2, 1, TRACE_WAKE, .other = 2, .stack = stack_of(1, 2));
	ADD(3, 1, TRACE_WAKE, .other = 2, .stack = stack_of(1, 2));
	ADD(4, 1, TRACE_WAKE, .other = 77, .stack = stack_of(1, 2));
	ADD(5, 2, TRACE_IN, .cpu = 1);
	assert_string_equal(told(), "create 1; create 2; start 2; block 2!; start 1; unblock 2; start 2; preempt 1; preempt 2; ");
}

static void
what_we_wait_for_ourselves_is_in_no_profile_of_blocking(void **state)
{
	(void)state;
	for (int own = 0; own < 2; own++) {
		trace_make(TRACE_BY_SWITCHES, 1);
		thread(1, 0, TRACE_STATE_WAITING, "main");
		thread(2, 0, TRACE_STATE_WAITING, own ? "component-job" : "job");
		trace.threads[1].own = own;
		told();
		assert_int_equal(ear.reasons[TRACE_NETWORK], own ? 1 : 2);
		assert_int_equal(ear.reasons[TRACE_OTHER], own);
	}
}

static void
what_was_not_recorded_is_made_up_where_there_is_no_doubt(void **state)
{
	(void)state;
	trace_make(TRACE_BY_SWITCHES, 2);
	thread(1, 0, TRACE_STATE_RUNNING, "main");
	thread(2, 0, TRACE_STATE_RUNNING, "w");
	ADD(1, 1, TRACE_IN);
	ADD(2, 2, TRACE_IN);             /* 1's OUT is missing */
	ADD(3, 1, TRACE_IN, .cpu = 1);
	ADD(4, 1, TRACE_IN);             /* both's OUTs are missing */
	ADD(5, 2, TRACE_OUT, .cpu = 1);  /* its IN is missing */
	ADD(6, 2, TRACE_IN, .cpu = 900); /* there is no such CPU */
	assert_string_equal(told(), "create 1; create 2; start 1; preempt 1; start 2; start 1; preempt 2; preempt 1; start 1; "
		"start 2; block 2; preempt 1; ");
	assert_int_equal(story.dropped, 1);
	assert_true(story.repaired >= 4);
}

static void
a_kernel_id_that_is_used_again_is_another_thread(void **state)
{
	(void)state;
	trace_make(TRACE_BY_SWITCHES, 2);
	thread(1, 0, TRACE_STATE_RUNNING, "main");
	thread(9, START + 2, TRACE_STATE_UNKNOWN, "first");
	thread(9, START + 20, TRACE_STATE_UNKNOWN, "second");
	ADD(1, 1, TRACE_IN);
	ADD(2, 9, TRACE_CREATE, .other = 1, .stack = stack_of(1, 2));
	ADD(3, 9, TRACE_IN, .cpu = 1);
	ADD(4, 9, TRACE_REGION_BEGIN, .name = trace_text(&trace, "open", 9));
	ADD(5, 9, TRACE_EXIT);
	ADD(6, 9, TRACE_IN, .cpu = 1); /* nothing of it counts */
	ADD(7, 9, TRACE_OUT, .cpu = 1);
	ADD(8, 9, TRACE_EXIT);
	ADD(20, 9, TRACE_CREATE, .other = 1, .stack = stack_of(1, 2));
	ADD(21, 9, TRACE_IN, .cpu = 1);
	assert_string_equal(told(), "create 1; start 1; create 9; start 9; region+ 9; region- 9; end 9; create 9; start 9; "
		"preempt 1; preempt 9; ");
}

static void
a_thread_may_be_faster_than_the_news_of_its_creation(void **state)
{
	(void)state;
	trace_make(TRACE_BY_SWITCHES, 2);
	thread(1, 0, TRACE_STATE_RUNNING, "main");
	ADD(1, 1, TRACE_IN);
	ADD(2, 9, TRACE_IN, .cpu = 1);
	ADD(3, 9, TRACE_CREATE, .other = 1, .stack = stack_of(1, 2));
	ADD(4, 9, TRACE_OUT, .cpu = 1);
	assert_string_equal(told(), "create 1; start 1; create 9; start 9; block 9; preempt 1; ");
}

static void
regions_nest_and_tasks_begin_once_whatever_is_lost(void **state)
{
	uint32_t a, b;

	(void)state;
	trace_make(TRACE_BY_SWITCHES, 1);
	thread(1, 0, TRACE_STATE_RUNNING, "main");
	a = trace_text(&trace, "a", 9);
	b = trace_text(&trace, "b", 9);
	ADD(1, 1, TRACE_IN);
	ADD(2, 1, TRACE_REGION_END, .name = a); /* began before the trace */
	ADD(3, 1, TRACE_REGION_BEGIN, .name = a);
	ADD(4, 1, TRACE_REGION_BEGIN, .name = b, .value = 5);
	ADD(5, 1, TRACE_REGION_END, .name = b); /* not of that task */
	ADD(6, 1, TRACE_REGION_END, .name = a); /* b's end is missing */
	ADD(7, 1, TRACE_TASK_BEGIN, .name = a, .value = 5);
	ADD(8, 1, TRACE_TASK_BEGIN, .name = b, .value = 5);
	ADD(9, 1, TRACE_TASK_END, .value = 5);
	ADD(10, 1, TRACE_TASK_END, .value = 6); /* began before the trace */
	ADD(11, 1, TRACE_TASK_BEGIN, .name = b, .value = 0);
	ADD(12, 1, TRACE_OUT);
	ADD(13, 1, TRACE_LOG, .name = a, .text = b); /* not on a CPU */
	assert_string_equal(told(), "create 1; start 1; region- 1; region+ 1; region+ 1; region- 1; region- 1; task+ 1; task- 1; "
		"task- 1; block 1; ");
	assert_int_equal(story.dropped, 4);
}

static void
by_hooks_a_thread_runs_when_it_does_not_wait(void **state)
{
	(void)state;
	trace_make(TRACE_BY_HOOKS, 0);
	thread(1, 0, TRACE_STATE_UNKNOWN, "main");
	thread(2, 0, TRACE_STATE_UNKNOWN, "waited");
	thread(3, 0, TRACE_STATE_UNKNOWN, "quiet");
	ADD(1, 1, TRACE_LOG, .name = 0);
	ADD(2, 2, TRACE_WAIT_END);
	ADD(3, 1, TRACE_WAIT, .reason = TRACE_COND, .stack = stack_of(1, 2));
	ADD(4, 2, TRACE_WAKE, .other = 1, .stack = stack_of(2, 2));
	ADD(5, 1, TRACE_WAIT_END);
	ADD(6, 9, TRACE_CREATE, .other = 1, .stack = stack_of(1, 2));
	ADD(7, 9, TRACE_WAIT, .reason = TRACE_SYNC, .stack = stack_of(9, 2));
	ADD(8, 9, TRACE_LOG, .name = 0); /* its WAIT_END is missing */
	ADD(9, 9, TRACE_WAIT, .reason = TRACE_SYNC, .stack = stack_of(9, 2));
	ADD(10, 9, TRACE_EXIT); /* cancelled in its wait */
	assert_string_equal(told(), "create 1; create 2; create 3; start 1; start 2; block 2; start 3; block 3; log 1; "
		"unblock 2?; start 2; block 1!; unblock 1; start 1; create 9; start 9; block 9!; unblock 9?; start 9; log 9; "
		"block 9!; unblock 9?; start 9; end 9; preempt 1; preempt 2; ");
	assert_int_equal(story.cpu_count, 4);
}

static void
by_hooks_labels_of_the_start_are_no_deed(void **state)
{
	(void)state;
	trace_make(TRACE_BY_HOOKS, 0);
	thread(1, 0, TRACE_STATE_UNKNOWN, "main");
	thread(2, 0, TRACE_STATE_UNKNOWN, "sets");
	ADD(0, 1, TRACE_LABELS, .text = trace_text(&trace, "tenant=acme", 64));
	ADD(1, 2, TRACE_LABELS, .text = trace_text(&trace, "tenant=acme", 64));
	assert_string_equal(told(), "create 1; create 2; start 1; block 1; start 2; label 2; preempt 2; ");
}

/* Nothing tells when they run: the dump of the start was made by one of them. */
static void
by_hooks_threads_of_ours_wait(void **state)
{
	(void)state;
	trace_make(TRACE_BY_HOOKS, 0);
	thread(1, 0, TRACE_STATE_RUNNING, "main");
	thread(2, 0, TRACE_STATE_RUNNING, "component-job");
	trace.threads[1].own = true;
	assert_string_equal(told(), "create 1; create 2; start 1; start 2; block 2; preempt 1; ");
}

static void
heap_counts_whether_somebody_runs_or_not(void **state)
{
	(void)state;
	trace_make(TRACE_BY_SWITCHES, 1);
	thread(1, 0, TRACE_STATE_RUNNING, "main");
	ADD(1, 0, TRACE_HEAP, .value = 100);
	ADD(2, 1, TRACE_IN);
	ADD(3, 0, TRACE_HEAP, .value = 200);
	assert_string_equal(told(), "create 1; heap 1; start 1; heap 1; preempt 1; ");
}

static void
a_sample_is_told_as_often_as_it_stands_for_up_to_a_hundred_times(void **state)
{
	(void)state;
	trace_make(TRACE_BY_SWITCHES, 1);
	thread(1, 0, TRACE_STATE_RUNNING, "main");
	ADD(1, 1, TRACE_SAMPLE, .stack = stack_of(1, 2), .value = 3);
	ADD(2, 1, TRACE_SAMPLE, .stack = stack_of(1, 2), .value = 1000);
	told();
	assert_int_equal(ear.counts[STORY_SAMPLE], 3 + 100);
}

static unsigned dice;

static unsigned
any(unsigned below)
{
	dice = dice * 1103515245u + 12345;
	return (dice >> 8) % below;
}

/* Records that no collector would make: any type, thread, CPU and time. */
static void
absurd(unsigned seed, int source)
{
	uint32_t texts[4];

	dice = seed * 2654435761u + 12345;
	trace_make(source, 1 + any(4));
	for (unsigned i = 0; i < 12; i++)
		thread((int32_t)(1 + any(9)), any(3) ? 0 : START + any(900), (enum trace_state)(any(3)), "t");
	for (unsigned i = 0; i < 4; i++)
		texts[i] = trace_text(&trace, &"abcd"[i], 9);
	for (unsigned i = 0; i < 400; i++) {
		struct trace_record r = { .time_ns = START + any(1000), .tid = (int32_t)(1 + any(12)), .other = (int32_t)(any(12)),
			.type = (uint8_t)(any(2) ? any(2) : any(TRACE_TYPE_COUNT + 2)), .reason = (uint8_t)(any(7)),
			.flags = (uint8_t)(any(2)), .cpu = (uint16_t)(any(20) ? any(5) : TRACE_CPU_NONE),
			.stack = any(2) ? stack_of(any(20), 1 + any(9)) : 0, .name = texts[any(4)], .text = texts[any(4)],
			.value = any(6), .parent = any(6) };

		if (!(any(50)))
			r.time_ns = any(2) ? 0 : UINT64_MAX - 1;
		assert_int_equal(trace_add(&trace, &r), 0);
	}
}

static void
no_records_can_break_the_rules(void **state)
{
	uint64_t counts[STORY_LOG + 1] = { 0 };

	(void)state;
	for (unsigned seed = 0; seed < 300; seed++) {
		absurd(seed, seed % 3 ? TRACE_BY_SWITCHES : TRACE_BY_HOOKS);
		told();
		for (unsigned i = 0; i <= STORY_LOG; i++)
			counts[i] += ear.counts[i];
	}
	for (unsigned i = 0; i <= STORY_LOG; i++)
		assert_true(counts[i] > 100); /* all of them were told of */
}

/* ---- bytes ---- */

struct sink {
	uint8_t *data;
	size_t   size, pieces, fail_at;
};

static struct sink sink;

static int
into_sink(void *arg, const void *data, size_t size)
{
	struct sink *s = arg;

	if (++s->pieces == s->fail_at)
		return -EPIPE;
	assert_true(size > 0 && size <= 64 << 10 && s->size + size <= ROOM);
	memcpy(s->data + s->size, data, size);
	s->size += size;
	return 0;
}

static const struct trace_format *const formats[] = { &gotrace_v1, &gotrace_v2, &perfetto_format };

#define FORMATS (sizeof(formats) / sizeof(formats[0]))

static int
encode(const struct trace_format *format)
{
	struct symbols *symbols;
	int             r;

	sink.size = sink.pieces = 0;
	assert_int_equal(trace_sort(&trace), 0);
	assert_int_equal(symbols_open(LIMIT, &symbols), 0);
	r = encode_trace(&trace, format, symbols, into_sink, &sink);
	symbols_close(symbols);
	return r;
}

static uint64_t
varint(size_t *at)
{
	uint64_t v = 0;

	for (unsigned shift = 0;; shift += 7) {
		assert_true(*at < sink.size && shift < 70);
		v |= (uint64_t)(sink.data[*at] & 127) << shift;
		if (!(sink.data[(*at)++] & 128))
			return v;
	}
}

struct v1_seen {
	unsigned count[64], frequency, longest_stack;
	uint64_t sequence[SERIALS], region; /* the name of the one that began last */
	bool     create_before_procs;
};

static struct v1_seen seen;

static void
v1_event(unsigned type, const uint64_t *args, size_t n)
{
	static const uint8_t wanted[64] = { [4] = 3, [5] = 2, [6] = 1, [13] = 4, [14] = 3, [15] = 1, [17] = 2, [18] = 2, [19] = 2,
		[20] = 2, [21] = 4, [25] = 2, [26] = 2, [27] = 2, [28] = 2, [29] = 4, [30] = 1, [33] = 2, [41] = 4, [45] = 5, [46] = 3, [47] = 5, [48] = 4,
		[49] = 5, [2] = 1 };

	assert_int_equal(n, wanted[type]);
	if (type == 13) {
		seen.create_before_procs |= !seen.count[4];
		assert_int_equal(seen.sequence[args[1]], 0);
		assert_true(args[2] > 0); /* a stack, or older viewers refuse it */
		seen.sequence[args[1]] = 1;
	}
	if (type == 14 || type == 21 || type == 29 || type == 41)
		assert_int_equal(args[2], seen.sequence[args[1]]++);
	if (type == 47 && !args[2])
		seen.region = args[3];
	else if (type == 47) /* of those that do not nest */
		assert_int_equal(args[3], seen.region);
	seen.frequency += type == 2 && args[0] == 1000000000;
}

/* One CPU: so that the file's order is the order of time but for tables and samples. */
static void
v1_read(void)
{
	size_t at = 16;

	memset(&seen, 0, sizeof(seen));
	assert_memory_equal(sink.data, "go 1.19 trace\0\0\0", 16);
	assert_int_equal(sink.data[at] & 63, 1); /* a batch first, or newer tools refuse it */
	while (at < sink.size) {
		unsigned type = sink.data[at] & 63, inline_count = sink.data[at] >> 6;
		uint64_t args[512], n = 0;
		size_t   end;

		at++;
		seen.count[type]++;
		if (type == 37) {
			assert_true(varint(&at) > 0);
			n = varint(&at);
			assert_in_range(n, 1, TRACE_TEXT_MAX);
			at += n;
			continue;
		}
		if (inline_count < 3) {
			for (; n <= inline_count; n++)
				args[n] = varint(&at);
		} else {
			n = varint(&at);
			assert_true(n <= 2048);
			for (end = at + n, n = 0; at < end; n++) {
				assert_true(n < 512);
				args[n] = varint(&at);
			}
			assert_true(at == end && n > 3);
		}
		if (type == 48)
			at += varint(&at);
		if (type == 3) {
			assert_int_equal(n, 2 + 4 * args[1]);
			if (args[1] > seen.longest_stack)
				seen.longest_stack = (unsigned)args[1];
		} else if (type != 1) {
			v1_event(type, args, n);
		}
	}
	assert_int_equal(at, sink.size);
}

static void
busy_trace(void)
{
	char message[3000];

	trace_make(TRACE_BY_SWITCHES, 1);
	trace_comment(&trace, "a comment");
	trace.lost = 3;
	thread(1, 0, TRACE_STATE_RUNNING, "main");
	thread(2, 0, TRACE_STATE_WAITING, "w\xff\n");
	memset(message, 'm', sizeof(message));
	memcpy(message + TRACE_TEXT_MAX - 1, "\xc3\xb6", 2);
	message[sizeof(message) - 1] = 0;
	for (unsigned i = 0; i < 2000; i += 8) {
		ADD(i, 1, TRACE_IN);
		ADD(i + 1, 1, TRACE_LOG, .name = trace_text(&trace, "", 9), .text = trace_text(&trace, message, 3000),
			.stack = stack_of(i, STACK_FRAMES_MAX));
		ADD(i + 2, 1, TRACE_SAMPLE, .stack = stack_of(1, 2));
		ADD(i + 3, 1, TRACE_OUT);
		ADD(i + 4, 2, TRACE_IN);
		ADD(i + 5, 2, TRACE_LABELS, .text = trace_text(&trace, i % 3 ? "x=1" : "", 9));
		ADD(i + 6, 2, TRACE_OUT);
	}
}

static void
the_older_format_keeps_to_counts_sequences_and_limits(void **state)
{
	(void)state;
	busy_trace();
	assert_int_equal(encode(&gotrace_v1), 0);
	v1_read();
	assert_int_equal(seen.frequency, 1);
	assert_int_equal(seen.count[2], 1);
	assert_int_equal(seen.count[4], 1);
	assert_false(seen.create_before_procs);
	assert_int_equal(seen.count[48], 250 + 2);
	assert_int_equal(seen.count[49], 250);
	assert_int_equal(seen.count[17], 166); /* labels change while the thread runs; equal ones are no change */
	assert_true(seen.longest_stack >= 90 && seen.longest_stack <= TRACE_FRAMES_MAX);
	trace_release(&trace);
}

static void
a_wait_for_a_file_is_a_system_call_that_ends_where_its_thread_starts(void **state)
{
	(void)state;
	trace_make(TRACE_BY_SWITCHES, 1);
	thread(1, 0, TRACE_STATE_RUNNING, "main");
	thread(2, 0, TRACE_STATE_RUNNING, "component-job");
	trace.threads[1].own = true;
	for (int32_t tid = 1; tid <= 2; tid++) { /* and what we do ourselves is none */
		ADD((uint64_t)tid * 100, tid, TRACE_IN);
		ADD((uint64_t)tid * 100 + 1, tid, TRACE_WAIT, .reason = TRACE_OTHER, .stack = stack_of(1, 2));
		ADD((uint64_t)tid * 100 + 2, tid, TRACE_OUT);
		ADD((uint64_t)tid * 100 + 3, tid, TRACE_IN); /* and again, in the same call */
		ADD((uint64_t)tid * 100 + 4, tid, TRACE_OUT);
	}
	ADD(300, 2, TRACE_IN);
	ADD(301, 2, TRACE_WAKE, .other = 1, .stack = stack_of(2, 2)); /* nobody can */
	ADD(302, 2, TRACE_OUT);
	ADD(303, 1, TRACE_IN);
	assert_int_equal(encode(&gotrace_v1), 0);
	v1_read();
	assert_int_equal(seen.count[28], 2);
	assert_int_equal(seen.count[30], 2);
	assert_int_equal(seen.count[29], 2);
	assert_int_equal(seen.count[20], 3); /* of ours */
	assert_int_equal(seen.count[21], 2);
	trace_release(&trace);
}

static void
the_newer_format_keeps_to_batches_and_limits(void **state)
{
	size_t   at = 16, end;
	unsigned frequency = 0, strings = 0, stacks = 0, samples = 0;

	(void)state;
	busy_trace();
	assert_int_equal(encode(&gotrace_v2), 0);
	assert_memory_equal(sink.data, "go 1.22 trace\0\0\0", 16);
	while (at < sink.size) {
		size_t   begins = at;
		uint64_t m, size;

		assert_int_equal(sink.data[at++], 1);
		assert_int_equal(varint(&at), 1);
		m = varint(&at);
		varint(&at);
		size = varint(&at);
		assert_in_range(size, 1, 65536);
		end = at + size;
		assert_true(end <= sink.size);
		if (m == UINT64_MAX) {
			uint8_t kind = sink.data[at++];

			if (kind == 8) {
				assert_int_equal(varint(&at), 1000000000);
				frequency += begins == 16; /* so that a file that was cut has it */
			}
			assert_true(kind == 8 || kind == 6 || kind == 4 || kind == 2);
			assert_true(kind == 8 || at < end); /* no empty table */
			while (kind != 8 && at < end) {
				assert_int_equal(sink.data[at++], kind + 1);
				if (kind == 4) {
					varint(&at);
					size = varint(&at);
					assert_in_range(size, 1, 1024);
					at += size;
					strings++;
				} else if (kind == 2) {
					varint(&at);
					size = varint(&at);
					assert_in_range(size, 1, 128);
					for (uint64_t i = 0; i < size * 4; i++)
						varint(&at);
					stacks++;
				} else {
					for (int i = 0; i < 5; i++)
						varint(&at);
					samples++;
				}
			}
			assert_int_equal(at, end);
		}
		at = end;
	}
	assert_true(frequency == 1 && strings > 5 && stacks >= 250);
	assert_int_equal(samples, 250);
	trace_release(&trace);
}

static size_t
sink_count(const char *text)
{
	size_t n = 0, size = strlen(text);

	for (const uint8_t *at = sink.data; (at = memmem(at, sink.size - (size_t)(at - sink.data), text, size)); at += size)
		n++;
	return n;
}

static void
perfetto_is_told_at_the_next_start_what_labels_became_off_the_cpu(void **state)
{
	uint32_t text;

	(void)state;
	trace_make(TRACE_BY_SWITCHES, 1);
	thread(1, 0, TRACE_STATE_RUNNING, "main");
	thread(2, 0, TRACE_STATE_WAITING, "worker");
	text = trace_text(&trace, "tenant=acme", 64);
	ADD(1, 2, TRACE_LABELS, .text = text);
	ADD(2, 2, TRACE_IN);
	ADD(3, 2, TRACE_OUT);
	ADD(4, 2, TRACE_LABELS); /* none */
	ADD(5, 2, TRACE_IN);
	ADD(6, 2, TRACE_OUT);
	ADD(7, 2, TRACE_IN); /* nothing new */
	assert_int_equal(encode(&perfetto_format), 0);
	assert_int_equal(sink_count("tenant=acme"), 1);
	assert_int_equal(sink_count("no labels"), 1);
	trace_release(&trace);
}

/* Each record's label, name and text would take a kilobyte, 80 MB in all. */
static void
what_comes_again_and_again_takes_memory_once(void **state)
{
	char     text[TRACE_TEXT_MAX];
	uint32_t texts[2];

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	for (size_t format = 0; formats[format] != &perfetto_format; format++) { /* which writes each of them */
		trace_make(TRACE_BY_SWITCHES, 1);
		thread(1, 0, TRACE_STATE_RUNNING, "main");
		thread(2, 0, TRACE_STATE_UNKNOWN, "worker");
		texts[0] = trace_text(&trace, text, sizeof(text));
		text[0] = '\xff'; /* is made clean */
		texts[1] = trace_text(&trace, text, sizeof(text));
		text[0] = 'x';
		ADD(0, 2, TRACE_IN);
		for (unsigned i = 0; i < 80000; i++) {
			ADD(i, 2, TRACE_LABELS, .text = texts[i % 2]);
			ADD(i, 2, TRACE_REGION_BEGIN, .name = texts[1]);
			ADD(i, 2, TRACE_REGION_END, .name = texts[1]);
		}
		assert_int_equal(encode(formats[format]), 0);
		assert_true(sink_count("worker ?xxx") == 1 && sink_count("worker xxx") == 1);
		trace_release(&trace);
	}
}

static void
texts_that_cannot_all_be_remembered_are_all_written(void **state)
{
	enum { TEXTS = 1000000, EACH = 8 };
	char    *all = malloc(TEXTS * EACH + 1);
	uint32_t text;

	(void)state;
	assert_non_null(all);
	for (unsigned i = 0; i < TEXTS; i++)
		snprintf(all + i * EACH, EACH + 1, "%0*u ", EACH - 1, i);
	for (size_t format = 0; formats[format] != &perfetto_format; format++) {
		trace_make(TRACE_BY_SWITCHES, 1);
		thread(1, 0, TRACE_STATE_RUNNING, "main");
		ADD(0, 1, TRACE_IN);
		text = trace_text(&trace, all, SIZE_MAX);
		for (unsigned i = 0; i < TEXTS; i++, text += EACH) {
			trace.texts[text + EACH - 1] = '\0';
			ADD(i, 1, TRACE_REGION_BEGIN, .name = text);
			ADD(i, 1, TRACE_REGION_END, .name = text);
		}
		assert_int_equal(encode(formats[format]), 0);
		if (formats[format] == &gotrace_v1) {
			v1_read();
			assert_in_range(seen.count[37], TEXTS, TEXTS + 10);
			assert_int_equal(seen.count[47], 2 * TEXTS);
		}
		trace_release(&trace);
	}
	free(all);
}

/* The C library's on some machines; below others it is the program's own. */
FUNCTION(thread_start)
FUNCTION(start_thread)
FUNCTION(works)

struct root {
	char     name[32][32]; /* of functions and files, by number */
	uint64_t number;
};

static int
root_text(void *arg, uint64_t number, const char *text, size_t size)
{
	struct root *r = arg;

	assert_in_range(number, 1, 31);
	snprintf(r->name[number], sizeof(r->name[0]), "%.*s", (int)size, text);
	return 0;
}

static int
root_stack(void *arg, uint64_t number, const struct trace_frame *frames, unsigned count)
{
	(void)number;
	((struct root *)arg)->number = frames[count - 1].function;
	return 0;
}

static const char *
root_of(const uintptr_t *pcs, unsigned count, struct root *root)
{
	static const struct trace_stacks_out out = { root_text, root_stack };
	struct trace_stacks                 *ts = calloc(1, sizeof(*ts));
	struct arena_budget                  budget = { 0, LIMIT };
	struct arena                         arena;
	struct story_event                   e = { .stack = stack_table_add(pcs, count) };
	struct symbols                      *symbols;
	uint64_t                             number;

	*root = (struct root){ .number = 0 };
	assert_non_null(ts);
	assert_int_equal(symbols_open(LIMIT, &symbols), 0);
	arena_init(&arena, &budget);
	trace_stacks_init(ts, &arena, symbols, &out, root);
	assert_int_equal(trace_stack_number(ts, &e, &number), 0);
	trace_stacks_release(ts);
	arena_release(&arena);
	assert_int_equal(budget.used, 0);
	symbols_close(symbols);
	stack_table_unref(e.stack);
	free(ts);
	return root->name[root->number];
}

static void
a_programs_own_thread_start_is_the_root_and_the_c_librarys_is_not(void **state)
{
	const uintptr_t own[] = { (uintptr_t)works + 4, (uintptr_t)thread_start + 4, (uintptr_t)start_thread + 4 };
	const uintptr_t libc[] = { own[0], own[2], own[1] };
	struct root     root;

	(void)state;
	assert_string_equal(root_of(own, 3, &root), "thread_start");
	assert_string_equal(root_of(libc, 3, &root), "works");
}

static void
an_empty_trace_is_a_file_in_every_format(void **state)
{
	(void)state;
	for (size_t format = 0; format < FORMATS; format++)
		for (int source = TRACE_BY_SWITCHES; source <= TRACE_BY_HOOKS; source++) {
			trace_make(source, source == TRACE_BY_SWITCHES);
			assert_int_equal(encode(formats[format]), 0);
			assert_true(sink.size > 40);
			if (formats[format] == &gotrace_v1) {
				v1_read();
				assert_int_equal(seen.count[13], 1);
			}
			trace_release(&trace);
		}
	trace_make(TRACE_BY_HOOKS, 0);
	trace_release(&trace);
}

static void
nothing_more_is_encoded_when_the_client_is_gone(void **state)
{
	(void)state;
	for (size_t format = 0; format < FORMATS; format++)
		for (size_t i = 1; i < 4; i++) {
			busy_trace();
			sink.fail_at = i;
			assert_int_equal(encode(formats[format]), -EPIPE);
			assert_int_equal(sink.pieces, i);
			sink.fail_at = 0;
			trace_release(&trace);
		}
}

static void
many_short_lived_threads_fit_in_the_memory(void **state)
{
	(void)state;
	for (size_t format = 0; format < FORMATS; format++)
		for (int source = TRACE_BY_SWITCHES; source <= TRACE_BY_HOOKS; source++) {
			trace_make(source, 1);
			thread(1, 0, TRACE_STATE_RUNNING, "main");
			for (int32_t i = 0; i < 20000; i++) {
				ADD((uint64_t)i * 4, 100 + i, TRACE_CREATE, .other = 1);
				ADD((uint64_t)i * 4 + 1, 100 + i, TRACE_IN);
				ADD((uint64_t)i * 4 + 2, 100 + i, TRACE_EXIT);
			}
			assert_int_equal(encode(formats[format]), 0);
			trace_release(&trace);
		}
}

static void *
encode_all(void *arg)
{
	for (size_t format = 0; format < FORMATS; format++) {
		busy_trace();
		*(int *)arg |= encode(formats[format]);
		trace_release(&trace);
	}
	return NULL;
}

static void
the_stack_of_a_thread_of_ours_is_enough(void **state)
{
	pthread_attr_t attr;
	pthread_t      t;
	int            r = 0;

	(void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	SKIP("a sanitizer's frames are larger");
#endif
	pthread_attr_init(&attr);
	assert_int_equal(pthread_attr_setstacksize(&attr, STACK), 0);
	assert_int_equal(pthread_create(&t, &attr, encode_all, &r), 0);
	pthread_join(t, NULL);
	pthread_attr_destroy(&attr);
	assert_int_equal(r, 0);
	assert_int_equal(stack_table_bytes(), 0);
}

static int
setup(void **state)
{
	(void)state;
	sink.data = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return sink.data == MAP_FAILED;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thread_that_waits_at_the_start_says_where_from_the_beginning),
		cmocka_unit_test(who_leaves_a_cpu_first_was_on_it_since_the_start),
		cmocka_unit_test(a_sample_tells_of_a_thread_that_never_leaves_its_cpu),
		cmocka_unit_test(a_thread_that_nothing_is_told_of_runs_all_the_time_where_nobody_else_does),
		cmocka_unit_test(labels_of_the_start_are_those_of_a_thread_that_never_leaves_its_cpu),
		cmocka_unit_test(a_wait_is_a_block_only_when_the_thread_leaves_its_cpu),
		cmocka_unit_test(a_wait_of_the_start_is_over_when_its_thread_runs),
		cmocka_unit_test(by_hooks_a_sample_ends_the_wait_of_the_start_and_none_that_was_told),
		cmocka_unit_test(a_wake_makes_runnable_whoever_waits_and_nobody_else),
		cmocka_unit_test(what_we_wait_for_ourselves_is_in_no_profile_of_blocking),
		cmocka_unit_test(what_was_not_recorded_is_made_up_where_there_is_no_doubt),
		cmocka_unit_test(a_kernel_id_that_is_used_again_is_another_thread),
		cmocka_unit_test(a_thread_may_be_faster_than_the_news_of_its_creation),
		cmocka_unit_test(regions_nest_and_tasks_begin_once_whatever_is_lost),
		cmocka_unit_test(by_hooks_a_thread_runs_when_it_does_not_wait),
		cmocka_unit_test(by_hooks_labels_of_the_start_are_no_deed),
		cmocka_unit_test(by_hooks_threads_of_ours_wait),
		cmocka_unit_test(heap_counts_whether_somebody_runs_or_not),
		cmocka_unit_test(a_sample_is_told_as_often_as_it_stands_for_up_to_a_hundred_times),
		cmocka_unit_test(no_records_can_break_the_rules),
		cmocka_unit_test(the_older_format_keeps_to_counts_sequences_and_limits),
		cmocka_unit_test(a_wait_for_a_file_is_a_system_call_that_ends_where_its_thread_starts),
		cmocka_unit_test(the_newer_format_keeps_to_batches_and_limits),
		cmocka_unit_test(perfetto_is_told_at_the_next_start_what_labels_became_off_the_cpu),
		cmocka_unit_test(what_comes_again_and_again_takes_memory_once),
		cmocka_unit_test(texts_that_cannot_all_be_remembered_are_all_written),
		cmocka_unit_test(a_programs_own_thread_start_is_the_root_and_the_c_librarys_is_not),
		cmocka_unit_test(an_empty_trace_is_a_file_in_every_format),
		cmocka_unit_test(nothing_more_is_encoded_when_the_client_is_gone),
		cmocka_unit_test(many_short_lived_threads_fit_in_the_memory),
		cmocka_unit_test(the_stack_of_a_thread_of_ours_is_enough),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
