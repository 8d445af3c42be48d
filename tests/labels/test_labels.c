/*
 * test_labels.c - labels of threads: scopes, inheritance, memory.
 */
#include <config.h>

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <threads.h>

#include "abi.h"
#include "fixture.h"
#include "labels/record.h"
#include "our_thread.h"
#include "stack_lock.h"

/* Thread sanitizer has no thread state for threads of thrd_create(). */
#if defined(__SANITIZE_THREAD__)
static const bool knows_no_c11 = true;
#else
static const bool knows_no_c11;
#endif

#define LIMIT ((size_t)32 << 20)

static void
a_label_stays_until_it_is_changed_or_cleared(void **state)
{
	(void)state;
	assert_string_equal(mine(), "");
	assert_int_equal(component_label_clear(NULL), 0);
	assert_int_equal(component_label_clear("tenant"), 0);
	assert_int_equal(component_label_set("tenant", "acme"), 0);
	assert_string_equal(mine(), "{\"tenant\":\"acme\"}");
	assert_int_equal(component_label_set("tenant", "zeta"), 0);
	assert_int_equal(component_label_set("job", "index"), 0);
	assert_string_equal(mine(), "{\"job\":\"index\", \"tenant\":\"zeta\"}");
	assert_int_equal(component_label_clear("nobody"), 0);
	assert_int_equal(component_label_clear("job"), 0);
	assert_string_equal(mine(), "{\"tenant\":\"zeta\"}");
	assert_int_equal(component_label_set("tenant", ""), 0);
	assert_string_equal(mine(), "");
	assert_int_equal(component_label_set("a", "1"), 0);
	assert_int_equal(component_label_set("b", "2"), 0);
	assert_int_equal(component_label_clear(NULL), 0);
	assert_string_equal(mine(), "");
}

static void
the_order_in_which_labels_are_set_is_forgotten(void **state)
{
	uint32_t one, other;

	(void)state;
	component_label_set("b", "2");
	component_label_set("a", "1");
	component_label_set("c", "3");
	one = labels_here();
	component_label_clear(NULL);
	component_label_set("c", "3");
	component_label_set("a", "9");
	component_label_set("b", "2");
	component_label_set("a", "1");
	other = labels_here();
	assert_int_equal(one, other);
	assert_string_equal(mine(), "{\"a\":\"1\", \"b\":\"2\", \"c\":\"3\"}");
	labels_unref(one);
	labels_unref(other);
}

static void
text_is_json_whatever_the_bytes(void **state)
{
	char     small[24];
	uint32_t set;

	(void)state;
	component_label_set("k", "a\"b\\c\nd\te\x01\x7f\xc3\xa4\xff\xed\xa0\x80z");
	assert_string_equal(mine(), "{\"k\":\"a\\\"b\\\\c\\nd\\te\\u0001\\u007f\xc3\xa4\\ufffd\\ufffd\\ufffd\\ufffdz\"}");
	component_label_clear(NULL);
	component_label_set("first", "whole");
	component_label_set("second", "is left out");
	set = labels_here();
	assert_int_equal(labels_text(set, small, sizeof(small)), 17);
	assert_string_equal(small, "{\"first\":\"whole\"}");
	labels_unref(set);
	component_label_clear(NULL);
}

static void
what_is_too_much_is_refused_and_changes_nothing(void **state)
{
	char           key[LABELS_KEY_MAX + 2], value[LABELS_VALUE_MAX + 2];
	struct profile p;

	(void)state;
	memset(key, 'k', sizeof(key) - 1);
	memset(value, 'v', sizeof(value) - 1);
	key[sizeof(key) - 1] = value[sizeof(value) - 1] = '\0';
	assert_int_equal(component_label_set("a", "1"), 0);
	assert_int_equal(component_label_set(NULL, "x"), -EINVAL);
	assert_int_equal(component_label_set("", "x"), -EINVAL);
	assert_int_equal(component_label_set(key, "x"), -EINVAL);
	assert_int_equal(component_label_set("k", value), -EINVAL);
	assert_string_equal(mine(), "{\"a\":\"1\"}");
	assert_int_equal(component_label_set(key + 1, value + 1), 0); /* as long as may be */
	key[1] = 'l';
	assert_int_equal(component_label_set(key + 1, value + 1), 0);
	key[1] = 'm';
	assert_int_equal(component_label_set(key + 1, value + 1), 0);
	key[1] = 'n';
	assert_int_equal(component_label_set(key + 1, value + 1), -E2BIG);
	component_label_clear(NULL);
	for (int i = 0; i < LABELS_MAX; i++) {
		snprintf(key, sizeof(key), "key %d", i);
		assert_int_equal(component_label_set(key, "x"), 0);
	}
	assert_int_equal(component_label_set("one more", "x"), -E2BIG);
	assert_int_equal(component_label_set("key 3", "another"), 0);
	component_label_clear(NULL);
	profile_init(&p, "test");
	labels_comment(&p);
	assert_non_null(strstr(p.comments, "labels: 6 were refused: a key has 1 to 64 bytes"));
	profile_release(&p);
}

