/*
 * measured_waits.c - a daemon that waits, while a trace is open, in ways it measures
 * itself: tests/trace/measured_waits.t.
 *
 *     measured_waits [deny]     deny: perf_event_open() is refused, as in a container
 *
 * Prints "url URL"; then, for each trace, once it is open, works through a fixed list of
 * waits on threads that are born for it, and prints "NAME WAITED DELAYED" of each, in
 * ns, and "done".  Ends when its stdin ends.
 *
 * What a stranger would get wrong:
 * - No step may be timed against another thread's: on a busy machine either is late by more
 *   than any pause.  Who is waited for begins when the other says that it is there.
 * - A dump may end a poll() with EINTR (docs/operating.md).  Here that happens always.
 */
#include <config.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <component/labels.h>
#include <component/profiler.h>
#include <component/trace.h>

#include "refused_call.h"
#include "waiting.h"

#define TURNS   10
#define HOLD_NS 10000000L
#define SPIN_NS 150000000L

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, door = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t  opened = PTHREAD_COND_INITIALIZER;
static bool            is_open;
static int             channel[2];
static sem_t           ready, turn; /* the waiter is about to wait; the mutex is held */
static pthread_t       waiting;

/* How long this thread was ready to run and did not, on a busy machine. */
static int64_t
delay_ns(void)
{
	long long ran = 0, delay = 0;
	FILE     *f = fopen("/proc/thread-self/schedstat", "r");

	if (!f || fscanf(f, "%lld %lld", &ran, &delay) != 2)
		delay = 0;
	if (f)
		fclose(f);
	return delay;
}

/* Each returns how long it has waited. */

__attribute__((noinline)) static int64_t
wait_for_mutex(void)
{
	int64_t begin = now_ns();

	pthread_mutex_lock(&lock);
	begin = now_ns() - begin;
	pthread_mutex_unlock(&lock);
	return begin;
}

__attribute__((noinline)) static int64_t
wait_for_condition(void)
{
	int64_t begin, waited = 0;

	pthread_mutex_lock(&door);
	while (!is_open) {
		begin = now_ns();
		pthread_cond_wait(&opened, &door);
		waited += now_ns() - begin;
	}
	is_open = false;
	pthread_mutex_unlock(&door);
	return waited;
}

__attribute__((noinline)) static int64_t
wait_in_read(void)
{
	int64_t begin = now_ns();
	char    byte;

	if (read(channel[0], &byte, 1) != 1)
		abort();
	return now_ns() - begin;
}

__attribute__((noinline)) static int64_t
wait_in_poll(void)
{
	struct pollfd p = { .fd = channel[0], .events = POLLIN };
	int64_t       begin = now_ns();
	int           r;

	while ((r = poll(&p, 1, HOLD_NS / 1000000)) < 0 && errno == EINTR)
		;
	if (r != 0)
		abort();
	return now_ns() - begin;
}

/* Nothing to wait for: none of these is a wait. */
__attribute__((noinline)) static int64_t
read_at_once(void)
{
	char byte = 'x';

	for (int i = 0; i < 100; i++)
		if (write(channel[1], &byte, 1) != 1 || read(channel[0], &byte, 1) != 1)
			abort();
	return 0;
}

#define MEASURE(name, statement)                                    \
	do {                                                        \
		int64_t sum_ = 0, delay_ = delay_ns();              \
		for (int i_ = 0; i_ < TURNS; i_++)                  \
			sum_ += (statement);                        \
		delay_ = delay_ns() - delay_;                       \
		printf("%s %lld %lld\n", #name, (long long)sum_, (long long)delay_); \
	} while (0)

/* Until the waiter is about to wait; then long enough to let it. */
static void
hold(void)
{
	sem_wait(&ready);
	rest_ns(HOLD_NS);
}

/* The other side of each wait, some milliseconds behind. */
static void *
helper(void *arg)
{
	for (int i = 0; i < TURNS; i++) {
		sem_wait(&ready); /* it has let go of the mutex */
		pthread_mutex_lock(&lock);
		sem_post(&turn);
		hold();
		pthread_mutex_unlock(&lock);
	}
	for (int i = 0; i < TURNS; i++) {
		hold();
		pthread_mutex_lock(&door);
		is_open = true;
		pthread_cond_signal(&opened);
		pthread_mutex_unlock(&door);
	}
	for (int i = 0; i < TURNS; i++) {
		hold();
		if (write(channel[1], "x", 1) != 1)
			abort();
	}
	for (int i = 0; i < TURNS; i++) {
		sem_wait(&ready);
		rest_ns(HOLD_NS / 2);
		pthread_kill(waiting, SIGURG); /* as a dump does; it is ignored where none has been */
	}
	return arg;
}

/* Says that it is about to wait. */
static int64_t
come(int64_t (*wait)(void))
{
	sem_post(&ready);
	return wait();
}

static int64_t
mutex_turn(void)
{
	sem_post(&ready);
	sem_wait(&turn);
	return come(wait_for_mutex);
}

static void *
waiter(void *arg)
{
	uint64_t task = component_trace_task_begin("measure", 0);

	waiting = pthread_self();
	prctl(PR_SET_NAME, "the-waiter");
	component_trace_log(task, "note", "%d turns each", TURNS);
	component_trace_region_begin(task, "locks");
	component_label_set("part", "locks");
	MEASURE(wait_for_mutex, mutex_turn());
	rest_ns(HOLD_NS * 4); /* late: it must be waited for */
	MEASURE(wait_for_condition, come(wait_for_condition));
	component_label_clear("part");
	component_trace_region_end(task, "locks");
	MEASURE(wait_in_read, come(wait_in_read));
	MEASURE(wait_in_poll, come(wait_in_poll));
	read_at_once();
	component_trace_task_end(task);
	return arg;
}

/* One of two that want the same processor; returns how long it could have run and did not. */
static void *
competitor(void *processor)
{
	int64_t         delay = delay_ns();
	struct timespec ran;

	sched_setaffinity(0, sizeof(cpu_set_t), processor);
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ran);
	while (ran.tv_sec == 0 && ran.tv_nsec < SPIN_NS);
	return (void *)(intptr_t)(delay_ns() - delay);
}

