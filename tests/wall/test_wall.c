/*
 * test_wall.c - wall-clock windows: whatever part of the threads is looked at, the sum
 * is threads times duration, and nobody is favoured.
 */
#include <config.h>

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "collector.h"
#include "cpu/window.h"
#include "cpu_burn.h"
#include "labels.h"
#include "profile.h"
#include "skip.h"
#include "stack_table.h"
#include "unwind.h"
#include "wall/wall.h"
#include "wall/window.h"

#define SECOND_NS 1000000000LL

static uint32_t
stack_of(uintptr_t seed)
{
	uintptr_t pcs[2] = { 0x10000 + seed, 0x20000 };

	return stack_table_add(pcs, 2);
}

static int64_t
value_of(const struct profile *p, uint32_t stack, unsigned type)
{
	for (size_t i = 0; i < p->count; i++)
		if (p->samples[i].stack == stack)
			return p->samples[i].values[type];
	return 0;
}

static int64_t
total(const struct profile *p, unsigned type)
{
	int64_t sum = 0;

	for (size_t i = 0; i < p->count; i++)
		sum += p->samples[i].values[type];
	return sum;
}

static void
profile_of(struct wall_window *w, double seconds, struct profile *ret)
{
	w->window.end_ns = (int64_t)(seconds * SECOND_NS);
	w->threads = 1;
	w->cpu_why = "none";
	assert_int_equal(wall_window_profile(w, true, ret), 0);
}

static void
running_time_goes_to_the_threads_own_stacks_in_the_proportion_of_its_cpu_samples(void **state)
{
	struct wall_window *w = wall_window_new();
	struct wall_look    looks[] = { { 0, 7, 1 }, { 0, 8, 1 }, { 0, 9, 1 } };
	uint32_t            a = stack_of(1), b = stack_of(2), c = stack_of(3), asleep = stack_of(4);
	struct wall_look    blocked = { asleep, 10, 1 };
	struct profile      p;

	(void)state;
	assert_non_null(w);
	w->cpu = cpu_window_new();
	w->cpu->by_thread = true;
	/* 7 had half a processor, at two places; 8 a whole one; 9 no sample; 11 no look. */
	cpu_window_count(w->cpu, 7, a, 0, 30);
	cpu_window_count(w->cpu, 7, b, 0, 10);
	cpu_window_count(w->cpu, 8, a, 0, 80);
	cpu_window_count(w->cpu, 11, c, 0, 50);
	for (int i = 0; i < 100; i++) {
		w->ticks++;
		w->taken++;
		wall_window_count(w, looks, 3, 1);
		wall_window_count(w, &blocked, 1, 1);
	}
	profile_of(w, 1, &p);
	assert_int_equal(value_of(&p, a, 0), 175);
	assert_int_equal(value_of(&p, b, 0), 25);
	assert_int_equal(value_of(&p, c, 0), 0);
	assert_int_equal(value_of(&p, asleep, 0), 100);
	assert_int_equal(value_of(&p, STACK_PSEUDO_RUNNING, 0), 100);
	assert_int_equal(value_of(&p, a, 1), 1750 * 1000000LL);
	assert_int_equal(total(&p, 1), 4 * SECOND_NS);
	assert_non_null(strstr(p.comments, "rate: 99 Hz, reached 100.0 Hz"));
	profile_release(&p);
	cpu_window_free(w->cpu);
	wall_window_free(w);
	stack_table_unref(a);
	stack_table_unref(b);
	stack_table_unref(c);
	stack_table_unref(asleep);
	assert_int_equal(stack_table_bytes(), 0);
}

