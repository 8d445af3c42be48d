/*
 * test_loop.c - one descriptor carries watches, timers and posts, and callbacks
 * may remove whatever they like.
 */
#include <config.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "clock.h"
#include "life.h"

#define MS 1000000LL
#define DEADLINE_MS 60000 /* a busy machine must not fail a test */

static struct component *owner; /* of the loop that a test drives */

static struct loop *
loop_made(void)
{
	owner = calloc(1, sizeof(*owner));
	assert_non_null(owner);
	owner->pid = getpid();
	assert_int_equal(loop_init(&owner->loop, owner), 0);
	return &owner->loop;
}

static void
loop_gone(struct loop *l)
{
	loop_close(l);
	free(owner);
}

static bool
is_ready(struct loop *l, int ms)
{
	struct pollfd p = { l->epoll_fd, POLLIN, 0 };

	return poll(&p, 1, ms) == 1;
}

/* Drives the loop as a daemon's own poll() would, until *count reaches want. */
static void
drive(struct loop *l, const int *count, int want)
{
	int64_t end = clock_ns(CLOCK_MONOTONIC) + DEADLINE_MS * MS;

	while (*count < want && clock_ns(CLOCK_MONOTONIC) < end)
		if (is_ready(l, 1000))
			assert_int_equal(loop_dispatch(l), 0);
	assert_true(*count >= want);
}

static void
count_up(struct component *c, void *arg)
{
	assert_ptr_equal(c, owner);
	++*(int *)arg;
}

static void
an_idle_loop_is_not_ready_and_dispatch_returns_at_once(void **state)
{
	struct loop *l = loop_made();

	(void)state;
	assert_false(is_ready(l, 0));
	assert_int_equal(loop_dispatch(l), 0);
	loop_gone(l);
}

/* ---- watches ---- */

static void
on_readable(struct component *c, int fd, uint32_t events, void *arg)
{
	uint64_t value;

	assert_ptr_equal(c, owner);
	assert_true(events & EPOLLIN);
	assert_int_equal(read(fd, &value, sizeof(value)), sizeof(value));
	++*(int *)arg;
}

static void
a_watch_is_called_when_its_descriptor_is_ready(void **state)
{
	struct loop            *l = loop_made();
	struct component_watch *w = NULL;
	int                     fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), called = 0;

	(void)state;
	assert_int_equal(component_watch_add(owner, fd, EPOLLIN, on_readable, &called, &w), 0);
	assert_false(is_ready(l, 0));
	assert_int_equal(eventfd_write(fd, 1), 0);
	drive(l, &called, 1);
	component_watch_remove(w);
	assert_int_equal(eventfd_write(fd, 1), 0);
	assert_false(is_ready(l, 0));
	assert_int_equal(called, 1);
	close(fd);
	loop_gone(l);
}

static void
a_watch_is_refused_where_epoll_refuses_it(void **state)
{
	struct loop *l = loop_made();
	char         path[] = "/tmp/test_loop.XXXXXX";
	int          file = mkstemp(path), fd = eventfd(0, EFD_CLOEXEC);

	(void)state;
	unlink(path);
	assert_int_equal(component_watch_add(owner, -1, EPOLLIN, on_readable, NULL, NULL), -EINVAL);
	assert_int_equal(component_watch_add(owner, 9999, EPOLLIN, on_readable, NULL, NULL), -EBADF);
	assert_int_equal(component_watch_add(owner, file, EPOLLIN, on_readable, NULL, NULL), -EPERM);
	assert_int_equal(component_watch_add(owner, fd, EPOLLIN, NULL, NULL, NULL), -EINVAL);
	assert_int_equal(component_watch_add(owner, fd, EPOLLIN, on_readable, NULL, NULL), 0);
	assert_int_equal(component_watch_add(owner, fd, EPOLLIN, on_readable, NULL, NULL), -EEXIST);
	close(file);
	loop_gone(l);
	close(fd);
}

#define MANY 20

static struct {
	struct component_watch *watch[MANY];
	int                     called;
} many;

static void
remove_all(struct component *c, int fd, uint32_t events, void *arg)
{
	(void)c;
	(void)fd;
	(void)events;
	(void)arg;
	many.called++;
	for (int i = 0; i < MANY; i++) {
		component_watch_remove(many.watch[i]);
		many.watch[i] = NULL;
	}
}

