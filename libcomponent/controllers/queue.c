/*
 * queue.c - the work queue: each key once, retries paced.
 *
 * Every key known here is one struct item, found by name in a tree (tsearch).
 * Three places can hold it at the same time:
 *
 *     add ------------------> ready list --get--> processing --done--> gone
 *     add_after --> waiting --^   ^                   |
 *                   (heap)        +---- added again --+
 *
 * What a stranger would get wrong: "dirty" and "processing" are two facts.  A
 * dirty key wants to run.  It is on the ready list only while it is dirty and
 * not processing; one that becomes dirty while it is processing is put on the
 * list by done(), so no key ever runs on two workers at once.  A waiting entry
 * is a third fact: a key may be waiting for its retry and run earlier because
 * of an event.
 *
 * There is no timer thread: the workers that wait for a key wait no longer than
 * until the earliest entry of the heap, and move what is due to the list.
 *
 * How long a retry waits is retry_delay.c's business.
 *
 * Why not a hash table: the tree is libc's, and 20 compares are nothing beside
 * a reconcile.  Why one lock: for the same reason.
 *
 * Tests: tests/controllers/test_queue.c.
 */
#include <config.h>

#include <component/controller.h>

#include "figures.h"
#include "retry_delay.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "due_heap.h"
#include "fork.h"
#include "our_lock.h"

struct item {
	struct due   due;      /* first: it is the item in the heap; monotonic */
	struct item *next;     /* on the ready list */
	unsigned     failures;
	bool         dirty;
	bool         processing;
	bool         retry;    /* the entry in the heap is a retry */
	bool         moot;     /* that retry waited already when the key was taken: forget() drops it */
	int64_t      since_ns; /* of being dirty, else of processing; monotonic */
	struct item *next_worked, **link_worked; /* on the list of those that are processed */
	char         key[];
};

struct component_queue {
	pthread_mutex_t mutex; /* a leaf: nothing is called while it is held */
	pthread_cond_t  ready; /* the list got longer, or the heap an earlier head */
	pthread_cond_t  idle;  /* nothing ready and nothing processing */
	struct retry_delay     retry_delay;
	void           *items;      /* tsearch tree of item->key */
	size_t          item_count;
	struct item    *head, *tail;
	size_t          length;
	struct due_heap waiting;
	size_t          processing;
	struct item    *worked;     /* those */
	bool            shut_down;
	struct queue_figures figures;
	struct component_queue *next_known, **link_known; /* see collect() */
};

/* All that have a name, for their figures. */
static pthread_mutex_t         known_lock = PTHREAD_MUTEX_INITIALIZER; /* before a queue's own */
static struct component_queue *known;

static void
fork_prepare(void)
{
	pthread_mutex_lock(&known_lock);
}

static void
fork_after(void)
{
	pthread_mutex_unlock(&known_lock);
}

FORK_SLOT(FORK_QUEUES, fork_prepare, fork_after, fork_after);

/* It is held for microseconds. */
static bool
lock_soon(pthread_mutex_t *mutex)
{
	int busy = 1;

	for (int i = 0; i < 100 && (busy = pthread_mutex_trylock(mutex)) != 0; i++)
		sched_yield();
	return busy == 0;
}

/* What is under way when somebody asks. */
static void
collect(struct component_metric_samples *to, void *arg)
{
	sigset_t mask;

	(void)to;
	(void)arg;
	our_lock_take(&known_lock, &mask);
	for (struct component_queue *q = known; q != NULL; q = q->next_known) {
		int64_t now = clock_ns(CLOCK_MONOTONIC), sum = 0, longest = 0;

		/* Its owner may be in a handler that forks, and wait for known_lock.  Then its figures stay as they were. */
		if (!lock_soon(&q->mutex))
			continue;
		for (const struct item *item = q->worked; item != NULL; item = item->next_worked) {
			sum += now - item->since_ns;
			longest = now - item->since_ns > longest ? now - item->since_ns : longest;
		}
		pthread_mutex_unlock(&q->mutex);
		component_gauge_set(q->figures.unfinished, sum);
		component_gauge_set(q->figures.longest, longest);
	}
	our_lock_release(&known_lock, &mask);
}

