/*
 * cpu_accuracy.c - does a CPU profile tell how much CPU time which thread used?
 *
 *     cpu_accuracy ours|gperftools SEED
 *
 * Threads use 50, 30, 15 and 5 parts of CPU time in one go; 10 parts in bursts of
 * 1 ms with naps of 7 ms; 10 parts in threads that live for 4 ms; 10 parts in a thread
 * that comes late.  130 parts are about 8 seconds.  The truth is each thread's own
 * clock.  A sample is a thread's whose function is anywhere in its stack.
 *
 *   cpu_count_ratio  samples / (CPU seconds x 100 Hz)
 *   cpu_tv_pp        total variation between the shares of samples and the true
 *                    ones, in percentage points
 */
#include <config.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "bench.h"
#include "cpu/cpu.h"
#include "cpu_burn.h"
#include "unwind.h"

#define MS      1000000LL
#define PART_NS (8000 * MS / 130)
#define SHORT   (4 * MS)
#define LABELS  7

static _Atomic int64_t truth[LABELS];
static int64_t         samples[LABELS];
static uint64_t        seed;
static pthread_barrier_t all_there;

static uint64_t
draw(void)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return seed >> 33;
}

/* So much of it, a tenth more or less. */
static int64_t
about(int64_t ns)
{
	return ns + (int64_t)(draw() % 2001 - 1000) * ns / 10000;
}