static void
a_callback_may_remove_all_watches_its_own_and_ready_ones(void **state)
{
	struct loop *l = loop_made();
	int          fds[MANY];

	(void)state;
	memset(&many, 0, sizeof(many));
	for (int i = 0; i < MANY; i++) {
		fds[i] = eventfd(1, EFD_CLOEXEC);
		assert_int_equal(component_watch_add(owner, fds[i], EPOLLIN, remove_all, NULL, &many.watch[i]), 0);
	}
	drive(l, &many.called, 1);
	assert_int_equal(loop_dispatch(l), 0);
	assert_int_equal(many.called, 1);
	for (int i = 0; i < MANY; i++)
		close(fds[i]);
	loop_gone(l);
}

static struct {
	struct loop            *loop;
	struct component_watch *other;
	int                     other_fd, new_called, first_called;
} reuse;

static void
on_new(struct component *c, int fd, uint32_t events, void *arg)
{
	(void)c;
	(void)fd;
	(void)events;
	(void)arg;
	reuse.new_called++;
}

/* Removes the other, whose event is queued, and puts a new one in its slot. */
static void
replace_other(struct component *c, int fd, uint32_t events, void *arg)
{
	(void)c;
	(void)fd;
	(void)events;
	(void)arg;
	if (reuse.first_called++)
		return;
	component_watch_remove(reuse.other);
	assert_int_equal(
		component_watch_add(owner, reuse.other_fd, EPOLLOUT, on_new, NULL, &reuse.other), 0);
}

static void
a_queued_event_never_reaches_a_new_watch_in_an_old_place(void **state)
{
	struct loop *l = loop_made();
	int          fd = eventfd(1, EFD_CLOEXEC), other = eventfd(1, EFD_CLOEXEC);

	(void)state;
	memset(&reuse, 0, sizeof(reuse));
	reuse.loop = l;
	reuse.other_fd = other;
	assert_int_equal(component_watch_add(owner, fd, EPOLLIN, replace_other, NULL, NULL), 0);
	assert_int_equal(component_watch_add(owner, other, EPOLLIN, on_new, NULL, &reuse.other), 0);
	assert_int_equal(loop_dispatch(l), 0);
	assert_int_equal(reuse.first_called, 1);
	assert_int_equal(reuse.new_called, 0);
	assert_int_equal(loop_dispatch(l), 0);
	assert_int_equal(reuse.new_called, 1);
	loop_gone(l);
	close(fd);
	close(other);
}

/* ---- timers ---- */

static int order[8], order_count;

static void
note(struct component *c, void *arg)
{
	(void)c;
	order[order_count++] = (int)(intptr_t)arg;
}

static void
timers_fire_in_the_order_of_their_times(void **state)
{
	struct loop *l = loop_made();
	int64_t      begin, took;

	(void)state;
	/* Times count from each call: where the processor was away between two of them, that is
	 * another order, and the next round counts. */
	do {
		order_count = 0;
		begin = clock_ns(CLOCK_MONOTONIC);
		assert_int_equal(component_timer_add(owner, 30 * MS, 0, note, (void *)3, NULL), 0);
		assert_int_equal(component_timer_add(owner, 10 * MS, 0, note, (void *)1, NULL), 0);
		assert_int_equal(component_timer_add(owner, 20 * MS, 0, note, (void *)2, NULL), 0);
		took = clock_ns(CLOCK_MONOTONIC) - begin;
		drive(l, &order_count, 3);
	} while (took >= 10 * MS);
	assert_int_equal(order[0], 1);
	assert_int_equal(order[1], 2);
	assert_int_equal(order[2], 3);
	assert_false(is_ready(l, 0));
	loop_gone(l);
}

static void
a_timer_does_not_fire_early(void **state)
{
	struct loop *l = loop_made();
	int64_t      begin = clock_ns(CLOCK_MONOTONIC);
	int          called = 0;

	(void)state;
	assert_int_equal(component_timer_add(owner, 50 * MS, 0, count_up, &called, NULL), 0);
	drive(l, &called, 1);
	assert_true(clock_ns(CLOCK_MONOTONIC) - begin >= 50 * MS);
	loop_gone(l);
}