static void
known_add(struct component_queue *q)
{
	sigset_t mask;

	our_lock_take(&known_lock, &mask);
	q->next_known = known;
	q->link_known = &known;
	if (known != NULL)
		known->link_known = &q->next_known;
	known = q;
	our_lock_release(&known_lock, &mask);
}

static void
known_remove(struct component_queue *q)
{
	sigset_t mask;

	our_lock_take(&known_lock, &mask);
	if (q->link_known != NULL) {
		*q->link_known = q->next_known;
		if (q->next_known != NULL)
			q->next_known->link_known = q->link_known;
		component_gauge_set(q->figures.unfinished, 0);
		component_gauge_set(q->figures.longest, 0);
	}
	our_lock_release(&known_lock, &mask);
}

static int
key_compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

static struct item *
item_of(const void *node)
{
	char *key = *(char *const *)node;

	return (struct item *)(void *)(key - offsetof(struct item, key));
}

static struct item *
item_find(const struct component_queue *q, const char *key)
{
	void *node = tfind(key, &q->items, key_compare);

	return node == NULL ? NULL : item_of(node);
}

/* The key's item, made where there is none, with room in the heap: the retry of a key
 * that is there is never lost for want of memory. */
static int
item_get(struct component_queue *q, const char *key, struct item **ret)
{
	struct item *item = item_find(q, key);
	size_t size = strlen(key) + 1;

	if (item != NULL) {
		*ret = item;
		return 0;
	}
	if (size > COMPONENT_QUEUE_KEY_MAX)
		return -ENAMETOOLONG;
	if (q->item_count >= COMPONENT_QUEUE_KEYS_MAX)
		return -ENOBUFS;
	if (due_heap_reserve(&q->waiting, q->item_count + 1) != 0)
		return -ENOMEM;
	item = calloc(1, sizeof *item + size);
	if (item == NULL)
		return -ENOMEM;
	memcpy(item->key, key, size);
	if (tsearch(item->key, &q->items, key_compare) == NULL) {
		free(item);
		return -ENOMEM;
	}
	q->item_count++;
	*ret = item;
	return 0;
}

/* Forgets an item that says nothing any more. */
static void
item_settle(struct component_queue *q, struct item *item)
{
	if (item->dirty || item->processing || item->due.place != 0 || item->failures != 0)
		return;
	tdelete(item->key, &q->items, key_compare);
	q->item_count--;
	free(item);
}

static void
push(struct component_queue *q, struct item *item)
{
	item->next = NULL;
	if (q->tail != NULL)
		q->tail->next = item;
	else
		q->head = item;
	q->tail = item;
	q->length++;
	component_gauge_add(q->figures.depth, 1);
	pthread_cond_signal(&q->ready);
}

static void
make_dirty(struct component_queue *q, struct item *item)
{
	if (item->dirty)
		return;
	item->dirty = true;
	component_counter_add(q->figures.adds, 1);
	if (item->processing)
		return; /* done() starts its clock */
	item->since_ns = clock_ns(CLOCK_MONOTONIC);
	push(q, item);
}

static void
move_due(struct component_queue *q)
{
	struct due *first = due_heap_first(&q->waiting);
	int64_t     now = first != NULL ? clock_ns(CLOCK_MONOTONIC) : 0;

	for (; first != NULL && first->at_ns <= now; first = due_heap_first(&q->waiting)) {
		due_heap_remove(&q->waiting, first);
		make_dirty(q, (struct item *)first);
	}
}

int
component_queue_new(const struct component_queue_options *options, struct component_queue **ret)
{
	static const struct component_queue_options usual = COMPONENT_QUEUE_OPTIONS_INIT;
	struct component_queue *q;
	pthread_condattr_t attr;

	if (options == NULL)
		options = &usual;
	if (!retry_delay_is_valid(options))
		return -EINVAL;
	q = calloc(1, sizeof *q);
	if (q == NULL)
		return -ENOMEM;
	retry_delay_init(&q->retry_delay, options, clock_ns(CLOCK_MONOTONIC));
	/* None of these can fail with glibc. */
	pthread_mutex_init(&q->mutex, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&q->ready, &attr);
	pthread_cond_init(&q->idle, &attr);
	pthread_condattr_destroy(&attr);
	queue_figures_init(&q->figures, options->name, collect);
	if (options->name != NULL)
		known_add(q);
	*ret = q;
	return 0;
}