static void
leave_early(int way)
{
	COMPONENT_LABEL_SCOPE("way", "in");
	if (way == 0)
		return;
	for (;;) {
		COMPONENT_LABEL_SCOPE("loop", "yes");
		COMPONENT_LABEL_SCOPE(NULL, NULL);
		component_label_set("way", "changed");
		assert_string_equal(mine(), "{\"job\":\"outside\", \"loop\":\"yes\", \"way\":\"changed\"}");
		if (way == 1)
			break;
		return;
	}
	assert_string_equal(mine(), "{\"job\":\"outside\", \"way\":\"in\"}");
}

static void
a_scope_brings_the_labels_of_before_back_however_it_is_left(void **state)
{
	struct component_label_scope around, lost;
	jmp_buf                      back;

	(void)state;
	component_label_set("job", "outside");
	for (int way = 0; way < 3; way++) {
		leave_early(way);
		assert_string_equal(mine(), "{\"job\":\"outside\"}");
	}
	around = component_label_scope_begin("around", "1");
	if (setjmp(back) == 0) {
		for (int i = 0; i < 5; i++) {
			lost = component_label_scope_begin("job", "inside");
			(void)lost;
		}
		longjmp(back, 1);
	}
	assert_string_equal(mine(), "{\"around\":\"1\", \"job\":\"inside\"}");
	component_label_scope_end(&around);
	assert_string_equal(mine(), "{\"job\":\"outside\"}");
	component_label_scope_end(&around);
	component_label_scope_end(NULL);
	assert_string_equal(mine(), "{\"job\":\"outside\"}");
	component_label_clear(NULL);
}

static void
deeper(int depth, int to)
{
	char depth_text[16];

	snprintf(depth_text, sizeof(depth_text), "%d", depth);
	COMPONENT_LABEL_SCOPE("depth", depth_text);
	if (depth < to)
		deeper(depth + 1, to);
	if (depth < COMPONENT_LABEL_SCOPES_MAX - 1) { /* what comes back before it is the last one kept */
		char expected[64];

		snprintf(expected, sizeof(expected), "{\"depth\":\"%d\"}", depth);
		assert_string_equal(mine(), expected);
	}
}

static void
scopes_deeper_than_are_kept_do_no_harm(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		deeper(0, COMPONENT_LABEL_SCOPES_MAX * 3);
		assert_string_equal(mine(), "");
	}
}

/* ---- threads ---- */

static int
say_mine_c11(void *arg)
{
	say_mine(arg);
	return 0;
}

static void *
say_and_exit(void *arg)
{
	COMPONENT_LABEL_SCOPE("deep", "x");
	say_mine(arg);
	pthread_exit(NULL);
}

static void
a_thread_begins_with_the_labels_of_who_made_it(void **state)
{
	char      said[256] = "";
	pthread_t t;
	thrd_t    c11;

	(void)state;
	component_label_set("tenant", "acme");
	assert_int_equal(pthread_create(&t, NULL, say_mine, said), 0);
	component_label_set("tenant", "later");
	pthread_join(t, NULL);
	assert_string_equal(said, "{\"tenant\":\"acme\"}");
	if (!knows_no_c11) {
		assert_int_equal(thrd_create(&c11, say_mine_c11, said), thrd_success);
		thrd_join(c11, NULL);
		assert_string_equal(said, "{\"tenant\":\"later\"}");
	}
	assert_int_equal(pthread_create(&t, NULL, say_and_exit, said), 0);
	pthread_join(t, NULL);
	assert_string_equal(said, "{\"deep\":\"x\", \"tenant\":\"later\"}");
	assert_string_equal(mine(), "{\"tenant\":\"later\"}");
	component_label_clear(NULL);
	assert_int_equal(pthread_create(&t, NULL, say_mine, said), 0);
	pthread_join(t, NULL);
	assert_string_equal(said, "");
}

static void *
try_to_label(void *arg)
{
	*(int *)arg = component_label_set("tenant", "mine");
	strcpy((char *)arg + sizeof(int), mine());
	return NULL;
}

