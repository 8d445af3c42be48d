/*
 * test_queue.c - the contract of the work queue, row by row, and under threads.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <component/controller.h>

#include "waiting.h"

#define MS INT64_C(1000000)
#define DEADLINE_NS (30000 * MS)

static bool no_memory;

void *__real_realloc(void *p, size_t size);
void *__wrap_realloc(void *p, size_t size);

void *
__wrap_realloc(void *p, size_t size)
{
	return no_memory ? NULL : __real_realloc(p, size);
}

static atomic_int signals;

int __real_pthread_cond_signal(pthread_cond_t *cond);
int __wrap_pthread_cond_signal(pthread_cond_t *cond);

int
__wrap_pthread_cond_signal(pthread_cond_t *cond)
{
	signals++;
	return __real_pthread_cond_signal(cond);
}

static struct component_queue *
queue_with(int64_t base_ns, int64_t max_ns, double qps, int64_t burst)
{
	struct component_queue_options o = COMPONENT_QUEUE_OPTIONS_INIT;
	struct component_queue *q = NULL;

	o.base_delay_ns = base_ns;
	o.max_delay_ns = max_ns;
	o.qps = qps;
	o.burst = burst;
	assert_int_equal(component_queue_new(&o, &q), 0);
	return q;
}

static struct component_queue *
queue(void)
{
	struct component_queue *q = NULL;

	assert_int_equal(component_queue_new(NULL, &q), 0);
	return q;
}

/* Takes a key, which must be WANT, and leaves it in processing. */
static void
take(struct component_queue *q, const char *want)
{
	char *key = NULL;

	assert_int_equal(component_queue_get(q, &key), 0);
	assert_string_equal(key, want);
	free(key);
}

static void
a_key_added_twice_while_queued_is_processed_once(void **state)
{
	struct component_queue *q = queue();

	(void)state;
	assert_int_equal(component_queue_add(q, "a"), 0);
	assert_int_equal(component_queue_add(q, "b"), 0);
	assert_int_equal(component_queue_add(q, "a"), 0);
	assert_int_equal(component_queue_length(q), 2);
	take(q, "a");
	take(q, "b");
	assert_int_equal(component_queue_length(q), 0);
	component_queue_done(q, "a");
	component_queue_done(q, "b");
	assert_int_equal(component_queue_length(q), 0);
	component_queue_free(q);
}

static void
a_key_added_while_processed_runs_again_only_after_done(void **state)
{
	struct component_queue *q = queue();

	(void)state;
	component_queue_add(q, "a");
	take(q, "a");
	component_queue_add(q, "a");
	component_queue_add(q, "a");
	assert_int_equal(component_queue_length(q), 0);
	component_queue_done(q, "a");
	assert_int_equal(component_queue_length(q), 1);
	take(q, "a");
	component_queue_done(q, "a");
	assert_int_equal(component_queue_length(q), 0);
	component_queue_free(q);
}

static void
done_of_a_key_nobody_took_changes_nothing(void **state)
{
	struct component_queue *q = queue();

	(void)state;
	component_queue_done(q, "a");
	component_queue_add(q, "a");
	component_queue_done(q, "a");
	assert_int_equal(component_queue_length(q), 1);
	component_queue_free(q);
}

/* Adds KEY rate limited, waits until it is due, and says how long that took. */
static int64_t
limited(struct component_queue *q, const char *key)
{
	int64_t start = now_ns();

	assert_int_equal(component_queue_add_rate_limited(q, key), 0);
	take(q, key);
	component_queue_done(q, key);
	return now_ns() - start;
}

/* So many failures at once: it is due after the delay of the first, which is the
 * shortest, and the next one's would be base << n. */
static void
fail_often(struct component_queue *q, const char *key, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(component_queue_add_rate_limited(q, key), 0);
	assert_int_equal(component_queue_failures(q, key), n);
}