static void
a_period_keeps_its_rhythm_and_missed_ones_are_one_call(void **state)
{
	struct loop            *l = loop_made();
	struct component_timer *t = NULL;
	int64_t                 begin = clock_ns(CLOCK_MONOTONIC);
	int                     called = 0;

	(void)state;
	assert_int_equal(component_timer_add(owner, 5 * MS, 5 * MS, count_up, &called, &t), 0);
	while (clock_ns(CLOCK_MONOTONIC) - begin < 23 * MS)
		; /* the loop is busy with something else */
	assert_int_equal(loop_dispatch(l), 0);
	assert_int_equal(called, 1);
	drive(l, &called, 4);
	assert_true(clock_ns(CLOCK_MONOTONIC) - begin >= 35 * MS);
	component_timer_remove(t);
	assert_false(is_ready(l, 20));
	loop_gone(l);
}

static struct {
	struct component_timer *a, *b;
	int                     called;
} pair;

static void
remove_both(struct component *c, void *arg)
{
	(void)c;
	(void)arg;
	pair.called++;
	component_timer_remove(pair.a);
	component_timer_remove(pair.b);
	pair.a = pair.b = NULL;
}

static void
a_timer_may_remove_itself_and_one_that_is_due(void **state)
{
	struct loop *l = loop_made();

	(void)state;
	for (int64_t every = 0; every <= MS; every += MS) {
		memset(&pair, 0, sizeof(pair));
		assert_int_equal(component_timer_add(owner, 0, every, remove_both, NULL, &pair.a), 0);
		assert_int_equal(component_timer_add(owner, 0, every, remove_both, NULL, &pair.b), 0);
		drive(l, &pair.called, 1);
		assert_int_equal(loop_dispatch(l), 0);
		assert_int_equal(pair.called, 1);
	}
	loop_gone(l);
}

static void
a_fired_timer_with_a_handle_can_still_be_removed(void **state)
{
	struct loop            *l = loop_made();
	struct component_timer *t = NULL;
	int                     called = 0;

	(void)state;
	assert_int_equal(component_timer_add(owner, 0, 0, count_up, &called, &t), 0);
	drive(l, &called, 1);
	component_timer_remove(t);
	component_timer_remove(NULL);
	loop_gone(l);
}

static struct loop *adding;

static void
add_another(struct component *c, void *arg)
{
	(void)c;
	++*(int *)arg;
	assert_int_equal(component_timer_add(owner, 0, 0, add_another, arg, NULL), 0);
	assert_int_equal(component_post(owner, count_up, arg), 0);
}

static void
what_a_callback_adds_is_for_the_next_dispatch(void **state)
{
	int called = 0;

	(void)state;
	adding = loop_made();
	assert_int_equal(component_timer_add(owner, 0, 0, add_another, &called, NULL), 0);
	assert_int_equal(loop_dispatch(adding), 0);
	assert_int_equal(called, 1);
	assert_true(is_ready(adding, 1000));
	loop_gone(adding);
}

static void
a_thousand_timers_in_any_order_fire_in_order(void **state)
{
	struct loop *l = loop_made();
	struct component_timer *keep[1000];
	int          called = 0;

	(void)state;
	for (int i = 0; i < 1000; i++)
		assert_int_equal(component_timer_add(owner, (i * 7919 % 1000) * 10000LL, 0, count_up, &called, &keep[i]), 0);
	for (int i = 0; i < 1000; i += 2)
		component_timer_remove(keep[i]);
	drive(l, &called, 500);
	assert_int_equal(called, 500);
	loop_gone(l);
}

static void
negative_times_are_refused_and_endless_ones_do_not_overflow(void **state)
{
	struct loop *l = loop_made();
	int          called = 0;

	(void)state;
	assert_int_equal(component_timer_add(owner, -1, 0, count_up, &called, NULL), -EINVAL);
	assert_int_equal(component_timer_add(owner, 0, -1, count_up, &called, NULL), -EINVAL);
	assert_int_equal(component_timer_add(owner, INT64_MAX, 0, count_up, &called, NULL), 0);
	assert_int_equal(component_timer_add(owner, 0, INT64_MAX, count_up, &called, NULL), 0);
	drive(l, &called, 1);
	assert_false(is_ready(l, 10));
	loop_gone(l);
}

/* ---- posts ---- */