static void
threads_of_the_library_have_none(void **state)
{
	struct {
		int  r;
		char said[60];
	} got = { 0 };
	pthread_t t;

	(void)state;
	component_label_set("tenant", "acme");
	assert_int_equal(our_thread_start("component-test", try_to_label, &got, &t), 0);
	pthread_join(t, NULL);
	assert_int_equal(got.r, -EPERM);
	assert_string_equal(got.said, "");
	component_label_clear(NULL);
}

static void *
label_uniquely(void *arg)
{
	char value[100];

	memset(value, 'x', sizeof(value));
	snprintf(value + 80, sizeof(value) - 80, "%d", *(int *)arg);
	for (int i = 0; i < 10; i++) {
		value[0] = (char)('a' + i);
		if (component_label_set("request", value) != 0)
			*(int *)arg = -1;
		component_label_scope_begin("left", value); /* open for ever */
	}
	return NULL;
}

/* As in a program without hooks: nobody says that they end. */
/* ---- the table is kept by others ---- */

static _Atomic bool table_kept;

/* For longer than malloc would wait for it. */
static void
keep_table(void *arg)
{
	(void)arg;
	atomic_store(&table_kept, true);
	rest_ns(3 * STACK_LOCK_WAIT_NS);
}

static void *
table_keeper(void *arg)
{
	assert_true(stack_table_exclusively(keep_table, arg));
	return arg;
}

static void
who_sets_a_label_waits_for_a_busy_table(void **state)
{
	pthread_t t;

	(void)state;
	atomic_store(&table_kept, false);
	assert_int_equal(pthread_create(&t, NULL, table_keeper, NULL), 0);
	while (!atomic_load(&table_kept))
		sched_yield();
	assert_int_equal(component_label_set("late", "but there"), 0);
	assert_string_equal(mine(), "{\"late\":\"but there\"}");
	assert_int_equal(pthread_join(t, NULL), 0);
	component_label_clear(NULL);
}

static void
set_from_within(void *ret)
{
	*(int *)ret = component_label_set("never", "set");
}

static void
a_table_that_cannot_be_had_is_not_called_full(void **state)
{
	struct profile p;
	int            r = 0;

	(void)state;
	assert_true(stack_table_exclusively(set_from_within, &r));
	assert_int_equal(r, -EAGAIN);
	assert_string_equal(mine(), "");
	profile_init(&p, "test");
	labels_comment(&p);
	assert_non_null(strstr(p.comments, " were not set: a signal handler came"));
	profile_release(&p);
}

static void
threads_that_vanish_leave_nothing_for_long(void **state)
{
	int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	pthread_t t;
	size_t    most = 0, bytes;
	int       i, number;

	(void)state;
	component_hooks.resolve();
	memcpy(&next, &component_hooks.next[HOOKS_pthread_create], sizeof(next));
	for (i = 0; i < 1000; i++) {
		number = i;
		assert_int_equal(next(&t, NULL, label_uniquely, &number), 0);
		pthread_join(t, NULL);
		assert_int_equal(number, i);
		bytes = stack_table_labels_bytes();
		most = bytes > most ? bytes : most;
	}
	/* A thread leaves some 20 sets of 150 to 300 bytes; 1000 of them would be 4 MB. */
	assert_true(most > 64 * 1000);
	assert_true(most < 800 * 1000);
	stack_table_set_limit(1 << 20); /* a quarter for labels: dead threads alone would fill it */
	for (; i < 2000; i++) {
		number = i;
		assert_int_equal(next(&t, NULL, label_uniquely, &number), 0);
		pthread_join(t, NULL);
	}
	stack_table_set_limit(LIMIT);
}

static void *
go_on(void *arg)
{
	struct component_labels *task = arg;

	COMPONENT_LABEL_SCOPE("thread", "other");
	{
		COMPONENT_LABEL_SCOPE(NULL, NULL);
		assert_int_equal(component_labels_use(task), 0);
		assert_string_equal(mine(), "{\"request\":\"7\", \"tenant\":\"acme\"}");
		component_label_set("request", "8");
	}
	assert_string_equal(mine(), "{\"thread\":\"other\"}");
	component_labels_release(task);
	component_labels_release(task);
	assert_int_equal(component_labels_use(task), 0);
	assert_string_equal(mine(), "");
	return NULL;
}