static void
a_keys_delay_doubles_from_the_base_with_each_failure(void **state)
{
	struct component_queue *q = queue_with(20 * MS, 1000000 * MS, 1e6, 1000);

	(void)state;
	for (int64_t want = 20 * MS, n = 0; n < 5; want *= 2, n++) {
		int64_t took = limited(q, "a");

		assert_in_range(took, want, want + DEADLINE_NS);
		assert_int_equal(component_queue_failures(q, "a"), n + 1);
	}
	/* The next would be a minute and more; another key starts at the base. */
	fail_often(q, "c", 12);
	take(q, "c");
	component_queue_done(q, "c");
	assert_in_range(limited(q, "b"), 20 * MS, DEADLINE_NS);
	component_queue_free(q);
}

static void
a_keys_delay_never_exceeds_the_cap(void **state)
{
	struct component_queue *q = queue_with(10 * MS, 40 * MS, 1e6, 1000);

	(void)state;
	for (int n = 0; n < 70; n++) /* beyond the 62 doublings int64_t has room for */
		assert_in_range(limited(q, "a"), (n < 2 ? 10 : 40) * MS, DEADLINE_NS);
	assert_int_equal(component_queue_failures(q, "a"), 70);
	component_queue_free(q);
}

static void
the_usual_delay_starts_at_five_ms(void **state)
{
	struct component_queue *q = queue();

	(void)state;
	assert_in_range(limited(q, "a"), 5 * MS, DEADLINE_NS);
	assert_in_range(limited(q, "a"), 10 * MS, DEADLINE_NS);
	component_queue_free(q);
}

static void
forget_takes_a_key_back_to_the_base(void **state)
{
	struct component_queue *q = queue_with(10 * MS, 1000000 * MS, 1e6, 1000);

	(void)state;
	fail_often(q, "a", 13);
	take(q, "a");
	component_queue_done(q, "a");
	component_queue_forget(q, "a");
	assert_int_equal(component_queue_failures(q, "a"), 0);
	assert_in_range(limited(q, "a"), 10 * MS, DEADLINE_NS); /* not 82 s */
	component_queue_forget(q, "never heard of");
	component_queue_free(q);
}

static void
all_keys_share_the_token_bucket(void **state)
{
	struct component_queue *q = queue_with(1 * MS, 1 * MS, 20, 3);
	int64_t start = now_ns();
	char key[16];

	(void)state;
	for (int n = 0; n < 9; n++) {
		snprintf(key, sizeof key, "%d", n);
		assert_int_equal(component_queue_add_rate_limited(q, key), 0);
	}
	for (int n = 0; n < 9; n++) {
		char *got;

		assert_int_equal(component_queue_get(q, &got), 0);
		free(got);
	}
	/* 3 at once, then 6 at 20 a second. */
	assert_in_range(now_ns() - start, 295 * MS, DEADLINE_NS);
	component_queue_free(q);

	/* The burst is not held back: at one in an hour nothing else would come. */
	q = queue_with(1 * MS, 1 * MS, 1 / 3600.0, 3);
	start = now_ns();
	for (int n = 0; n < 3; n++) {
		snprintf(key, sizeof key, "%d", n);
		limited(q, key);
	}
	assert_in_range(now_ns() - start, 1 * MS, DEADLINE_NS);
	component_queue_free(q);
}

static void
a_key_that_fails_again_while_its_retry_waits_takes_no_token_from_others(void **state)
{
	struct component_queue *q = queue_with(1 * MS, 1 * MS, 1 / 3600.0, 2);

	(void)state;
	fail_often(q, "hot", 50);
	for (int n = 0; n < 50; n++) {
		assert_int_equal(component_queue_add_after(q, "hot", 1 * MS), 0);
		assert_int_equal(component_queue_add_rate_limited(q, "hot"), 0);
	}
	assert_int_equal(component_queue_add_rate_limited(q, "other"), 0);
	WAIT_FOR_S(component_queue_length(q) == 2, 30);
	assert_int_equal(component_queue_length(q), 2);
	component_queue_free(q);
}