#define THREADS 4
#define POSTS 1000

struct poster {
	struct loop *loop;
	int          last, called, in_order;
};

struct ticket {
	struct poster *poster;
	int            number;
};

static void
on_ticket(struct component *c, void *arg)
{
	struct ticket *t = arg;

	(void)c;
	t->poster->called++;
	t->poster->in_order += t->number == t->poster->last++;
	free(t);
}

static void *
post_many(void *arg)
{
	struct poster *p = arg;

	for (int i = 0; i < POSTS; i++) {
		struct ticket *t = malloc(sizeof(*t));

		*t = (struct ticket) { p, i };
		if (component_post(owner, on_ticket, t) < 0)
			abort();
	}
	return NULL;
}

static void
posts_of_many_threads_all_arrive_each_in_its_order(void **state)
{
	struct loop  *l = loop_made();
	struct poster posters[THREADS];
	pthread_t     threads[THREADS];

	(void)state;
	for (int i = 0; i < THREADS; i++) {
		posters[i] = (struct poster) { l, 0, 0, 0 };
		assert_int_equal(pthread_create(&threads[i], NULL, post_many, &posters[i]), 0);
	}
	for (int i = 0; i < THREADS; i++)
		drive(l, &posters[i].called, POSTS);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(posters[i].called, POSTS);
		assert_int_equal(posters[i].in_order, POSTS);
	}
	assert_int_equal(loop_dispatch(l), 0);
	assert_false(is_ready(l, 0));
	loop_gone(l);
}

static void
dispatch_inside(struct component *c, void *arg)
{
	(void)c;
	*(int *)arg = loop_dispatch(adding);
}

static void
a_dispatch_inside_a_callback_is_refused(void **state)
{
	int result = 1;

	(void)state;
	adding = loop_made();
	assert_int_equal(component_post(owner, dispatch_inside, &result), 0);
	assert_int_equal(loop_dispatch(adding), 0);
	assert_int_equal(result, -EBUSY);
	loop_gone(adding);
}

static void
closing_frees_what_was_never_run(void **state)
{
	struct loop *l = loop_made();
	int          called = 0;

	(void)state;
	assert_int_equal(component_post(owner, count_up, &called), 0);
	assert_int_equal(component_timer_add(owner, 0, 0, count_up, &called, NULL), 0);
	loop_gone(l);
	assert_int_equal(called, 0);
}

static void
our_descriptors_are_above_the_standard_ones_and_close_on_exec(void **state)
{
	struct loop *l;
	int          saved = dup(0);

	(void)state;
	close(0);
	l = loop_made();
	assert_true(l->epoll_fd > 2 && l->wake_fd > 2 && l->timer_fd > 2);
	loop_gone(l);
	assert_int_equal(dup2(saved, 0), 0);
	close(saved);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_idle_loop_is_not_ready_and_dispatch_returns_at_once),
		cmocka_unit_test(a_watch_is_called_when_its_descriptor_is_ready),
		cmocka_unit_test(a_watch_is_refused_where_epoll_refuses_it),
		cmocka_unit_test(a_callback_may_remove_all_watches_its_own_and_ready_ones),
		cmocka_unit_test(a_queued_event_never_reaches_a_new_watch_in_an_old_place),
		cmocka_unit_test(timers_fire_in_the_order_of_their_times),
		cmocka_unit_test(a_timer_does_not_fire_early),
		cmocka_unit_test(a_period_keeps_its_rhythm_and_missed_ones_are_one_call),
		cmocka_unit_test(a_timer_may_remove_itself_and_one_that_is_due),
		cmocka_unit_test(a_fired_timer_with_a_handle_can_still_be_removed),
		cmocka_unit_test(what_a_callback_adds_is_for_the_next_dispatch),
		cmocka_unit_test(a_thousand_timers_in_any_order_fire_in_order),
		cmocka_unit_test(negative_times_are_refused_and_endless_ones_do_not_overflow),
		cmocka_unit_test(posts_of_many_threads_all_arrive_each_in_its_order),
		cmocka_unit_test(a_dispatch_inside_a_callback_is_refused),
		cmocka_unit_test(closing_frees_what_was_never_run),
		cmocka_unit_test(our_descriptors_are_above_the_standard_ones_and_close_on_exec),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
