/*
 * forked_works.c - children that make no call which waits, but for read(): tests/componentctl/follow_forks.t.
 *
 *     computes   computes, and allocates between
 *     reads      waits in read() for bytes, and allocates for each
 *     handles    its handler reads and writes a pipe, and allocates what glibc has at hand without a lock; it
 *                interrupts malloc() and malloc_trim(); ten children, each for half a second
 *     filtered   polls where a filter allows little else, for 0.3 seconds; one child
 *     confined   reads, and allocates, where any other system call would be its end; one child, for 0.3 seconds
 *     brief      allocates for 15 ms and ends, or runs another program; thirty children
 *
 * The first two print the child's number and end with standard input.  The others print how many children came to their
 * end as they should, "brief" the most threads that were in one as well.
 */
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BLOCKS 4000

static int   ends[2];
static void *blocks[BLOCKS];

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t); /* in strict seccomp the others read what it denies */
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Global and by no other name: profiles have it. */
__attribute__((noinline)) double
child_computes(double x)
{
	for (int i = 0; i < 200000; i++)
		x = x * 0.9999999 + i;
	return x;
}

static void
computes(void)
{
	volatile double x = 1;

	for (;;) {
		void *volatile block = malloc(20000);

		x = child_computes(x);
		free(block);
	}
}

static void
reads(void)
{
	void *volatile block;
	char           byte;

	while (read(ends[0], &byte, 1) == 1) {
		block = malloc(1000);
		free(block);
	}
}

static void
serve(void (*work)(void))
{
	pid_t pid;

	if (pipe(ends) || (pid = fork()) < 0)
		exit(2);
	if (pid == 0) {
		close(ends[1]);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		work();
		_exit(0);
	}
	printf("%d\n", (int)pid);
	fflush(stdout);
	fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK);
	for (char byte; read(STDIN_FILENO, &byte, 1) != 0; usleep(5000))
		if (work == reads && write(ends[1], "", 1) != 1)
			exit(2);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void
on_alarm(int number)
{
	char           byte = (char)number;
	void *volatile block = malloc(100);

	free(block);
	if (write(ends[1], &byte, 1) != 1 || read(ends[0], &byte, 1) != 1)
		_exit(3);
}

/* Blocks between that are free give malloc_trim() something to do, with the lock of malloc() held. */
static void
handles(void)
{
	struct itimerval often = { { 0, 300 }, { 0, 300 } };
	double           until = now() + 0.5;
	void *volatile   at_hand = malloc(100);

	free(at_hand);
	signal(SIGALRM, on_alarm);
	setitimer(ITIMER_REAL, &often, NULL);
	while (now() < until) {
		for (int i = 0; i < BLOCKS; i++) {
			free(blocks[i]);
			blocks[i] = malloc(1500 + (size_t)(i * 7919 % 20000));
		}
		for (int i = 0; i < BLOCKS; i += 2) {
			free(blocks[i]);
			blocks[i] = NULL;
		}
		for (int i = 0; i < 20; i++)
			malloc_trim(0);
	}
	_exit(0);
}

/* It has its memory before: there is no brk() any more. */
static void
confined(void)
{
	double until = now() + 0.3;
	char   byte;

	free(malloc(1000));
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
		_exit(4);
	while (now() < until) {
		if (write(ends[1], "", 1) != 1 || read(ends[0], &byte, 1) != 1)
			syscall(SYS_exit, 5);
		free(malloc(1000));
	}
	syscall(SYS_exit, 0);
}

#define ALLOW(number) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static void
filtered(void)
{
	struct sock_filter all[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
#ifdef SYS_poll
		ALLOW(SYS_poll),
#endif
		ALLOW(SYS_ppoll),
		ALLOW(SYS_clock_gettime),
		ALLOW(SYS_exit_group),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL),
	};
	struct sock_fprog program = { sizeof(all) / sizeof(all[0]), all };
	double            until = now() + 0.3;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		_exit(4);
	while (now() < until)
		poll(NULL, 0, 5);
	_exit(0);
}

static int
threads(void)
{
	struct stat st;

	return stat("/proc/self/task", &st) ? 0 : (int)st.st_nlink - 2;
}

static void
brief(int i, int *most)
{
	double begin = now();
	int    seen;

	while (now() < begin + 0.015)
		free(malloc((size_t)i * 100 + 1));
	seen = threads();
	if (now() > begin + 0.09)
		return; /* it was kept from running: by now it lives */
	if (seen > *most)
		*most = seen;
	if (i % 2)
		execl("/bin/true", "true", (char *)NULL);
	exit(0);
}

static int
storm(int count, void (*work)(void))
{
	int  ended = 0, status;
	int *most = mmap(NULL, sizeof(*most), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	for (int i = 0; i < count; i++) {
		pid_t pid = pipe(ends) ? -1 : fork();

		if (pid < 0)
			return 2;
		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (work)
				work();
			brief(i, most);
			_exit(0);
		}
		close(ends[0]);
		close(ends[1]);
		ended += waitpid(pid, &status, 0) == pid && status == 0;
	}
	printf("%d children, %d ended\n", count, ended);
	if (!work)
		printf("%d threads\n", *most);
	return 0;
}

int
main(int argc, char **argv)
{
	const char *what = argc == 2 ? argv[1] : "";

	if (!strcmp(what, "computes"))
		serve(computes);
	else if (!strcmp(what, "reads"))
		serve(reads);
	else if (!strcmp(what, "handles"))
		return storm(10, handles);
	else if (!strcmp(what, "confined"))
		return storm(1, confined);
	else if (!strcmp(what, "filtered"))
		return storm(1, filtered);
	else
		return storm(30, NULL);
	return 0;
}
