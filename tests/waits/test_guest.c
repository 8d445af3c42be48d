/*
 * test_guest.c - profiles of waits as a guest: cancellation, mutexes that are gone,
 * handlers that lock, malloc, fork, our own threads.
 */
#include <config.h>

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "heap/heap.h"
#include "our_thread.h"
#include "fixture.h"
#include "skip.h"

/* ---- cancellation ---- */

static void
note_flag(void *arg)
{
	(void)arg;
	atomic_fetch_add(&flag, 1);
	pthread_mutex_unlock(&beside); /* it is ours again, as POSIX says */
}

SITE static void
wait_to_be_cancelled(int how)
{
	pthread_mutex_lock(&beside);
	pthread_cleanup_push(note_flag, NULL);
	atomic_store(&waiter_tid, gettid());
	if (how == 0)
		pthread_cond_wait(&cond, &beside);
	else if (how == 1)
		sem_wait(&sem);
	else
		pthread_mutex_lock(&lock.mutex);
	pthread_cleanup_pop(0);
}

static void *
cancelled(void *arg)
{
	if ((uintptr_t)arg == 2)
		pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	wait_to_be_cancelled((int)(uintptr_t)arg);
	return NULL;
}

static void
a_cancelled_wait_is_recorded_and_leaves_nothing_behind(void **state)
{
	pthread_t t, unused;
	void     *r;

	(void)state;
	for (uintptr_t how = 0; how < 3; how++) {
		prepare(MUTEX, &unused);
		atomic_store(&flag, 0);
		assert_int_equal(pthread_create(&t, NULL, cancelled, (void *)how), 0);
		until_waiting(MUTEX);
		forget();
		assert_int_equal(pthread_cancel(t), 0);
		assert_int_equal(pthread_join(t, &r), 0);
		assert_ptr_equal(r, PTHREAD_CANCELED);
		assert_int_equal(atomic_load(&flag), 1);
		assert_int_equal(block_in((const void *)wait_to_be_cancelled).count, 1);
		nobody_waits();
		assert_int_equal(pthread_mutex_trylock(&beside), 0);
	}
}

static void *
cancelled_with_a_post(void *arg)
{
	until_flag_slowly();
	sem_wait(arg);
	atomic_store(&flag, 1);
	return NULL;
}

static void
sem_wait_is_a_cancellation_point_without_waiting_too(void **state)
{
	pthread_t t, unused;
	int       value;

	(void)state;
	prepare(MUTEX, &unused);
	sem_post(&sem);
	atomic_store(&flag, 0);
	assert_int_equal(pthread_create(&t, NULL, cancelled_with_a_post, &sem), 0);
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	assert_int_equal(pthread_cancel(t), 0);
	atomic_store(&go_on, 1);
	pthread_join(t, NULL);
	assert_int_equal(atomic_load(&flag), 0);
	sem_getvalue(&sem, &value);
	assert_int_equal(value, 1);
}

/* ---- a mutex that is gone right after its unlock ---- */

struct message {
	pthread_mutex_t mutex;
	int             done;
};

static void *
finish_message(void *arg)
{
	struct message *m = arg;

	pthread_mutex_lock(&m->mutex);
	m->done = 1;
	pthread_mutex_unlock(&m->mutex); /* from here on it may be unmapped */
	return NULL;
}

static void
nobody_touches_a_mutex_after_its_unlock(void **state)
{
	size_t page = (size_t)getpagesize();

	(void)state;
	for (int i = 0; i < 300; i++) {
		struct message *m = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		pthread_t       t;
		int             done = 0;

		assert_ptr_not_equal(m, MAP_FAILED);
		pthread_mutex_init(&m->mutex, NULL);
		pthread_mutex_lock(&m->mutex);
		assert_int_equal(pthread_create(&t, NULL, finish_message, m), 0);
		while (!component_hooks.waiting[HOOKS_WAITING_BUCKET(&m->mutex)])
			sched_yield();
		pthread_mutex_unlock(&m->mutex);
		while (!done) {
			pthread_mutex_lock(&m->mutex);
			done = m->done;
			pthread_mutex_unlock(&m->mutex);
		}
		pthread_mutex_destroy(&m->mutex);
		assert_int_equal(mprotect(m, page, PROT_NONE), 0);
		pthread_join(t, NULL);
		munmap(m, page);
	}
	nobody_waits();
}

/* ---- handlers, malloc, fork, our own ---- */

static pthread_mutex_t in_handler = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int     handled;

static void
on_signal(int signal)
{
	(void)signal;
	if (pthread_mutex_lock(&in_handler) == 0)
		pthread_mutex_unlock(&in_handler);
	atomic_fetch_add(&handled, 1);
}