/* Thread i stands at stack i % 10, and a tenth of the threads run. */
static void
any_part_of_the_threads_gives_the_whole_sum_and_the_right_shares(void **state)
{
	enum { THREADS = 1000, TICKS = 2000 };
	struct wall_window *w = wall_window_new();
	struct wall_look    looks[64];
	struct profile      p;
	uint32_t            stacks[10];
	uint64_t            random = 88172645463325252ULL;
	double              want = (double)THREADS * TICKS / 10;

	(void)state;
	w->cpu = cpu_window_new();
	w->cpu->by_thread = true;
	for (unsigned i = 0; i < 10; i++)
		stacks[i] = stack_of(i);
	for (unsigned i = 0; i < THREADS; i += 10)
		cpu_window_count(w->cpu, i + 1, stacks[0], 0, 1);
	for (int tick = 0; tick < TICKS; tick++) {
		size_t n = 1 + (size_t)(wall_random(&random) * 63); /* 0.1 % to 6 % of them */

		for (size_t k = 0; k < n; k++) {
			unsigned i = (unsigned)(wall_random(&random) * THREADS);

			looks[k] = (struct wall_look){ i % 10 ? stacks[i % 10] : 0, (int32_t)i + 1, 1 };
		}
		w->ticks++;
		wall_window_count(w, looks, n, (double)THREADS / (double)n);
	}
	profile_of(w, 20, &p);
	assert_in_range(total(&p, 0), THREADS * TICKS - 1, THREADS * TICKS + 1);
	assert_in_range(total(&p, 1), 20 * SECOND_NS * THREADS - 10, 20 * SECOND_NS * THREADS + 10);
	/* The fixed draws scatter by 1 % or so. */
	for (unsigned i = 0; i < 10; i++)
		assert_in_range(value_of(&p, stacks[i], 0), (int64_t)(want * 0.94), (int64_t)(want * 1.06));
	profile_release(&p);
	cpu_window_free(w->cpu);
	wall_window_free(w);
	for (unsigned i = 0; i < 10; i++)
		stack_table_unref(stacks[i]);
	assert_int_equal(stack_table_bytes(), 0);
}

static uint32_t
labels_named(const char *tenant)
{
	struct labels_draft d;

	assert_int_equal(labels_draft(0, "tenant", tenant, &d), 0);
	return labels_intern(&d);
}

static int64_t
labelled(const struct profile *p, uint32_t stack, uint32_t labels)
{
	for (size_t i = 0; i < p->count; i++)
		if (p->samples[i].stack == stack && p->samples[i].labels == labels)
			return p->samples[i].values[0];
	return 0;
}

static void
labels_are_those_of_the_look_or_where_a_thread_ran_of_its_cpu_samples(void **state)
{
	struct wall_window *w = wall_window_new();
	uint32_t            acme = labels_named("acme"), ajax = labels_named("ajax"), a = stack_of(1);
	/* One waits for acme, one for ajax and one for nobody; 7 and 8 run. */
	struct wall_look    looks[] = { { a, 4, 1, acme }, { a, 5, 1, ajax }, { a, 6, 1, 0 }, { 0, 7, 1, acme }, { 0, 8, 1, ajax } };
	struct profile      p;

	(void)state;
	w->cpu = cpu_window_new();
	w->cpu->by_thread = true;
	cpu_window_count(w->cpu, 7, a, acme, 10);
	cpu_window_count(w->cpu, 7, a, ajax, 30);
	for (int i = 0; i < 100; i++) {
		w->ticks++;
		wall_window_count(w, looks, 5, 1);
	}
	profile_of(w, 1, &p);
	assert_int_equal(labelled(&p, a, acme), 125);
	assert_int_equal(labelled(&p, a, ajax), 175);
	assert_int_equal(labelled(&p, a, 0), 100);
	assert_int_equal(labelled(&p, STACK_PSEUDO_RUNNING, ajax), 100);
	assert_int_equal(total(&p, 0), 500);
	profile_release(&p);
	cpu_window_free(w->cpu);
	wall_window_free(w);
	labels_unref(acme);
	labels_unref(ajax);
	stack_table_unref(a);
	assert_int_equal(stack_table_bytes(), 0);
}