int
component_queue_set(struct component_queue *q, const struct component_queue_options *options)
{
	if (!retry_delay_is_valid(options))
		return -EINVAL;
	pthread_mutex_lock(&q->mutex);
	retry_delay_set(&q->retry_delay, options);
	pthread_mutex_unlock(&q->mutex);
	return 0;
}

int
component_queue_add(struct component_queue *q, const char *key)
{
	struct item *item;
	int r;

	pthread_mutex_lock(&q->mutex);
	r = q->shut_down ? -ESHUTDOWN : item_get(q, key, &item);
	if (r == 0)
		make_dirty(q, item);
	pthread_mutex_unlock(&q->mutex);
	return r;
}

static int64_t
due_after(int64_t now_ns, int64_t after_ns)
{
	return now_ns + (after_ns < RETRY_DELAY_MAX_NS ? after_ns : RETRY_DELAY_MAX_NS);
}

/* The earlier of two moments counts. */
static void
wait_until(struct component_queue *q, struct item *item, int64_t due_ns, bool retry)
{
	if (item->due.place != 0 && item->due.at_ns <= due_ns)
		return;
	due_heap_add(&q->waiting, &item->due, due_ns); /* item_get() has made room */
	item->retry = retry;
	pthread_cond_signal(&q->ready);
}

int
component_queue_add_after(struct component_queue *q, const char *key, int64_t after_ns)
{
	struct item *item;
	int r;

	pthread_mutex_lock(&q->mutex);
	r = q->shut_down ? -ESHUTDOWN : item_get(q, key, &item);
	if (r == 0 && after_ns <= 0) {
		make_dirty(q, item);
	} else if (r == 0) {
		wait_until(q, item, due_after(clock_ns(CLOCK_MONOTONIC), after_ns), false);
		item->retry = item->moot = false; /* not alone, if it was one: forget() must not drop it */
	}
	pthread_mutex_unlock(&q->mutex);
	return r;
}

int
component_queue_add_rate_limited(struct component_queue *q, const char *key)
{
	struct item *item;
	unsigned failures;
	int64_t now, delay_ns, due_ns;
	int r;

	pthread_mutex_lock(&q->mutex);
	r = q->shut_down ? -ESHUTDOWN : item_get(q, key, &item);
	if (r != 0)
		goto out;
	failures = item->failures;
	if (item->failures < UINT32_MAX)
		item->failures++;
	item->moot = false;
	now = clock_ns(CLOCK_MONOTONIC);
	due_ns = due_after(now, retry_delay_ns(&q->retry_delay, failures, now, 0));
	/* A retry that waits has its token, and what comes before one needs none: events that fail again
	 * meanwhile take none from other keys.  Since a reload it may be due earlier. */
	if (item->due.place != 0 && (item->retry || item->due.at_ns <= due_ns)) {
		wait_until(q, item, due_ns, true);
		goto out;
	}
	component_counter_add(q->figures.retries, 1);
	delay_ns = retry_delay_ns(&q->retry_delay, failures, now, 1);
	if (delay_ns > 0)
		wait_until(q, item, due_after(now, delay_ns), true);
	else
		make_dirty(q, item);

out:
	pthread_mutex_unlock(&q->mutex);
	return r;
}

void
component_queue_forget(struct component_queue *q, const char *key)
{
	struct item *item;

	pthread_mutex_lock(&q->mutex);
	item = item_find(q, key);
	if (item != NULL) {
		if (item->moot)
			due_heap_remove(&q->waiting, &item->due);
		item->failures = 0;
		item->retry = item->moot = false;
		item_settle(q, item);
	}
	pthread_mutex_unlock(&q->mutex);
}

/* Off the ready list, onto that of those that are processed. */
static void
take(struct component_queue *q, struct item *item)
{
	int64_t now = clock_ns(CLOCK_MONOTONIC);

	q->head = item->next;
	if (q->head == NULL)
		q->tail = NULL;
	q->length--;
	component_gauge_add(q->figures.depth, -1);
	component_histogram_observe(q->figures.waited, now - item->since_ns);
	item->dirty = false;
	item->moot = item->due.place != 0 && item->retry;
	item->processing = true;
	item->since_ns = now;
	item->next_worked = q->worked;
	item->link_worked = &q->worked;
	if (q->worked != NULL)
		q->worked->link_worked = &item->next_worked;
	q->worked = item;
	q->processing++;
}