static void *
contend(void *arg)
{
	while (!atomic_load(&go_on)) {
		pthread_mutex_lock(arg);
		pthread_mutex_unlock(arg);
	}
	return NULL;
}

/* The one that sends never has in_handler while it is interrupted. */
static void *
contend_for_handlers_lock(void *arg)
{
	sigset_t all;

	(void)arg;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	return contend(&in_handler);
}

static void
a_handler_that_locks_may_interrupt_any_line(void **state)
{
	struct sigaction a = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	pthread_mutex_t  m = PTHREAD_MUTEX_INITIALIZER;
	pthread_t        t[3];

	(void)state;
	forget();
	atomic_store(&go_on, 0);
	atomic_store(&handled, 0);
	assert_int_equal(sigaction(SIGUSR1, &a, NULL), 0);
	assert_int_equal(pthread_create(&t[0], NULL, contend, &m), 0);
	assert_int_equal(pthread_create(&t[1], NULL, contend, &m), 0);
	assert_int_equal(pthread_create(&t[2], NULL, contend_for_handlers_lock, NULL), 0);
	while (atomic_load(&handled) < 2000) {
		pthread_kill(t[0], SIGUSR1);
		pthread_kill(t[1], SIGUSR1);
		rest_ns(20000);
	}
	atomic_store(&go_on, 1);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	assert_true(mutex_in(NULL).delay <= block_in(NULL).delay);
	nobody_waits();
}

static void
waiting_and_blaming_allocate_nothing(void **state)
{
	uint64_t before;

	(void)state;
	one_wait(MUTEX); /* what happens once has happened */
	if (heap_set_rate(1) < 0)
		SKIP("where the heap cannot be seen there is nothing to count with");
	pthread_mutex_lock(&beside);
	prepare(MUTEX, NULL);
	atomic_store(&waiter_tid, 0);
	{
		pthread_t t;

		assert_int_equal(pthread_create(&t, NULL, lock_and_unlock, &lock.mutex), 0);
		until_waiting(MUTEX);
		before = component_hooks.calls[HOOKS_malloc] + component_hooks.calls[HOOKS_calloc];
		pthread_mutex_unlock(&lock.mutex);
		pthread_join(t, NULL);
	}
	assert_int_equal(component_hooks.calls[HOOKS_malloc] + component_hooks.calls[HOOKS_calloc], before);
	heap_set_rate(0);
}

static void
a_child_is_off_and_its_locks_work(void **state)
{
	pthread_t t, unused;
	pid_t     child;
	int       status;

	(void)state;
	prepare(MUTEX, &unused);
	assert_int_equal(pthread_create(&t, NULL, waiter, (void *)(uintptr_t)MUTEX), 0);
	until_waiting(MUTEX);
	child = fork();
	if (child == 0) {
		pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

		waits_forked();
		if (component_hooks.wait_state != HOOKS_OFF || pthread_mutex_lock(&m) || pthread_mutex_unlock(&m) ||
			pthread_mutex_unlock(&lock.mutex))
			_exit(1);
		if (block_in(NULL).count || waits_set_mutex_fraction(1) || pthread_mutex_lock(&m) ||
			pthread_mutex_unlock(&m))
			_exit(2);
		_exit(mutex_in(NULL).count ? 3 : 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	pthread_mutex_unlock(&lock.mutex);
	pthread_join(t, NULL);
	nobody_waits();
}

static void *
own(void *arg)
{
	waiter((void *)(uintptr_t)MUTEX);
	return arg;
}

static void
our_own_threads_are_neither_seen_nor_blamed(void **state)
{
	pthread_t t, unused;

	(void)state;
	prepare(MUTEX, &unused);
	forget();
	assert_int_equal(our_thread_start("component-test", own, NULL, &t), 0);
	until_waiting(MUTEX);
	let_go(MUTEX);
	pthread_join(t, NULL);
	assert_int_equal(block_in((const void *)wait_for).count, 0);
	assert_int_equal(mutex_in((const void *)let_go).count, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cancelled_wait_is_recorded_and_leaves_nothing_behind),
		cmocka_unit_test(sem_wait_is_a_cancellation_point_without_waiting_too),
		cmocka_unit_test(nobody_touches_a_mutex_after_its_unlock),
		cmocka_unit_test(a_handler_that_locks_may_interrupt_any_line),
		cmocka_unit_test(waiting_and_blaming_allocate_nothing),
		cmocka_unit_test(a_child_is_off_and_its_locks_work),
		cmocka_unit_test(our_own_threads_are_neither_seen_nor_blamed),
	};

	return cmocka_run_group_tests(tests, waits_on, NULL);
}