/* The retry of failures that are forgotten is an hour away, and would be another hour. */
static void
a_key_that_fails_after_a_success_is_tried_again_as_soon_as_any(void **state)
{
	struct component_queue *q = queue_with(3600 * 1000 * MS, 3600 * 1000 * MS, 1e6, 1000);
	struct component_queue_options fast = { .size = sizeof fast, .base_delay_ns = 1 * MS, .max_delay_ns = 1 * MS,
		.qps = 1e6, .burst = 1000 };

	(void)state;
	fail_often(q, "a", 2);
	assert_int_equal(component_queue_set(q, &fast), 0);
	component_queue_forget(q, "a");
	assert_int_equal(component_queue_add_rate_limited(q, "a"), 0);
	WAIT_FOR_S(component_queue_length(q) == 1, 30);
	assert_int_equal(component_queue_length(q), 1);
	component_queue_free(q);
}

static void
a_retry_that_waits_is_dropped_when_the_key_needs_none_any_more(void **state)
{
	struct component_queue *q = queue_with(50 * MS, 50 * MS, 1e6, 1000);

	(void)state;
	component_queue_add_rate_limited(q, "a");
	component_queue_add(q, "a");
	take(q, "a");
	component_queue_forget(q, "a");
	component_queue_done(q, "a");
	component_queue_add_after(q, "later", 100 * MS);
	take(q, "later");
	component_queue_done(q, "later");

	/* But not one that was asked for since, for whatever reason. */
	component_queue_add_rate_limited(q, "b");
	component_queue_add_rate_limited(q, "c");
	component_queue_add(q, "b");
	component_queue_add(q, "c");
	take(q, "b");
	take(q, "c");
	component_queue_add_rate_limited(q, "b");
	component_queue_add_after(q, "c", 50 * MS);
	component_queue_forget(q, "b");
	component_queue_forget(q, "c");
	component_queue_done(q, "b");
	component_queue_done(q, "c");
	WAIT_FOR_S(component_queue_length(q) == 2, 30);
	assert_int_equal(component_queue_length(q), 2);
	component_queue_free(q);
}

/* Its retry and something else share an entry; then it runs for a third reason and succeeds. */
static void
assert_comes_later(int64_t retry_ns, int64_t after_ns, bool fails_first)
{
	struct component_queue *q = queue_with(retry_ns, retry_ns, 1e6, 1000);

	if (fails_first)
		component_queue_add_rate_limited(q, "a");
	component_queue_add_after(q, "a", after_ns);
	if (!fails_first)
		component_queue_add_rate_limited(q, "a");
	component_queue_add(q, "a");
	take(q, "a");
	component_queue_forget(q, "a");
	component_queue_done(q, "a");
	WAIT_FOR_S(component_queue_length(q) == 1, 30);
	assert_int_equal(component_queue_length(q), 1);
	component_queue_free(q);
}

static void
what_was_added_beside_a_retry_is_not_dropped_with_it(void **state)
{
	(void)state;
	assert_comes_later(3600 * 1000 * MS, 500 * MS, true);
	assert_comes_later(3600 * 1000 * MS, 500 * MS, false);
	assert_comes_later(500 * MS, 1000 * MS, true);
}

static void
a_key_whose_retry_waits_follows_a_shorter_delay_when_it_fails_again(void **state)
{
	struct component_queue *q = queue_with(3600 * 1000 * MS, 3600 * 1000 * MS, 1e6, 1000);
	struct component_queue_options fast = { sizeof fast, 1 * MS, 1 * MS, 1e6, 1000 };

	(void)state;
	component_queue_add_rate_limited(q, "a");
	assert_int_equal(component_queue_set(q, &fast), 0);
	component_queue_add(q, "a");
	take(q, "a");
	component_queue_add_rate_limited(q, "a");
	component_queue_done(q, "a");
	WAIT_FOR_S(component_queue_length(q) == 1, 30);
	assert_int_equal(component_queue_length(q), 1);
	component_queue_free(q);
}

static void
the_larger_of_back_off_and_bucket_counts(void **state)
{
	struct component_queue *q = queue_with(300 * MS, 300 * MS, 10, 1);
	int64_t start;

	(void)state;
	/* A token is there at once, the back-off is not. */
	assert_in_range(limited(q, "a"), 300 * MS, DEADLINE_NS);
	component_queue_free(q);

	q = queue_with(1 * MS, 1 * MS, 5, 1);
	start = now_ns();
	limited(q, "a");
	limited(q, "b");
	assert_in_range(now_ns() - start, 199 * MS, DEADLINE_NS);
	component_queue_free(q);
}

