/* main_ends.c - ways in which a program ends (tests/componentctl/ends_meanwhile.t).
 *
 *     main_ends              the first thread by pthread_exit(), and it was the only one
 *     main_ends thrd_exit    the same by thrd_exit()
 *     main_ends cancelled    the same by being cancelled
 *     main_ends forks        by a return; so ends the child of another thread, which returns when standard input ends
 *     main_ends forks_on     the same of a child whose first thread returns at once, another when standard input ends
 *     main_ends worker       with another thread, which ends when standard input does
 *     main_ends stacks       by a return, when a line has come and 4096 stacks have allocated
 *     main_ends filtered     by exit(), where only write(2), futex(2) and exit_group(2) are allowed */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>

#define ALLOW(number) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static void
at_end(void)
{
	printf(" at the end");
}

static void *
work(void *arg)
{
	char byte;

	printf("worked");
	while (read(0, &byte, 1) > 0)
		;
	return arg;
}

static void *
wait_for_input(void *arg)
{
	struct pollfd in = { .fd = 0, .events = POLLIN };

	while (poll(&in, 1, 10) == 0)
		;
	return arg;
}

static void *
fork_one(void *arg)
{
	pid_t     pid = fork();
	int       status;
	pthread_t t;

	if (pid == 0 && arg)
		return pthread_create(&t, NULL, wait_for_input, NULL) ? arg : NULL;
	if (pid == 0)
		return wait_for_input(arg);
	if (waitpid(pid, &status, 0) != pid || status)
		_exit(1);
	printf("child ended");
	return arg;
}

static void *volatile    kept;
static volatile unsigned calls; /* so that no call is the last thing that a function does */

static void zero(unsigned path, int left);
static void one(unsigned path, int left);

static void
step(unsigned path, int left)
{
	if (left == 0) {
		kept = malloc(4 << 20);
		free(kept);
	} else if (path & 1) {
		one(path >> 1, left - 1);
	} else {
		zero(path >> 1, left - 1);
	}
	calls++;
}

static void __attribute__((noinline))
zero(unsigned path, int left)
{
	step(path, left);
	calls++;
}

static void __attribute__((noinline))
one(unsigned path, int left)
{
	step(path, left);
	calls++;
}

static int
stacks(void)
{
	char line[16];

	if (!fgets(line, sizeof(line), stdin))
		return 1;
	for (unsigned path = 0; path < 1 << 12; path++)
		step(path, 12);
	return 0;
}

static void
filter(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		ALLOW(SYS_write), ALLOW(SYS_futex), ALLOW(SYS_exit_group),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		_exit(77);
}

int
main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	pthread_t   t;

	atexit(at_end);
	if (strcmp(how, "filtered") == 0) {
		printf("filtered");
		fflush(stdout);
		filter();
		return 0;
	}
	if (strcmp(how, "stacks") == 0)
		return stacks();
	if (strcmp(how, "forks") == 0 || strcmp(how, "forks_on") == 0)
		return pthread_create(&t, NULL, fork_one, how[5] ? argv : NULL) || pthread_join(t, NULL);
	if (strcmp(how, "worker") == 0 && pthread_create(&t, NULL, work, argv))
		return 1;
	if (strcmp(how, "thrd_exit") == 0)
		thrd_exit(0);
	if (strcmp(how, "cancelled") == 0) {
		pthread_cancel(pthread_self());
		pause();
	}
	pthread_exit(NULL);
}