static void
late_ticks_change_neither_the_sum_nor_the_shares(void **state)
{
	struct wall_window *w = wall_window_new();
	uint32_t            a = stack_of(1), b = stack_of(2);
	struct wall_look    at_a = { a, 1, 3 }, at_b = { b, 1, 1 };
	struct profile      p;

	(void)state;
	/* Three quarters at a, where the sampler was kept waiting for three ticks each time. */
	for (int i = 0; i < 25; i++) {
		wall_window_count(w, &at_a, 1, 1);
		wall_window_count(w, &at_b, 1, 1);
		w->ticks += 4;
		w->taken += 2;
	}
	profile_of(w, 2, &p);
	assert_int_equal(value_of(&p, a, 1), 1500000000LL);
	assert_int_equal(value_of(&p, b, 1), 500000000LL);
	assert_int_equal(p.duration_ns, 2 * SECOND_NS);
	assert_non_null(strstr(p.comments, "where threads run is not known: none"));
	profile_release(&p);
	wall_window_free(w);
	stack_table_unref(a);
	stack_table_unref(b);
}

static void
a_window_without_a_tick_is_a_valid_empty_profile(void **state)
{
	struct wall_window *w = wall_window_new();
	struct profile      p;

	(void)state;
	profile_of(w, 0, &p);
	assert_int_equal(p.count, 0);
	assert_int_equal(p.type_count, 2);
	assert_string_equal(p.types[1].type, "time");
	profile_release(&p);
	wall_window_free(w);
}

static void
windows_overlap_and_a_cancelled_one_leaves_nothing(void **state)
{
	struct wall_window *one, *two;
	struct profile      p;

	(void)state;
	assert_int_equal(wall_window_open(&one), 0);
	assert_int_equal(wall_window_open(&two), 0);
	wall_window_cancel(one);
	assert_int_equal(wall_window_close(two, true, &p), 0);
	assert_int_equal(p.types[0].type[0], 's');
	profile_release(&p);
	assert_int_equal(stack_table_bytes(), 0);
}

static void
what_a_window_has_so_far_can_be_told_while_it_goes_on(void **state)
{
	const struct collect_params params = { .idle = true };
	struct wall_window         *w;
	struct product              first = { 0 }, second = { 0 };
	struct profile              p;

	(void)state;
	assert_int_equal(wall_window_open(&w), 0);
	assert_int_equal(collect_fgprof.so_far(w, &params, &first), 0);
	do {
		product_release(&second);
		assert_int_equal(collect_fgprof.so_far(w, &params, &second), 0);
	} while (!second.profile.count);
	assert_int_equal(second.type, PRODUCT_PROFILE);
	assert_true(first.profile.duration_ns < second.profile.duration_ns);
	assert_int_equal(first.profile.time_ns, second.profile.time_ns);
	assert_int_equal(wall_window_close(w, true, &p), 0);
	assert_true(second.profile.duration_ns < p.duration_ns);
	assert_true(total(&second.profile, 0) <= total(&p, 0));
	profile_release(&p);
	product_release(&first);
	product_release(&second);
	assert_int_equal(stack_table_bytes(), 0);
}

/* Pages that it has to copy, of a window with so many stacks; -1: it failed. */
static long
faults_of_a_child(uint32_t stacks)
{
	struct wall_window *w;
	struct rusage       used;
	int                 ends[2];
	long                faults = -1;
	pid_t               pid;

	assert_int_equal(wall_window_open(&w), 0);
	pthread_mutex_lock(&collect_fgprof.windows->lock);
	for (uint32_t i = 0; i < stacks; i++) {
		uintptr_t pcs[STACK_FRAMES_MAX / 2];
		uint32_t  stack;

		for (unsigned k = 0; k < STACK_FRAMES_MAX / 2; k++)
			pcs[k] = (uintptr_t)faults_of_a_child + i + k;
		stack = stack_table_add(pcs, STACK_FRAMES_MAX / 2);
		assert_true(window_counts_add(&w->counts, stack, 0, 0, 1));
		stack_table_unref(stack);
	}
	pthread_mutex_unlock(&collect_fgprof.windows->lock);
	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (pid == 0) {
		getrusage(RUSAGE_SELF, &used);
		_exit(write(ends[1], &used.ru_minflt, sizeof(long)) != sizeof(long));
	}
	close(ends[1]);
	if (read(ends[0], &faults, sizeof(faults)) != sizeof(faults))
		faults = -1;
	close(ends[0]);
	waitpid(pid, NULL, 0);
	wall_window_cancel(w);
	return faults;
}