static void
add_after_waits_and_the_earlier_of_two_counts(void **state)
{
	struct component_queue *q = queue();
	int64_t start = now_ns();

	(void)state;
	component_queue_add_after(q, "late", 300 * MS);
	component_queue_add_after(q, "early", 60 * MS);
	component_queue_add_after(q, "moved", 3600 * 1000 * MS);
	component_queue_add_after(q, "moved", 150 * MS);
	component_queue_add_after(q, "moved", 3600 * 1000 * MS);
	assert_int_equal(component_queue_length(q), 0);
	take(q, "early");
	assert_in_range(now_ns() - start, 60 * MS, DEADLINE_NS);
	take(q, "moved");
	assert_in_range(now_ns() - start, 150 * MS, DEADLINE_NS);
	take(q, "late");
	assert_in_range(now_ns() - start, 300 * MS, DEADLINE_NS);
	component_queue_add_after(q, "now", 0);
	component_queue_add_after(q, "before", -5);
	take(q, "now");
	take(q, "before");
	component_queue_free(q);
}

static void
delays_beyond_all_bounds_do_not_overflow(void **state)
{
	struct component_queue *q = queue_with(INT64_MAX / 2, INT64_MAX, 1e-9, 1);

	(void)state;
	assert_int_equal(component_queue_add_after(q, "a", INT64_MAX), 0);
	for (int n = 0; n < 5; n++)
		assert_int_equal(component_queue_add_rate_limited(q, "b"), 0);
	assert_int_equal(component_queue_length(q), 0);
	component_queue_free(q);
}

static void
a_waiting_key_may_run_earlier_for_another_reason(void **state)
{
	struct component_queue *q = queue();

	(void)state;
	component_queue_add_after(q, "a", 100 * MS);
	component_queue_add(q, "a");
	take(q, "a");
	component_queue_done(q, "a");
	take(q, "a"); /* the retry */
	component_queue_done(q, "a");
	component_queue_free(q);
}

static void
the_retries_of_keys_that_are_processed_need_no_memory(void **state)
{
	enum { KEYS = 100 };
	struct component_queue *q = queue_with(1 * MS, 1 * MS, 1e6, 1000);
	char name[16];
	int r = 0;

	(void)state;
	for (int n = 0; n < KEYS; n++) {
		snprintf(name, sizeof name, "%d", n);
		assert_int_equal(component_queue_add(q, name), 0);
		take(q, name);
	}
	no_memory = true;
	for (int n = 0; n < KEYS; n++) {
		snprintf(name, sizeof name, "%d", n);
		r |= n % 2 == 0 ? component_queue_add_rate_limited(q, name) : component_queue_add_after(q, name, 1 * MS);
		component_queue_done(q, name);
	}
	no_memory = false;
	assert_int_equal(r, 0);
	WAIT_FOR_S(component_queue_length(q) == KEYS, 30);
	assert_int_equal(component_queue_length(q), KEYS);
	component_queue_free(q);
}

/* A delay counts from the moment of its call, which is known to lie between two looks
 * at the clock: so a key may come before another only if it can be due earlier. */
static void
many_delays_come_out_in_order(void **state)
{
	enum { KEYS = 500 };
	struct component_queue *q = queue();
	int64_t earliest[KEYS], latest[KEYS], due_at_least = 0;
	bool seen[KEYS] = { false };
	char name[16], *key;

	(void)state;
	for (int n = 0; n < KEYS; n++) {
		int k = (n * 337) % KEYS; /* each of 0 to 499 once, mixed */
		int64_t after = 400 * MS + k * MS / 4;

		snprintf(name, sizeof name, "%d", k);
		earliest[k] = now_ns() + after;
		assert_int_equal(component_queue_add_after(q, name, after), 0);
		latest[k] = now_ns() + after;
	}
	for (int n = 0; n < KEYS; n++) {
		int k;

		assert_int_equal(component_queue_get(q, &key), 0);
		k = atoi(key);
		free(key);
		assert_in_range(k, 0, KEYS - 1);
		assert_false(seen[k]);
		seen[k] = true;
		assert_true(now_ns() >= earliest[k]);
		/* Nothing that has come before was certainly due after it. */
		assert_true(latest[k] >= due_at_least);
		if (earliest[k] > due_at_least)
			due_at_least = earliest[k];
	}
	component_queue_free(q);
}