static void
give_up(struct component_queue *q, struct item *item)
{
	int64_t now = clock_ns(CLOCK_MONOTONIC);

	component_histogram_observe(q->figures.worked, now - item->since_ns);
	*item->link_worked = item->next_worked;
	if (item->next_worked != NULL)
		item->next_worked->link_worked = item->link_worked;
	item->processing = false;
	item->since_ns = now;
	q->processing--;
}

/* Waits for a change, no longer than until the heap's head is due. */
static void
wait_for_key(struct component_queue *q)
{
	struct due *first = due_heap_first(&q->waiting);
	struct timespec ts;

	if (first == NULL) {
		pthread_cond_wait(&q->ready, &q->mutex);
		return;
	}
	ts = clock_timespec(first->at_ns);
	pthread_cond_timedwait(&q->ready, &q->mutex, &ts);
}

int
component_queue_get(struct component_queue *q, char **ret_key)
{
	struct item *item;
	char *key;
	int r = 0;

	pthread_mutex_lock(&q->mutex);
	for (;;) {
		move_due(q);
		if (q->head != NULL)
			break;
		if (q->shut_down) {
			r = -ESHUTDOWN;
			goto out;
		}
		wait_for_key(q);
	}
	item = q->head;
	key = strdup(item->key);
	if (key == NULL) {
		r = -ENOMEM;
		goto out;
	}
	take(q, item);
	*ret_key = key;
	/* The one that slept until the next is due may have been this one. */
	if (due_heap_first(&q->waiting) != NULL)
		pthread_cond_signal(&q->ready);

out:
	pthread_mutex_unlock(&q->mutex);
	return r;
}

void
component_queue_done(struct component_queue *q, const char *key)
{
	struct item *item;

	pthread_mutex_lock(&q->mutex);
	item = item_find(q, key);
	if (item != NULL && item->processing) {
		give_up(q, item);
		if (item->dirty)
			push(q, item);
		else
			item_settle(q, item);
		if (q->processing == 0 && q->head == NULL)
			pthread_cond_broadcast(&q->idle);
	}
	pthread_mutex_unlock(&q->mutex);
}

/* Callers see a const queue: taking its lock changes nothing they could see. */
size_t
component_queue_length(const struct component_queue *const_q)
{
	struct component_queue *q = (struct component_queue *)(uintptr_t)const_q;
	size_t length;

	pthread_mutex_lock(&q->mutex);
	move_due(q);
	length = q->length;
	pthread_mutex_unlock(&q->mutex);
	return length;
}

unsigned
component_queue_failures(const struct component_queue *const_q, const char *key)
{
	struct component_queue *q = (struct component_queue *)(uintptr_t)const_q;
	struct item *item;
	unsigned failures;

	pthread_mutex_lock(&q->mutex);
	item = item_find(q, key);
	failures = item == NULL ? 0 : item->failures;
	pthread_mutex_unlock(&q->mutex);
	return failures;
}

/* With the mutex held. */
static void
shut_down(struct component_queue *q)
{
	struct due *first;

	q->shut_down = true;
	while ((first = due_heap_first(&q->waiting)) != NULL) {
		due_heap_remove(&q->waiting, first);
		item_settle(q, (struct item *)first);
	}
	pthread_cond_broadcast(&q->ready);
}

void
component_queue_shut_down(struct component_queue *q)
{
	pthread_mutex_lock(&q->mutex);
	shut_down(q);
	pthread_mutex_unlock(&q->mutex);
}

void
component_queue_drain(struct component_queue *q)
{
	pthread_mutex_lock(&q->mutex);
	shut_down(q);
	while (q->head != NULL || q->processing != 0)
		pthread_cond_wait(&q->idle, &q->mutex);
	pthread_mutex_unlock(&q->mutex);
}

static void
item_free(void *key)
{
	free((char *)key - offsetof(struct item, key));
}

void
component_queue_free(struct component_queue *q)
{
	if (q == NULL)
		return;
	known_remove(q);
	component_gauge_add(q->figures.depth, -(int64_t)q->length);
	tdestroy(q->items, item_free);
	free(q->waiting.items);
	pthread_cond_destroy(&q->idle);
	pthread_cond_destroy(&q->ready);
	pthread_mutex_destroy(&q->mutex);
	free(q);
}