/* At a thread's end: all it has used, its start included. */
static void
note_truth(int label)
{
	truth[label] += clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

#define BURNER(name, label)                                                       \
	BURN_FUNCTION(name) static void *name(void *ns)                           \
	{                                                                         \
		pthread_barrier_wait(&all_there);                                 \
		burn_ns((int64_t)(intptr_t)ns);                                   \
		note_truth(label);                                                \
		return NULL;                                                      \
	}
BURNER(burn_a, 0)
BURNER(burn_b, 1)
BURNER(burn_c, 2)
BURNER(burn_d, 3)

BURN_FUNCTION(burn_bursts) static void *
burn_bursts(void *ns)
{
	pthread_barrier_wait(&all_there);
	for (int64_t left = (int64_t)(intptr_t)ns; left > 0; left -= MS) {
		burn_ns(MS);
		usleep(7000);
	}
	note_truth(4);
	return NULL;
}

BURN_FUNCTION(burn_short) static void *
burn_short(void *ns)
{
	burn_ns((int64_t)(intptr_t)ns - clock_ns(CLOCK_THREAD_CPUTIME_ID));
	note_truth(5);
	return NULL;
}

BURN_FUNCTION(burn_late) static void *
burn_late(void *ns)
{
	burn_ns((int64_t)(intptr_t)ns);
	note_truth(6);
	return NULL;
}

static pthread_t
begin(void *(*run)(void *), int64_t ns)
{
	pthread_t t;

	if (pthread_create(&t, NULL, run, (void *)(intptr_t)ns) != 0)
		bench_die("no thread");
	return t;
}

static void
work(void)
{
	int64_t   shorts = about(10 * PART_NS), used = 0, one;
	pthread_t t[6];
	int       i;

	pthread_barrier_init(&all_there, NULL, 6);
	t[0] = begin(burn_a, about(50 * PART_NS));
	t[1] = begin(burn_b, about(30 * PART_NS));
	t[2] = begin(burn_c, about(15 * PART_NS));
	t[3] = begin(burn_d, about(5 * PART_NS));
	t[4] = begin(burn_bursts, about(10 * PART_NS));
	pthread_barrier_wait(&all_there);
	for (i = 0; used < shorts; i++, used += one) {
		one = about(SHORT);
		if (i == 60)
			t[5] = begin(burn_late, about(10 * PART_NS));
		pthread_join(begin(burn_short, one), NULL);
	}
	for (i = 0; i < 6; i++)
		pthread_join(t[i], NULL);
}

static int
label_of(const uintptr_t *pcs, unsigned count)
{
#define ENDS(name) { __start_text_##name, __stop_text_##name }
	static const char *const ends[LABELS][2] = { ENDS(burn_a), ENDS(burn_b), ENDS(burn_c), ENDS(burn_d),
		ENDS(burn_bursts), ENDS(burn_short), ENDS(burn_late) };

	for (unsigned i = 0; i < count; i++)
		for (int k = 0; k < LABELS; k++)
			if (pcs[i] >= (uintptr_t)ends[k][0] && pcs[i] < (uintptr_t)ends[k][1])
				return k;
	return -1;
}

static int64_t total;

static void
count_stack(const uintptr_t *pcs, unsigned count, int64_t value)
{
	int label = label_of(pcs, count);

	total += value;
	if (label >= 0)
		samples[label] += value;
}

static void
run_ours(void)
{
	struct cpu_window *w = NULL;
	struct profile     p;
	const uintptr_t   *pcs;
	unsigned           count;

	if (unwind_start(UNWIND_TABLES) < 0 || cpu_window_open(&w) < 0)
		bench_die("no window");
	work();
	if (cpu_window_close(w, &p) < 0)
		bench_die("no profile");
	for (size_t i = 0; i < p.count; i++) {
		pcs = stack_table_pcs(p.samples[i].stack, &count);
		count_stack(pcs, count, p.samples[i].values[0]);
	}
	printf("# ours: %llu lost\n", (unsigned long long)p.lost);
	profile_release(&p);
}

/* Its file is words: a header of 5, then (count, n, n pcs) until a pc of 0. */
static void
count_gperftools(const char *path)
{
	uintptr_t *words = NULL;
	size_t     size = 0, at;
	FILE      *f = fopen(path, "re");

	if (!f || !(words = calloc(1, 64 << 20)))
		bench_die("no file of gperftools");
	size = fread(words, sizeof(*words), (64 << 20) / sizeof(*words), f);
	fclose(f);
	for (at = 5; at + 2 < size && words[at + 2] != 0; at += 2 + words[at + 1])
		count_stack(&words[at + 2], (unsigned)words[at + 1], (int64_t)words[at]);
	free(words);
}

static void
run_gperftools(void)
{
	void *handle = dlopen("libprofiler.so.0", RTLD_NOW | RTLD_GLOBAL);
	int (*start)(const char *);
	void (*stop)(void);

	if (!handle)
		bench_skip("libprofiler.so.0 is not here (Debian: libgoogle-perftools4)");
	start = (int (*)(const char *))dlsym(handle, "ProfilerStart");
	stop = (void (*)(void))dlsym(handle, "ProfilerStop");
	if (!start || !stop || !start("gperftools.prof"))
		bench_die("ProfilerStart");
	work();
	stop();
	count_gperftools("gperftools.prof");
}

int
main(int argc, char **argv)
{
	double  used = 0, counted = 0, variation = 0;
	int64_t sum = 0;
	int     i;

	if (argc < 3)
		bench_die("cpu_accuracy ours|gperftools SEED");
	seed = strtoull(argv[2], NULL, 10) * 7919 + 1;
	draw();
	if (strcmp(argv[1], "ours") == 0)
		run_ours();
	else
		run_gperftools();
	for (i = 0; i < LABELS; i++) {
		used += (double)truth[i];
		sum += samples[i];
	}
	counted = (double)sum;
	if (used == 0 || counted == 0)
		bench_die("no samples");
	printf("# %s seed %s, samples of truth:", argv[1], argv[2]);
	for (i = 0; i < LABELS; i++) {
		variation += 50 * (samples[i] / counted > truth[i] / used ? samples[i] / counted - truth[i] / used
									  : truth[i] / used - samples[i] / counted);
		printf(" %lld/%.1f", (long long)samples[i], (double)truth[i] / 1e7);
	}
	printf(", %lld in all\n", (long long)total);
	bench_print("cpu_count_ratio", counted * 1e7 / used, "ratio");
	bench_print("cpu_tv_pp", variation, "pp");
	return 0;
}