static void
work_takes_its_labels_along_to_another_thread(void **state)
{
	struct component_labels task = { 0 };
	pthread_t               t;

	(void)state;
	assert_int_equal(component_labels_use(&task), 0);
	assert_int_equal(component_labels_use(NULL), 0);
	component_label_set("tenant", "acme");
	{
		COMPONENT_LABEL_SCOPE("request", "7");
		task = component_labels_keep();
	}
	component_label_clear(NULL);
	nothing_is_left(NULL); /* but what the task holds */
	assert_int_not_equal(stack_table_labels_bytes(), 0);
	assert_int_equal(pthread_create(&t, NULL, go_on, &task), 0);
	pthread_join(t, NULL);
	assert_int_equal(task.set, 0);
}

static void
labels_of_another_thread_can_be_read(void **state)
{
	struct other o = { 0 };
	pthread_t    t;
	char         text[100];
	uint32_t     set;
	int          tid;

	(void)state;
	assert_int_equal(pthread_create(&t, NULL, label_and_wait, &o), 0);
	WAIT_FOR((tid = atomic_load(&o.tid)) != 0);
	labels_record_sweep(); /* it has not ended */
	set = labels_of(tid);
	atomic_store(&o.go, 1);
	WAIT_FOR(atomic_load(&o.tid) <= 0);
	assert_int_equal(labels_of(tid), 0);
	labels_text(set, text, sizeof(text)); /* alive still, by our reference */
	assert_string_equal(text, "{\"tenant\":\"first\"}");
	labels_unref(set);
	atomic_store(&o.go, 2);
	pthread_join(t, NULL);
	assert_int_equal(labels_of(tid), 0);
}