static void
shut_down_refuses_new_keys_and_drains_the_queued(void **state)
{
	struct component_queue *q = queue();
	char *key;

	(void)state;
	component_queue_add(q, "running");
	take(q, "running");
	component_queue_add(q, "running"); /* again after done */
	component_queue_add(q, "a");
	component_queue_add_after(q, "delayed", 1 * MS * 3600 * 1000);
	component_queue_shut_down(q);
	assert_int_equal(component_queue_add(q, "b"), -ESHUTDOWN);
	assert_int_equal(component_queue_add_after(q, "b", 1), -ESHUTDOWN);
	assert_int_equal(component_queue_add_rate_limited(q, "b"), -ESHUTDOWN);
	take(q, "a");
	component_queue_done(q, "a");
	component_queue_done(q, "running");
	take(q, "running");
	component_queue_done(q, "running");
	assert_int_equal(component_queue_get(q, &key), -ESHUTDOWN);
	component_queue_shut_down(q);
	component_queue_free(q);
}

struct drainer {
	struct component_queue *queue;
	atomic_bool             drained;
};

static void *
drain(void *arg)
{
	struct drainer *d = arg;

	component_queue_drain(d->queue);
	d->drained = true;
	return NULL;
}

static void
drain_waits_for_what_is_in_progress(void **state)
{
	struct drainer d = { .queue = queue() };
	pthread_t thread;

	(void)state;
	component_queue_add(d.queue, "a");
	component_queue_add(d.queue, "b");
	take(d.queue, "a");
	assert_int_equal(pthread_create(&thread, NULL, drain, &d), 0);
	while (component_queue_add(d.queue, "c") != -ESHUTDOWN)
		component_queue_forget(d.queue, "c"), sched_yield();
	assert_false(d.drained);
	for (;;) { /* b, and c if it slipped in */
		char *key;

		if (component_queue_length(d.queue) == 0)
			break;
		assert_int_equal(component_queue_get(d.queue, &key), 0);
		component_queue_done(d.queue, key);
		free(key);
	}
	assert_false(d.drained);
	component_queue_done(d.queue, "a");
	pthread_join(thread, NULL);
	assert_true(d.drained);
	component_queue_free(d.queue);
}

static void *
get_one(void *arg)
{
	char *key = NULL;
	intptr_t r = component_queue_get(arg, &key);

	free(key);
	return (void *)r;
}

static void
shut_down_wakes_every_waiting_worker(void **state)
{
	struct component_queue *q = queue();
	pthread_t threads[8];
	void *r;

	(void)state;
	for (int n = 0; n < 8; n++)
		pthread_create(&threads[n], NULL, get_one, q);
	component_queue_shut_down(q);
	for (int n = 0; n < 8; n++) {
		pthread_join(threads[n], &r);
		assert_int_equal((intptr_t)r, -ESHUTDOWN);
	}
	component_queue_free(q);
}

static void
an_earlier_delay_wakes_a_worker_that_waits_for_a_later_one(void **state)
{
	struct component_queue *q = queue();
	pthread_t thread;
	void *r;

	(void)state;
	component_queue_add_after(q, "later", 3600 * 1000 * MS);
	pthread_create(&thread, NULL, get_one, q);
	component_queue_add_after(q, "soon", 20 * MS);
	pthread_join(thread, &r);
	assert_int_equal((intptr_t)r, 0);
	component_queue_free(q);
}

/* Which waiter a signal wakes is not to be known, so this counts signals: another one may
 * sleep until what was due next when it began to wait. */
