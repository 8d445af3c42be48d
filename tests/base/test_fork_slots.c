/*
 * test_fork_slots.c - what is to be done around a fork is done by rank, inside of the program's own.
 */
#include <config.h>

#include "fork.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* What was called, in parent and child: a letter each. */
static struct said {
	pid_t at; /* the parent */
	char  parent[32], child[32];
} *said;

static void
say(char *text, char what)
{
	size_t n = strlen(text);

	if (n + 1 < sizeof(said->parent))
		text[n] = what;
	if (what != 'p' && what != 'P')
		errno = EDOM; /* which no caller of fork() may see */
}

#define SAYS(function, text, letter)            \
	static void                             \
	function(void)                          \
	{                                       \
		if (said)                       \
			say(said->text, letter); \
	}

SAYS(first_parent, parent, 'A')
SAYS(first_child, child, 'A')
SAYS(last_prepare, parent, 'c')
SAYS(last_parent, parent, 'C')
SAYS(child_only, child, 'B')
SAYS(program_prepare, parent, 'p')
SAYS(program_parent, parent, 'P')
SAYS(program_child, child, 'P')

/* A signal that comes meanwhile, whose handler says so. */
static void
on_signal(int number)
{
	uint64_t mask;

	(void)number;
	say(said->at == getpid() ? said->parent : said->child, fork_signals_mask(&mask) ? '!' : 's');
}

static void
first_prepare(void)
{
	if (!said)
		return;
	say(said->parent, 'a');
	raise(SIGUSR1);
}

static void
last_child(void)
{
	if (!said)
		return;
	say(said->child, 'C');
	raise(SIGUSR1);
}

/* Neither in the order of ranks. */
FORK_SLOT(FORK_CPU, last_prepare, last_parent, last_child);

static const struct fork_slot first = { FORK_LIFE, first_prepare, first_parent, first_child, &fork_linked };
static const struct fork_slot between = { FORK_HEAP, NULL, NULL, child_only, &fork_linked };
static const struct fork_slot *const listed[] __attribute__((used, section("component_fork"))) = { &first, &between };

/* As early as a program can. */
__attribute__((constructor(102))) static void
program_watches(void)
{
	pthread_atfork(program_prepare, program_parent, program_child);
}

static void
slots_are_called_by_rank_inside_of_the_programs_own_handlers_and_signals_wait_for_them(void **state)
{
	pid_t pid;
	int   status;

	(void)state;
	memset(said, 0, sizeof(*said));
	said->at = getpid();
	signal(SIGUSR1, on_signal);
	pid = fork();
	if (pid == 0)
		_exit(0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_string_equal(said->parent, "pacCAsP");
	assert_string_equal(said->child, "CBAsP");
}

static void
a_fork_leaves_errno_alone(void **state)
{
	pid_t pid;
	int   status;

	(void)state;
	errno = ENOTTY;
	pid = fork();
	if (pid == 0)
		_exit(errno != ENOTTY);
	assert_int_equal(errno, ENOTTY);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static int
set_up(void **state)
{
	(void)state;
	said = mmap(NULL, sizeof(*said), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return said == MAP_FAILED ? -1 : 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slots_are_called_by_rank_inside_of_the_programs_own_handlers_and_signals_wait_for_them),
		cmocka_unit_test(a_fork_leaves_errno_alone),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