static void
compete(void)
{
	pthread_t threads[2];
	cpu_set_t all, one;
	intptr_t  sum = 0;
	int       processor = 0;

	sched_getaffinity(0, sizeof(all), &all);
	while (!CPU_ISSET(processor, &all))
		processor++;
	CPU_ZERO(&one);
	CPU_SET(processor, &one);
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, competitor, &one);
	for (int i = 0; i < 2; i++) {
		void *delay;

		pthread_join(threads[i], &delay);
		sum += (intptr_t)delay;
	}
	printf("competitor 0 %lld\n", (long long)sum);
}

static void *
short_life(void *arg)
{
	rest_ns(100000);
	return arg;
}

/* ---- what a trace must not change ---- */

static sigjmp_buf out;

static void
leave(int number)
{
	(void)number;
	siglongjmp(out, 1);
}

/* Waits that are left by siglongjmp() and by cancellation, and a child without a trace. */
static void *
rude(void *arg)
{
	struct sigaction action = { .sa_handler = leave };
	char             byte;

	sigaction(SIGUSR1, &action, NULL);
	if (sigsetjmp(out, 1) == 0) {
		timer_t         timer;
		struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
		struct itimerspec soon = { .it_value = { 0, 5000000 } };

		event.sigev_notify = 4; /* SIGEV_THREAD_ID */
		event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
		timer_create(CLOCK_MONOTONIC, &event, &timer);
		timer_settime(timer, 0, &soon, NULL);
		read(*(int *)arg, &byte, 1);
		abort();
	}
	errno = ENOTTY;
	if (write(-1, "x", 1) != -1 || errno != EBADF)
		abort();
	sem_post(&ready);
	read(*(int *)arg, &byte, 1); /* for ever: cancelled */
	abort();
}

static void
be_rude(void)
{
	pthread_t thread;
	void     *result;
	int       silent[2], status;
	pid_t     child;

	if (pipe(silent))
		abort();
	pthread_create(&thread, NULL, rude, &silent[0]);
	child = fork();
	if (child == 0)
		_exit(component_trace_is_on() ? 1 : write(silent[1], "", 0) == 0 ? 0 : 2);
	if (waitpid(child, &status, 0) != child || status != 0)
		abort();
	child = vfork();
	if (child == 0) {
		if (read(silent[0], NULL, 0) != 0)
			_exit(1);
		_exit(0);
	}
	if (waitpid(child, &status, 0) != child || status != 0)
		abort();
	sem_wait(&ready); /* the timer's handler would jump into what the cancellation has unwound */
	rest_ns(HOLD_NS);
	pthread_cancel(thread);
	pthread_join(thread, &result);
	if (result != PTHREAD_CANCELED)
		abort();
	close(silent[0]);
	close(silent[1]);
}

static void
deny_perf(void)
{
	if (refuse_call(SYS_perf_event_open) < 0) {
		printf("cannot filter system calls: %s\n", strerror(errno));
		exit(77);
	}
}

static void
work(void)
{
	pthread_t threads[2], brief;

	if (pipe(channel))
		abort();
	sem_init(&ready, 0, 0);
	sem_init(&turn, 0, 0);
	pthread_create(&threads[0], NULL, waiter, NULL);
	pthread_create(&threads[1], NULL, helper, NULL);
	for (int i = 0; i < 50; i++) {
		pthread_create(&brief, NULL, short_life, NULL);
		pthread_join(brief, NULL);
	}
	pthread_join(threads[1], NULL); /* it signals the other */
	pthread_join(threads[0], NULL);
	compete();
	be_rude();
	close(channel[0]);
	close(channel[1]);
	printf("done\n");
}

/* Polls are a wait of the main thread, in no measured function. */
static bool
until(bool on)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };

	while (component_trace_is_on() != on)
		if (poll(&in, 1, 1) > 0)
			return false;
	return true;
}

int
main(int argc, char **argv)
{
	char url[600];

	setvbuf(stdout, NULL, _IONBF, 0);
	if (argc > 1 && strcmp(argv[1], "deny") == 0)
		deny_perf();
	if (component_profiler_start("127.0.0.1:0") < 0)
		return 3;
	component_profiler_set_heap_rate(4096);
	free(malloc(1 << 20));
	component_profiler_url(url, sizeof(url));
	printf("url %s\n", url);
	while (until(true)) {
		work();
		if (!until(false))
			break;
	}
	component_profiler_stop();
	printf("fine\n");
	return 0;
}