static void
a_worker_that_takes_a_key_lets_another_one_wait_for_the_retries(void **state)
{
	struct component_queue *q = queue();
	int before;

	(void)state;
	component_queue_add(q, "a");
	component_queue_add(q, "b");
	before = signals;
	take(q, "a");
	assert_int_equal(signals, before); /* there is nothing to wait for */
	component_queue_add_after(q, "later", 3600 * 1000 * MS);
	before = signals;
	take(q, "b");
	assert_int_equal(signals, before + 1);
	component_queue_free(q);
}

#define KEYS 64
#define ADDERS 4
#define WORKERS 6
#define ADDS 20000

struct load {
	struct component_queue *queue;
	atomic_int              inside[KEYS];   /* workers in the key right now */
	atomic_uint             version[KEYS];  /* set before each add */
	atomic_uint             seen[KEYS];     /* read by the worker */
	atomic_int              overlaps;
	atomic_uint             random;
};

static void *
work(void *arg)
{
	struct load *l = arg;
	char *key;

	while (component_queue_get(l->queue, &key) == 0) {
		int k = atoi(key);

		if (atomic_fetch_add(&l->inside[k], 1) != 0)
			l->overlaps++;
		l->seen[k] = l->version[k];
		if (atomic_fetch_add(&l->random, 1) % 7 == 0)
			component_queue_add_rate_limited(l->queue, key);
		else
			component_queue_forget(l->queue, key);
		if (atomic_fetch_add(&l->random, 1) % 5 == 0)
			sched_yield();
		atomic_fetch_sub(&l->inside[k], 1);
		component_queue_done(l->queue, key);
		free(key);
	}
	return NULL;
}

static void *
feed(void *arg)
{
	struct load *l = arg;
	char key[16];

	for (int n = 0; n < ADDS; n++) {
		unsigned k = atomic_fetch_add(&l->random, 1) * 2654435761u % KEYS;

		snprintf(key, sizeof key, "%u", k);
		atomic_fetch_add(&l->version[k], 1);
		if (component_queue_add(l->queue, key) != 0)
			abort();
	}
	return NULL;
}

static void
with_many_threads_no_key_is_lost_or_runs_twice_at_once(void **state)
{
	static struct load l;
	pthread_t adders[ADDERS], workers[WORKERS];

	(void)state;
	l.queue = queue_with(0, 1 * MS, 1e8, 1000);
	for (int n = 0; n < WORKERS; n++)
		assert_int_equal(pthread_create(&workers[n], NULL, work, &l), 0);
	for (int n = 0; n < ADDERS; n++)
		assert_int_equal(pthread_create(&adders[n], NULL, feed, &l), 0);
	for (int n = 0; n < ADDERS; n++)
		pthread_join(adders[n], NULL);
	component_queue_drain(l.queue);
	for (int n = 0; n < WORKERS; n++)
		pthread_join(workers[n], NULL);
	assert_int_equal(l.overlaps, 0);
	for (int k = 0; k < KEYS; k++)
		assert_int_equal(l.seen[k], l.version[k]);
	component_queue_free(l.queue);
}

static void
options_that_make_no_sense_are_rejected(void **state)
{
	static const struct component_queue_options bad[] = {
		{ sizeof *bad, 5, 10, 0, 1 },
		{ sizeof *bad, 5, 10, -1, 1 },
		{ sizeof *bad, 5, 10, NAN, 1 },
		{ sizeof *bad, 5, 10, INFINITY, 1 },
		{ sizeof *bad, 5, 10, 1, 0 },
		{ sizeof *bad, 5, 10, 1, -1 },
		{ sizeof *bad, 11, 10, 1, 1 },
		{ sizeof *bad, -1, 10, 1, 1 },
		{ 8, 5, 10, 1, 1 },
	};
	struct component_queue *q = queue(), *untouched = NULL;

	(void)state;
	for (size_t n = 0; n < sizeof bad / sizeof *bad; n++) {
		assert_int_equal(component_queue_new(&bad[n], &untouched), -EINVAL);
		assert_int_equal(component_queue_set(q, &bad[n]), -EINVAL);
		assert_null(untouched);
	}
	component_queue_free(q);
}