static void
a_child_pays_little_for_what_its_parent_measures(void **state)
{
	long few = faults_of_a_child(0), many = faults_of_a_child(5000);

	(void)state;
	assert_true(few > 0);
	assert_in_range(many, 1, few + 100); /* 5000 stacks lie on some 1300 pages */
}

#define ENOUGH 20 /* looks: where they are dear, as under a sanitizer, there are few a second */

static int         never[2];
static atomic_bool stop;

BURN_FUNCTION(come_and_go)
static void *
come_and_go(void *arg)
{
	while (!stop)
		rest_ns(WAIT_STEP_NS);
	return arg;
}

BURN_FUNCTION(stay)
static void *
stay(void *arg)
{
	char c;

	while (read(never[0], &c, 1) < 0)
		;
	return arg;
}

struct seen {
	int64_t moving, staying;
};

static struct seen
seen_so_far(struct wall_window *w)
{
	const struct collect_params params = { .idle = true };
	struct product              p = { 0 };
	struct seen                 seen;

	assert_int_equal(collect_fgprof.so_far(w, &params, &p), 0);
	seen.moving = burn_samples(&p.profile, come_and_go);
	seen.staying = burn_samples(&p.profile, stay);
	product_release(&p);
	return seen;
}

/* The number that it has; -1: it is not open. */
static int
folder_of_threads(void)
{
	char    link[64], to[64];
	ssize_t n;

	for (int fd = 0; fd < 1024; fd++) {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		n = readlink(link, to, sizeof(to));
		if (n >= 5 && n < (ssize_t)sizeof(to) && !memcmp(to + n - 5, "/task", 5))
			return fd;
	}
	return -1;
}

static void
a_program_that_closes_every_descriptor_changes_no_shares_and_keeps_those_that_it_opens(void **state)
{
	struct wall_window *w;
	struct seen         before, now;
	pthread_t           moving, staying;
	int                 fd, null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)state;
#ifdef __SANITIZE_ADDRESS__
	SKIP("under AddressSanitizer no stack of a thread that waits here was seen within a minute");
#endif
	unwind_start(UNWIND_AUTO); /* now: the sampler would take long for its first look, and then rest for long */
	assert_int_equal(pipe(never), 0);
	assert_int_equal(pthread_create(&moving, NULL, come_and_go, NULL), 0);
	assert_int_equal(pthread_create(&staying, NULL, stay, NULL), 0);
	assert_int_equal(wall_window_open(&w), 0);
	WAIT_FOR_S((before = seen_so_far(w)).moving > 0 && before.staying > 0, 60);
	fd = folder_of_threads();
	assert_true(fd >= 0);
	assert_int_equal(dup3(null, fd, O_CLOEXEC), fd);
	WAIT_FOR_S((now = seen_so_far(w)).staying >= before.staying + ENOUGH, 60);
	stop = true;
	assert_int_equal(write(never[1], "x", 1), 1);
	pthread_join(moving, NULL);
	pthread_join(staying, NULL);
	wall_window_cancel(w);
	assert_true(now.staying >= before.staying + ENOUGH);
	assert_in_range(now.moving - before.moving, (now.staying - before.staying) / 2, (now.staying - before.staying) * 3 / 2);
	assert_int_equal(close(fd), 0);
	close(null);
	close(never[0]);
	close(never[1]);
	unwind_stop();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(running_time_goes_to_the_threads_own_stacks_in_the_proportion_of_its_cpu_samples),
		cmocka_unit_test(any_part_of_the_threads_gives_the_whole_sum_and_the_right_shares),
		cmocka_unit_test(labels_are_those_of_the_look_or_where_a_thread_ran_of_its_cpu_samples),
		cmocka_unit_test(late_ticks_change_neither_the_sum_nor_the_shares),
		cmocka_unit_test(a_window_without_a_tick_is_a_valid_empty_profile),
		cmocka_unit_test(windows_overlap_and_a_cancelled_one_leaves_nothing),
		cmocka_unit_test(what_a_window_has_so_far_can_be_told_while_it_goes_on),
		cmocka_unit_test(a_child_pays_little_for_what_its_parent_measures),
		cmocka_unit_test(a_program_that_closes_every_descriptor_changes_no_shares_and_keeps_those_that_it_opens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
