/*
 * cpu_signal.c - what one sample of the CPU profile costs, from the signal on.
 *
 *     cpu_signal ours|empty FRAMES [THREADS [COUNT]]
 *     cpu_signal share FRAMES
 *
 * The thread sends itself the signal of its own timer, so that samples need no
 * waiting: ours runs the library's handler as a timer's expiry would, empty one
 * that does nothing.  The cost of the system call that sends is taken off: it is
 * measured with signal 0.  With THREADS, so many are alive, each has its timer, and
 * each samples itself in its turn.  With COUNT they take so many samples in all, for
 * counting instructions.  share: what 100 samples in a second and the thread that looks
 * after them take of one processor, while a window of 10 s is open.
 *
 * What a stranger would get wrong:
 * - The handler believes a signal only with its timer's number in it.  That is
 *   found out by asking the function the handler asks.
 * - A full ring makes samples cheap, since they are dropped: it is emptied, off the
 *   clock, before it can be full.
 */
#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench.h"
#include "cpu/cpu.h"
#include "cpu/ring.h"
#include "cpu/signal.h"
#include "cpu/slots.h"
#include "cpu/timers.h"
#include "deep.h"
#include "unwind.h"

#define BATCHES       21
#define BATCH         1000 /* stacks of 30 frames: a quarter of the ring */
#define THREAD_SAMPLES 25
#define TIMERS_TRIED  100000
#define SHARE_NS      10000000000LL /* what is scraped of a daemon that is watched all the time */
#define OTHER_FRAMES  7 /* of a stack: above and below ours */

static int             ours, threads = 1;
static unsigned        frames;
static long            repeats, total;
static double          cost, sum_ns, sum_count;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t born;
static uint32_t        next_slot = 1; /* the main thread's */
static int             next_timer;
static __thread siginfo_t info;

static void
empty(int number, siginfo_t *i, void *context)
{
	(void)number;
	(void)i;
	(void)context;
}

static uint64_t samples_seen, depth_seen;

static void
see(void *arg, const struct cpu_sample *s)
{
	(void)arg;
	samples_seen++;
	depth_seen += s->count;
}

static int64_t
send_many(int number, long count)
{
	pid_t   pid = getpid(), tid = (pid_t)syscall(SYS_gettid);
	int64_t begin = bench_ns(CLOCK_THREAD_CPUTIME_ID);

	for (long i = 0; i < count; i++)
		if (syscall(SYS_rt_tgsigqueueinfo, pid, tid, number, &info) != 0)
			bench_die("rt_tgsigqueueinfo");
	return bench_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
}

/* One by one: valgrind hands a signal over somewhat later. */
static __attribute__((noinline)) double
send_each(long count)
{
	pid_t    pid = getpid(), tid = (pid_t)syscall(SYS_gettid);
	uint64_t used;

	for (long i = 0; i < count; i++) {
		used = cpu_ring_used();
		if (syscall(SYS_rt_tgsigqueueinfo, pid, tid, SIGPROF, &info) != 0)
			bench_die("rt_tgsigqueueinfo");
		while (cpu_ring_used() == used)
			sched_yield();
		if (i % BATCH == 0)
			cpu_ring_drain(see, NULL);
	}
	cpu_ring_drain(see, NULL);
	return 0;
}

/* One signal's cost, the sending taken off. */
static double
batch(long count)
{
	double sent, with;

	if (total > 0)
		return send_each(count);
	sent = (double)send_many(0, count) / (double)count;
	with = (double)send_many(SIGPROF, count) / (double)count;
	if (ours)
		cpu_ring_drain(see, NULL);
	return with - sent;
}

static void
leaf(void)
{
	double taken[BATCHES];

	batch(10);
	if (total > 0) {
		batch(total / threads);
		return;
	}
	if (threads > 1) {
		sum_ns += batch(repeats) * (double)repeats;
		sum_count += (double)repeats;
		return;
	}
	for (int i = 0; i < BATCHES; i++)
		taken[i] = batch(repeats);
	cost = bench_median(taken, BATCHES);
}

/* Fills in what a signal of the calling thread's timer says. */
static void
become_sampled(void)
{
	uint32_t slot, weight;

	memset(&info, 0, sizeof(info));
	info.si_signo = SIGPROF;
	info.si_code = SI_TIMER;
	if (!ours)
		return;
	cpu_timers_self_add();
	next_slot++;
	info.si_value.sival_ptr = (void *)(uintptr_t)((uint64_t)CPU_SLOT_COOKIE << 32 | next_slot);
	for (int i = 0; i < TIMERS_TRIED; i++) {
		info.si_timerid = (next_timer + i) % TIMERS_TRIED;
		if (cpu_slot_expired(&info, &slot, &weight)) {
			next_timer = info.si_timerid + 1;
			return;
		}
	}
	bench_die("there is no timer");
}