static void
pacing_can_be_changed_while_it_runs(void **state)
{
	struct component_queue *q = queue_with(3600 * 1000 * MS, 3600 * 1000 * MS, 1, 1);
	struct component_queue_options fast = { sizeof fast, 1 * MS, 1 * MS, 1000, 10 };

	(void)state;
	assert_int_equal(component_queue_set(q, &fast), 0);
	assert_in_range(limited(q, "a"), 1 * MS, DEADLINE_NS);
	component_queue_free(q);
}

static void
keys_longer_than_a_path_are_refused(void **state)
{
	struct component_queue *q = queue();
	char key[COMPONENT_QUEUE_KEY_MAX + 1];

	(void)state;
	memset(key, 'x', sizeof key);
	key[COMPONENT_QUEUE_KEY_MAX] = '\0';
	assert_int_equal(component_queue_add(q, key), -ENAMETOOLONG);
	key[COMPONENT_QUEUE_KEY_MAX - 1] = '\0';
	assert_int_equal(component_queue_add(q, key), 0);
	take(q, key);
	component_queue_free(q);
}

static void
free_takes_a_queue_in_any_state_and_null(void **state)
{
	struct component_queue *q = queue();

	(void)state;
	component_queue_add(q, "queued");
	component_queue_add(q, "taken");
	take(q, "queued");
	component_queue_add_after(q, "waiting", 1000 * MS);
	component_queue_add_rate_limited(q, "failed");
	component_queue_free(q);
	component_queue_free(NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_key_added_twice_while_queued_is_processed_once),
		cmocka_unit_test(a_key_added_while_processed_runs_again_only_after_done),
		cmocka_unit_test(done_of_a_key_nobody_took_changes_nothing),
		cmocka_unit_test(a_keys_delay_doubles_from_the_base_with_each_failure),
		cmocka_unit_test(a_keys_delay_never_exceeds_the_cap),
		cmocka_unit_test(the_usual_delay_starts_at_five_ms),
		cmocka_unit_test(forget_takes_a_key_back_to_the_base),
		cmocka_unit_test(all_keys_share_the_token_bucket),
		cmocka_unit_test(a_key_that_fails_again_while_its_retry_waits_takes_no_token_from_others),
		cmocka_unit_test(a_key_that_fails_after_a_success_is_tried_again_as_soon_as_any),
		cmocka_unit_test(a_retry_that_waits_is_dropped_when_the_key_needs_none_any_more),
		cmocka_unit_test(what_was_added_beside_a_retry_is_not_dropped_with_it),
		cmocka_unit_test(a_key_whose_retry_waits_follows_a_shorter_delay_when_it_fails_again),
		cmocka_unit_test(the_larger_of_back_off_and_bucket_counts),
		cmocka_unit_test(add_after_waits_and_the_earlier_of_two_counts),
		cmocka_unit_test(delays_beyond_all_bounds_do_not_overflow),
		cmocka_unit_test(a_waiting_key_may_run_earlier_for_another_reason),
		cmocka_unit_test(the_retries_of_keys_that_are_processed_need_no_memory),
		cmocka_unit_test(many_delays_come_out_in_order),
		cmocka_unit_test(shut_down_refuses_new_keys_and_drains_the_queued),
		cmocka_unit_test(drain_waits_for_what_is_in_progress),
		cmocka_unit_test(shut_down_wakes_every_waiting_worker),
		cmocka_unit_test(an_earlier_delay_wakes_a_worker_that_waits_for_a_later_one),
		cmocka_unit_test(a_worker_that_takes_a_key_lets_another_one_wait_for_the_retries),
		cmocka_unit_test(with_many_threads_no_key_is_lost_or_runs_twice_at_once),
		cmocka_unit_test(options_that_make_no_sense_are_rejected),
		cmocka_unit_test(pacing_can_be_changed_while_it_runs),
		cmocka_unit_test(keys_longer_than_a_path_are_refused),
		cmocka_unit_test(free_takes_a_queue_in_any_state_and_null),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