static void
a_forked_child_keeps_its_labels_under_its_new_id(void **state)
{
	struct other o = { 0 };
	pthread_t    t;
	pid_t        pid;
	uint32_t     set;
	int          status, bad;

	(void)state;
	component_label_set("tenant", "acme");
	struct component_label_scope scope = component_label_scope_begin("request", "7");

	assert_int_equal(pthread_create(&t, NULL, label_and_wait, &o), 0);
	WAIT_FOR(atomic_load(&o.tid) != 0);
	pid = fork();
	if (pid == 0) {
		set = labels_of(getpid());
		bad = set == 0 || strcmp(mine(), "{\"request\":\"7\", \"tenant\":\"acme\"}") != 0;
		labels_unref(set);
		component_label_scope_end(&scope);
		bad |= strcmp(mine(), "{\"tenant\":\"acme\"}") != 0 ? 2 : 0;
		bad |= component_label_set("new", "x") != 0 ? 4 : 0;
		_exit(bad);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	component_label_scope_end(&scope);
	component_label_clear(NULL);
	atomic_store(&o.go, 2);
	pthread_join(t, NULL);
}

/* A handler may have forked, and the child goes back into the change that it has interrupted. */
static void
a_child_forked_in_the_middle_of_a_change_goes_on_with_its_record(void **state)
{
	struct labels_record *r;
	pid_t                 pid;
	int                   status, bad;

	(void)state;
	component_label_set("tenant", "acme");
	r = per_thread.labels;
	r->busy = 1;
	pid = fork();
	if (pid == 0) {
		bad = per_thread.labels != r || atomic_load(&r->tid) != getpid();
		r->busy = 0;
		bad |= component_label_set("new", "x") != 0 ? 2 : 0;
		bad |= strcmp(mine(), "{\"new\":\"x\", \"tenant\":\"acme\"}") != 0 ? 4 : 0;
		bad |= nothing_is_left(NULL) ? 8 : 0;
		_exit(bad);
	}
	r->busy = 0;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	component_label_clear(NULL);
}

/* ---- memory ---- */

static void
labels_without_memory_stay_as_they_were_and_stacks_have_theirs(void **state)
{
	static uint32_t     held[20000];
	struct labels_draft d;
	char                value[32];
	uintptr_t           pc = 0x1000;
	uint32_t            stack;
	size_t              n = 0;
	struct profile      p;

	(void)state;
	component_label_set("tenant", "acme");
	stack_table_set_limit(1 << 20);
	for (; n < sizeof(held) / sizeof(held[0]); n++) {
		snprintf(value, sizeof(value), "number %zu", n);
		assert_int_equal(labels_draft(0, "request", value, &d), 0);
		held[n] = labels_intern(&d);
		if (!held[n])
			break;
	}
	assert_true(n > 1000 && n < 10000);
	assert_true(stack_table_labels_bytes() <= (1 << 20) / LABELS_PART);
	assert_int_equal(component_label_set("one", "more"), -ENOMEM);
	assert_string_equal(mine(), "{\"tenant\":\"acme\"}");
	stack = stack_table_add(&pc, 1);
	assert_true(stack >= STACK_PSEUDO_MAX);
	stack_table_unref(stack);
	while (n > 0)
		labels_unref(held[--n]);
	assert_int_equal(component_label_set("one", "more"), 0);
	assert_string_equal(mine(), "{\"one\":\"more\", \"tenant\":\"acme\"}");
	stack_table_set_limit(LIMIT);
	component_label_clear(NULL);
	profile_init(&p, "test");
	labels_comment(&p);
	assert_non_null(strstr(p.comments, "could not be set: they take a 4th of --profiling-memory"));
	profile_release(&p);
}

/* ---- more threads than can be made here ---- */

#define MADE_UP_FIRST 5000000 /* no thread of Linux has such a number */

static int      made_up; /* what the calling thread's is said to be; 0: its own */
static int      made_up_dead; /* those from MADE_UP_FIRST up to, and without, this */
static unsigned made_up_asked;

int
pthread_getcpuclockid(pthread_t thread, clockid_t *ret)
{
	(void)thread;
	*ret = thread_clock_id(made_up ? made_up : gettid());
	return 0;
}

int
clock_gettime(clockid_t clock, struct timespec *ret)
{
	if (clock > thread_clock_id(MADE_UP_FIRST))
		return (int)syscall(SYS_clock_gettime, clock, ret);
	made_up_asked++;
	*ret = (struct timespec){ 0 };
	if (~(clock >> 3) >= made_up_dead)
		return 0;
	errno = EINVAL;
	return -1;
}

/* One more thread has a record, or finds no place for it. */
static bool
another_has_one(void)
{
	made_up++;
	per_thread.labels = NULL;
	return labels_record_make() != NULL;
}

static int
made_up_begin(void **state)
{
	(void)state;
	labels_thread_ending();
	labels_record_sweep();
	made_up = made_up_dead = MADE_UP_FIRST;
	return 0;
}

static int
made_up_end(void **state)
{
	made_up_dead = INT_MAX;
	labels_record_sweep();
	made_up = 0;
	per_thread.labels = NULL;
	return nothing_is_left(state);
}

/* The first are dead by the first look: what doubles from there on never is the number of all places. */
static void
where_thousands_of_threads_have_ended_others_find_a_place(void **state)
{
	(void)state;
	made_up_dead += 15;
	for (int i = 0; i < 28000; i++)
		assert_true(another_has_one());
	made_up_dead = INT_MAX;
	for (int i = 0; i < LABELS_RECORDS; i++)
		assert_true(another_has_one());
}

static void
where_all_places_are_taken_few_look_for_the_dead_and_find_them(void **state)
{
	int refused = 0;

	(void)state;
	for (int i = 0; i < LABELS_RECORDS; i++)
		another_has_one();
	made_up_asked = 0;
	for (int i = 0; i < 1000; i++)
		assert_false(another_has_one());
	assert_true(made_up_asked <= LABELS_RECORDS); /* once */
	made_up_dead = INT_MAX;
	while (refused < 1024 && !another_has_one())
		refused++;
	assert_in_range(refused, 0, 1023);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, nothing_is_left)
	const struct CMUnitTest tests[] = {
		TEST(a_label_stays_until_it_is_changed_or_cleared),
		TEST(the_order_in_which_labels_are_set_is_forgotten),
		TEST(text_is_json_whatever_the_bytes),
		TEST(what_is_too_much_is_refused_and_changes_nothing),
		TEST(a_scope_brings_the_labels_of_before_back_however_it_is_left),
		TEST(scopes_deeper_than_are_kept_do_no_harm),
		TEST(a_thread_begins_with_the_labels_of_who_made_it),
		TEST(threads_of_the_library_have_none),
		TEST(work_takes_its_labels_along_to_another_thread),
		TEST(labels_of_another_thread_can_be_read),
		TEST(a_forked_child_keeps_its_labels_under_its_new_id),
		TEST(a_child_forked_in_the_middle_of_a_change_goes_on_with_its_record),
		TEST(labels_without_memory_stay_as_they_were_and_stacks_have_theirs),
		cmocka_unit_test(who_sets_a_label_waits_for_a_busy_table),
		cmocka_unit_test(a_table_that_cannot_be_had_is_not_called_full),
		cmocka_unit_test(threads_that_vanish_leave_nothing_for_long),
		cmocka_unit_test_setup_teardown(where_thousands_of_threads_have_ended_others_find_a_place, made_up_begin, made_up_end),
		cmocka_unit_test_setup_teardown(where_all_places_are_taken_few_look_for_the_dead_and_find_them, made_up_begin, made_up_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