static void *
run(void *arg)
{
	pthread_mutex_lock(&turn);
	become_sampled();
	pthread_mutex_unlock(&turn);
	pthread_barrier_wait(&born);
	pthread_mutex_lock(&turn);
	deep_call(frames - OTHER_FRAMES, leaf);
	pthread_mutex_unlock(&turn);
	pthread_barrier_wait(&born); /* all live until the last has had its turn */
	return arg;
}

static void
prepare(void)
{
	struct sigaction sa = { .sa_sigaction = empty, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK };
	struct cpu_timers_state state = { 0 };
	int                     number;

	if (!ours) {
		sigfillset(&sa.sa_mask);
		sigaction(SIGPROF, &sa, NULL);
		return;
	}
	if (unwind_start(UNWIND_TABLES) < 0 || (number = cpu_signal_install()) != SIGPROF || cpu_ring_open() < 0 ||
	    cpu_timers_open(number, 1000000000LL / CPU_HZ) < 0 || cpu_timers_scan(true, &state) < 0)
		bench_die("the sampler does not start");
	cpu_signal_enable();
}

static void
measure(void)
{
	pthread_attr_t attr;
	pthread_t     *t = calloc((size_t)threads, sizeof(*t));

	repeats = threads > 1 ? THREAD_SAMPLES : BATCH;
	pthread_barrier_init(&born, NULL, (unsigned)threads);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 256 * 1024);
	prepare();
	for (int i = 0; i < threads; i++)
		if (pthread_create(&t[i], &attr, run, NULL) != 0)
			bench_die("no thread");
	for (int i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
	free(t);
	if (sum_count > 0)
		cost = sum_ns / sum_count;
	if (!ours)
		return;
	if (samples_seen == 0 || cpu_ring_lost() > 0 || depth_seen / samples_seen + (total > 0 ? 2 : 1) < frames)
		bench_die("those were no whole samples");
	printf("# a sample has %.1f frames\n", (double)depth_seen / (double)samples_seen);
}

/* CPU time that the threads of the library have used, in ns; -1 without /proc. */
static int64_t
own_threads_ns(void)
{
	DIR           *d = opendir("/proc/self/task");
	struct dirent *e;
	char           path[320], comm[64];
	int64_t        sum = d ? 0 : -1;
	long long      ran;
	FILE          *f;

	while (d && (e = readdir(d))) {
		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", e->d_name);
		f = fopen(path, "re");
		if (!f || !fgets(comm, sizeof(comm), f))
			comm[0] = 0;
		if (f)
			fclose(f);
		if (strncmp(comm, "component-", 10) != 0)
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%s/schedstat", e->d_name);
		f = fopen(path, "re");
		if (f && fscanf(f, "%lld", &ran) == 1)
			sum += ran;
		if (f)
			fclose(f);
	}
	if (d)
		closedir(d);
	return sum;
}

static volatile unsigned sink;

/* A real window over one busy thread, for what the thread component-cpu takes. */
static double
look_share(void)
{
	struct cpu_window *w;
	int64_t            begin, helper;

	if (cpu_window_open(&w) < 0)
		bench_die("no window");
	helper = own_threads_ns();
	begin = bench_ns(CLOCK_MONOTONIC);
	while (bench_ns(CLOCK_MONOTONIC) - begin < SHARE_NS)
		for (unsigned i = 0; i < 100000; i++)
			sink += i;
	helper = own_threads_ns() - helper;
	begin = bench_ns(CLOCK_MONOTONIC) - begin;
	cpu_window_cancel(w);
	return (double)helper / (double)begin;
}

int
main(int argc, char **argv)
{
	double looks = 0;

	if (argc < 3)
		bench_die("cpu_signal ours|empty|share FRAMES [THREADS [COUNT]]");
	ours = strcmp(argv[1], "empty") != 0;
	frames = (unsigned)atoi(argv[2]);
	threads = argc > 3 ? atoi(argv[3]) : 1;
	total = argc > 4 ? atol(argv[4]) : 0;
	if (frames <= OTHER_FRAMES || frames > DEEP_MAX || threads < 1)
		bench_die("no such FRAMES or THREADS");
	if (strcmp(argv[1], "share") == 0)
		looks = look_share();
	measure();
	bench_print("cpu_signal_ns", cost, "ns");
	if (looks > 0) {
		bench_print("cpu_100hz_core_share", cost * 100 / 1e9 + looks, "share");
		printf("# the samples' share %.5f %%, component-cpu's %.5f %%\n", cost * 100 / 1e9 * 100, looks * 100);
	}
	return 0;
}
