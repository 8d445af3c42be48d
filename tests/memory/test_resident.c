/* What glibc's malloc says of itself may not fit together; the table of it does: profiler/collect/resident/. */
#include <config.h>

#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "resident/allocator.h"
#include "resident/resident.h"
#include "seccomp.h"
#include "skip.h"

static const char *_Atomic said = "";
static atomic_bool         stand, stands; /* its thread stands in there */

/* In the place of glibc's. */
int
malloc_info(int options, FILE *stream)
{
	const char *all = said;
	size_t      half = strlen(all) / 2;

	if (fwrite(all, 1, half, stream) != half)
		return -1;
	if (atomic_exchange(&stand, false)) {
		atomic_store(&stands, true);
		while (atomic_load(&stands))
			sched_yield();
	}
	return fputs(all + half, stream) < 0 ? -1 : options;
}

#define HEAP(nr, free, system)                                                            \
	"<heap nr=\"" #nr "\">\n<sizes>\n</sizes>\n<total type=\"fast\" count=\"0\" size=\"0\"/>\n" \
	"<total type=\"rest\" count=\"1\" size=\"" #free "\"/>\n<system type=\"current\" size=\"" #system "\"/>\n</heap>\n"

static struct residence_row
row_of(const struct residence *t, const char *name)
{
	for (size_t i = 0; i < t->count; i++)
		if (!strcmp(t->rows[i].name, name))
			return t->rows[i];
	fail_msg("no row %s", name);
	return (struct residence_row){ 0 };
}

static void
read_it(struct residence *ret)
{
	assert_int_equal(resident_read(ret), 0);
	if (strcmp(ret->allocator, "glibc") == 0)
		return;
	residence_release(ret);
	SKIP("malloc is not glibc's here");
}

static void
what_is_in_use_is_never_below_nothing(void **state)
{
	struct residence       t;
	struct profile_process p = { 0 };

	(void)state;
	said = HEAP(0, 90000000, 50000000) HEAP(1, 7000, 5000) "<total type=\"mmap\" count=\"0\" size=\"0\"/>\n";
	read_it(&t);
	assert_int_equal(row_of(&t, "main arena").in_use, 0);
	assert_int_equal(row_of(&t, "main arena").free, 90000000);
	assert_int_equal(residence_sum(&t, RESIDENCE_HEAP).in_use, 0);
	residence_release(&t);
	resident_process(&p);
	assert_true(p.known);
	assert_true(p.heap >= p.heap_free && p.heap_free >= p.heap_released && p.heap_released >= 0);
}

/* Of so many: threads one after the other share theirs. */
static void
arenas_that_are_not_found_have_their_part_in_the_sum(void **state)
{
	struct residence     t;
	struct residence_row heap;

	(void)state;
	said = HEAP(0, 1000, 5000) HEAP(1, 2000, 9000) HEAP(2, 2000, 9000) HEAP(3, 2000, 9000) HEAP(4, 7000, 7000)
		"<total type=\"mmap\" count=\"0\" size=\"0\"/>\n";
	read_it(&t);
	heap = residence_sum(&t, RESIDENCE_HEAP);
	assert_int_equal(heap.in_use, 4000 + 3 * 7000);
	assert_int_equal(heap.free, 1000 + 3 * 2000 + 7000);
	residence_release(&t);
}

/* ---- threads that are not counted ---- */

static bool
filter_nothing(void)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog  all = { .len = 1, .filter = &allow };

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all);
}

static bool
has_word(const char *const *list, const char *word)
{
	for (; *list; list++)
		if (strstr(*list, word))
			return true;
	return false;
}

static void
no_advice_compares_arenas_with_threads_that_were_not_counted(void **state)
{
	struct residence t;
	pid_t            child;
	int              status;

	(void)state;
	said = HEAP(0, 90000000, 95000000) HEAP(1, 1, 2) HEAP(2, 1, 2) HEAP(3, 1, 2) HEAP(4, 1, 2) HEAP(5, 1, 2) HEAP(6, 1, 2)
		"<total type=\"mmap\" count=\"0\" size=\"0\"/>\n";
	read_it(&t);
	assert_true(has_word(t.advice, "7 arenas for "));
	residence_release(&t);
	seccomp_look();
	child = fork();
	if (child == 0) {
		if (!filter_nothing())
			_exit(77);
		_exit(resident_read(&t) || !has_word(t.notes, "seccomp") || has_word(t.advice, "arenas"));
	}
	waitpid(child, &status, 0);
	if (status == 77 << 8)
		SKIP("no seccomp filter is to be had here");
	assert_int_equal(status, 0);
}

/* ---- a reading is left behind ---- */

static void
a_child_asks_anew_while_its_parent_waits_for_an_answer(void **state)
{
	struct residence t;
	pid_t            child;
	int              status;
	const char      *answer = HEAP(0, 1000, 5000) "<total type=\"mmap\" count=\"0\" size=\"0\"/>\n";

	(void)state;
	said = answer;
	read_it(&t);
	residence_release(&t);
	atomic_store(&stand, true);
	read_it(&t);
	assert_true(t.left_behind);
	residence_release(&t);
	read_it(&t); /* and nobody else is asked */
	assert_true(t.left_behind);
	residence_release(&t);
	child = fork();
	if (child == 0) {
		atomic_store(&stands, false);
		_exit(resident_read(&t) || t.left_behind || row_of(&t, "main arena").in_use != 4000);
	}
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
	atomic_store(&stands, false);
	do {
		read_it(&t);
		status = t.left_behind;
		residence_release(&t);
	} while (status);
}

static void *
flush_all(void *arg)
{
	while (!atomic_load(&stands))
		sched_yield();
	fflush(NULL);
	atomic_store(&stands, false);
	return arg;
}

static void
a_program_that_flushes_all_streams_meanwhile_takes_nothing_away(void **state)
{
	struct residence t;
	pthread_t        thread;

	(void)state;
	said = HEAP(0, 1000, 5000) HEAP(1, 2000, 9000) "<total type=\"mmap\" count=\"1\" size=\"77\"/>\n";
	atomic_store(&stand, true);
	assert_int_equal(pthread_create(&thread, NULL, flush_all, NULL), 0);
	read_it(&t);
	pthread_join(thread, NULL);
	if (!t.left_behind) /* as on a machine that is very busy */
		assert_int_equal(row_of(&t, "main arena").in_use, 4000);
	residence_release(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_in_use_is_never_below_nothing),
		cmocka_unit_test(arenas_that_are_not_found_have_their_part_in_the_sum),
		cmocka_unit_test(no_advice_compares_arenas_with_threads_that_were_not_counted),
		cmocka_unit_test(a_program_that_flushes_all_streams_meanwhile_takes_nothing_away),
		cmocka_unit_test(a_child_asks_anew_while_its_parent_waits_for_an_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
