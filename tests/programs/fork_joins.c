/*
 * fork_joins.c - a library with a thread that is not to be there while somebody forks, as OpenBLAS' are not, and a program
 * that is linked with it: tests/base/fork_handlers.t.
 *
 *     LIBRARY    its fork handlers end the thread and wait for its end, and make it again, in parent and child,
 *                and wait until it runs; the parent's also has SIGUSR2 sent to it, whose handler forks
 *     else       fork_joins FORKS: prints "ready", reads a line, forks so often, and prints how many children failed, and
 *                how many of those threads had SIGUSR1 blocked
 */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Of all until now, the one of now included; it is made anew. */
int library_blocked(void);
/* The handler is at work. */
extern volatile sig_atomic_t library_nested;

#ifdef LIBRARY
volatile sig_atomic_t library_nested = 1;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t  changed = PTHREAD_COND_INITIALIZER;
static pthread_t       thread;
static bool            runs, over;
static int             blocked;

static void *
run(void *arg)
{
	sigset_t mask;

	pthread_sigmask(SIG_BLOCK, NULL, &mask);
	pthread_mutex_lock(&lock);
	blocked += sigismember(&mask, SIGUSR1);
	runs = true;
	pthread_cond_broadcast(&changed);
	while (!over)
		pthread_cond_wait(&changed, &lock);
	runs = false;
	pthread_mutex_unlock(&lock);
	return arg;
}

static void
begin(void)
{
	over = false;
	if (pthread_create(&thread, NULL, run, NULL))
		abort();
	pthread_mutex_lock(&lock);
	while (!runs)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

static void
begin_in_parent(void)
{
	begin();
	if (!library_nested)
		raise(SIGUSR2);
}

static void
begin_in_child(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* where it hangs: no other signal would end it */
	begin();
}

static void
end(void)
{
	pthread_mutex_lock(&lock);
	over = true;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	pthread_join(thread, NULL);
}

__attribute__((constructor)) static void
library_begin(void)
{
	begin();
	pthread_atfork(end, begin_in_parent, begin_in_child);
}

int
library_blocked(void)
{
	end();
	begin();
	return blocked;
}
#else
static int nested, failed;

static void
fork_once(int number)
{
	pid_t pid;
	int   status;

	(void)number;
	library_nested = 1;
	pid = fork();
	if (pid == 0)
		_exit(0);
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		failed++;
	nested++;
	library_nested = 0;
}

int
main(int argc, char **argv)
{
	int  status;
	char line[16];

	puts("ready");
	fflush(stdout);
	if (argc != 2 || !fgets(line, sizeof(line), stdin))
		return 2;
	signal(SIGUSR2, fork_once);
	library_nested = 0;
	for (int i = 0; i < atoi(argv[1]); i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(library_blocked() != 0);
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
			failed++;
	}
	printf("%d failed, %d blocked, %d in handlers\n", failed, library_blocked(), nested);
	return failed != 0;
}
#endif
