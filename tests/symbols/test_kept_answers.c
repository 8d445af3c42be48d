/*
 * test_kept_answers.c - answers about addresses that stay from one request to the next.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "symbols_state.h"

#define MAPS_GROWTH (64 << 10) /* bytes: the text of /proc/self/maps, which grows with the heap */
#define LIMIT ((size_t)64 << 20)
#define COUNT 600 /* addresses of each place */

static int __attribute__((noinline))
inner(int n)
{
	return n * 3 + (int)getpid();
}

static inline __attribute__((always_inline)) int
inlined(int n)
{
	return inner(n) + inner(n + 1);
}

int outer(int n);

int __attribute__((noinline))
outer(int n)
{
	return inlined(n) + 1;
}

static uintptr_t pcs[2 * COUNT];

/* Code of the test itself, which has lines, and of libc. */
static int
pcs_fill(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT; i++) {
		pcs[2 * i] = (uintptr_t)outer + i % 64;
		pcs[2 * i + 1] = (uintptr_t)strtoul + i * 32;
	}
	return 0;
}

static int
forget(void **state)
{
	(void)state;
	symbols_keep(0);
	return 0;
}

static struct symbols *
request(bool lines)
{
	struct symbols *s = NULL;

	assert_int_equal(symbols_open(LIMIT, &s), 0);
	if (lines)
		symbols_resolve(s, pcs, 2 * COUNT);
	return s;
}

/* All frames of all addresses, as text. */
static char *
answers(struct symbols *s)
{
	struct symbol_frame frames[SYMBOLS_FRAMES_MAX];
	char               *text = NULL;
	size_t              size = 0;
	FILE               *f = open_memstream(&text, &size);

	assert_non_null(f);
	for (size_t i = 0; i < 2 * COUNT; i++) {
		unsigned n = symbols_frames(s, pcs[i], frames, SYMBOLS_FRAMES_MAX);

		fprintf(f, "%zu:", i);
		for (unsigned k = 0; k < n; k++)
			fprintf(f, " %s|%s|%s:%d:%d+%llu %s %d", frames[k].name, frames[k].system_name,
				frames[k].file ? frames[k].file : "?", frames[k].line, frames[k].start_line,
				(unsigned long long)frames[k].offset, frames[k].object, frames[k].named);
		fputc('\n', f);
	}
	assert_int_equal(fclose(f), 0);
	return text;
}

static char *
ask(bool lines, size_t *ret_bytes)
{
	struct symbols *s = request(lines);
	char           *text = answers(s);

	if (ret_bytes)
		*ret_bytes = s->budget.used;
	symbols_close(s);
	return text;
}

/* 0 under a sanitizer, which keeps what was freed. */
static long
virtual_kb(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	return 0;
#else
	FILE *f = fopen("/proc/self/statm", "re");
	long  pages = 0;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%ld", &pages), 1);
	fclose(f);
	return pages * 4;
#endif
}

static void
the_second_request_answers_the_same_and_reads_no_file(void **state)
{
	size_t bytes[3];
	char  *plain = ask(true, NULL), *first, *second, *third;

	(void)state;
	assert_non_null(strstr(plain, "inlined|"));
	assert_non_null(strstr(plain, "test_kept_answers.c:"));
	symbols_keep(LIMIT);
	first = ask(true, &bytes[0]);
	second = ask(true, &bytes[1]);
	third = ask(true, &bytes[2]);
	assert_string_equal(first, plain);
	assert_string_equal(second, plain);
	assert_string_equal(third, plain);
	print_message("# %zu bytes, then %zu and %zu\n", bytes[0], bytes[1], bytes[2]);
	assert_true(bytes[1] < bytes[0] / 2); /* no table was built */
	assert_true(bytes[2] <= bytes[1] + MAPS_GROWTH);
	free(plain);
	free(first);
	free(second);
	free(third);
}

static void
answers_without_lines_are_not_given_to_who_wants_lines(void **state)
{
	char *with = ask(true, NULL), *without = ask(false, NULL), *got;

	(void)state;
	assert_string_not_equal(with, without);
	symbols_keep(LIMIT);
	got = ask(false, NULL);
	assert_string_equal(got, without);
	free(got);
	got = ask(true, NULL);
	assert_string_equal(got, with);
	free(got);
	got = ask(false, NULL);
	assert_string_equal(got, with); /* lines that are known do no harm */
	free(got);
	free(with);
	free(without);
}

static void
what_does_not_fit_is_asked_again_and_right(void **state)
{
	char *plain = ask(true, NULL), *got;
	long  before;

	(void)state;
	for (size_t limit = 64 << 10; limit <= 8 << 20; limit *= 4) {
		symbols_keep(limit);
		before = virtual_kb();
		for (int i = 0; i < 4; i++) {
			got = ask(true, NULL);
			assert_string_equal(got, plain);
			free(got);
		}
		/* A sixteenth stays, and what the test's own malloc has grown by. */
		assert_true(virtual_kb() - before <= (long)(limit / 16 >> 10) + 1024);
	}
	free(plain);
}

static void
forgetting_gives_all_of_it_back_even_while_a_request_runs(void **state)
{
	struct symbols *s;
	char           *before, *after, *plain = ask(true, NULL);
	long            kb;

	(void)state;
	free(ask(true, NULL));
	kb = virtual_kb();
	symbols_keep(LIMIT);
	free(ask(true, NULL));
	s = request(true);
	before = answers(s);
	symbols_keep(0);
	after = answers(s);
	assert_string_equal(before, plain);
	assert_string_equal(after, plain);
	symbols_close(s);
	assert_true(virtual_kb() - kb <= 512); /* malloc's own */
	free(before);
	free(after);
	free(plain);
}

static atomic_bool wrong;

static void *
ask_often(void *plain)
{
	for (int i = 0; i < 20; i++) {
		char *got = ask(true, NULL);

		if (strcmp(got, plain) != 0)
			wrong = true;
		free(got);
	}
	return NULL;
}

static void
requests_at_once_share_them(void **state)
{
	char     *plain = ask(true, NULL);
	pthread_t threads[3];

	(void)state;
	wrong = false;
	symbols_keep(LIMIT);
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, ask_often, plain), 0);
	for (int i = 0; i < 50; i++)
		symbols_keep(i & 1 ? LIMIT : (size_t)1 << 20);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	assert_false(wrong);
	free(plain);
}

static void
a_child_of_a_fork_has_them_too(void **state)
{
	char *plain = ask(true, NULL);
	int   status = -1;
	pid_t pid;

	(void)state;
	symbols_keep(LIMIT);
	free(ask(true, NULL));
	pid = fork();
	if (pid == 0) {
		char *got = ask(true, NULL);

		_exit(strcmp(got, plain) == 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	free(plain);
}

#define UNIT(f) cmocka_unit_test_setup_teardown(f, pcs_fill, forget)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(the_second_request_answers_the_same_and_reads_no_file),
		UNIT(answers_without_lines_are_not_given_to_who_wants_lines),
		UNIT(what_does_not_fit_is_asked_again_and_right),
		UNIT(forgetting_gives_all_of_it_back_even_while_a_request_runs),
		UNIT(requests_at_once_share_them),
		UNIT(a_child_of_a_fork_has_them_too),
	};

	return cmocka_run_group_tests_name("kept", tests, NULL, NULL);
}
