/*
 * odd_threads.c - threads that a profiler may take for what they are not: tests/whole/odd_threads.t.
 *
 *     odd_threads plain|main-ends|uring|filtered|closes
 *
 * Prints "url URL", then works until its stdin ends, and then "fine N": calls of epoll_wait()
 * that ended with EINTR.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <component/profiler.h>

static atomic_bool     stop;
static atomic_uint     interrupted;
static pthread_mutex_t contended = PTHREAD_MUTEX_INITIALIZER;
static int             polled;
static bool            filtered;

static void *
burn_here(void *arg)
{
	volatile unsigned spin = 0;

	while (!atomic_load(&stop))
		spin++;
	return arg;
}

/* Without an end: whoever goes in and out may be met on the way, and is asked by a signal. */
static void *
wait_here(void *arg)
{
	struct epoll_event e;

	while (!atomic_load(&stop))
		if (epoll_wait(polled, &e, 1, -1) < 0 && errno == EINTR)
			atomic_fetch_add(&interrupted, 1);
	return arg;
}

static void *
wait_for_the_end(void *arg)
{
	char byte;

	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	atomic_store(&stop, true);
	if (filtered && component_profiler_stop())
		abort();
	printf("fine %u\n", atomic_load(&interrupted));
	exit(0);
	return arg;
}

static void
fail(const char *what)
{
	printf("cannot %s: %s\n", what, strerror(errno));
	exit(77);
}

/* What glibc needs for threads, memory, locks and standard input; every other call ends the process. */
static const int allowed[] = {
	SYS_clone, SYS_clone3, SYS_futex, SYS_mmap, SYS_munmap, SYS_mremap, SYS_mprotect, SYS_madvise, SYS_rseq,
	SYS_set_robust_list, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_exit, SYS_exit_group, SYS_read, SYS_write,
	SYS_close, SYS_fstat, SYS_brk, SYS_clock_gettime, SYS_restart_syscall,
};
#define ALLOWED (sizeof(allowed) / sizeof(allowed[0]))

static void
filter(void)
{
	struct sock_filter code[ALLOWED + 3];
	struct sock_fprog  program = { .filter = code, .len = ALLOWED + 3 };
	size_t             n = 0;

	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < ALLOWED; i++)
		code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)allowed[i],
			(unsigned char)(ALLOWED - i), 0);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		fail("filter system calls");
}

/* A short life with memory, a lock that somebody has, and some time of a processor. */
static void *
live_here(void *arg)
{
	volatile unsigned spin = 0;
	void             *memory = malloc(20000);

	pthread_mutex_lock(&contended);
	for (unsigned i = 0; i < 2000000; i++)
		spin++;
	pthread_mutex_unlock(&contended);
	free(memory);
	return arg;
}

static void *
under_a_filter(void *arg)
{
	pthread_t t[4], burning;

	if (pthread_create(&burning, NULL, burn_here, NULL))
		abort();
	while (!atomic_load(&stop)) {
		for (int i = 0; i < 4; i++)
			if (pthread_create(&t[i], NULL, live_here, NULL))
				abort();
		for (int i = 0; i < 4; i++)
			pthread_join(t[i], NULL);
	}
	return arg;
}

static void
uring(void)
{
	struct io_uring_params p = { .flags = IORING_SETUP_SQPOLL, .sq_thread_idle = 10 };

	if (syscall(SYS_io_uring_setup, 8, &p) < 0)
		fail("make an io_uring");
}

/* What daemons do at start: close all that was inherited, open their own, change their user,
 * which interrupts every thread; then serve.  Prints "port PORT". */
static void *
closes(void *arg)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct epoll_event e = { .events = EPOLLIN | EPOLLET };
	socklen_t          size = sizeof(at);
	int                s, epoll, c;

	for (int fd = 3; fd < 1024; fd++)
		close(fd);
	s = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (bind(s, (struct sockaddr *)&at, sizeof(at)) || listen(s, 64) || getsockname(s, (struct sockaddr *)&at, &size))
		abort();
	if (open("/dev/null", O_WRONLY) < 0) /* its log */
		abort();
	epoll = epoll_create1(EPOLL_CLOEXEC);
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, s, &e) || setuid(getuid()))
		abort();
	printf("port %d\n", ntohs(at.sin_port));
	while (epoll_wait(epoll, &e, 1, -1) == 1 || errno == EINTR)
		while ((c = accept(s, NULL, NULL)) >= 0) {
			if (write(c, "program\n", 8) != 8)
				abort();
			close(c);
		}
	abort();
	return arg;
}

int
main(int argc, char **argv)
{
	struct component_profiler_options options = COMPONENT_PROFILER_OPTIONS_INIT;
	char                              url[600];
	const char                       *how = argc > 1 ? argv[1] : "plain";
	pthread_t                         t;

	setvbuf(stdout, NULL, _IONBF, 0);
	mallopt(M_ARENA_MAX, 1); /* another one asks how many processors there are */
	options.address = "127.0.0.1:0";
	options.heap_rate_bytes = 4096;
	options.mutex_fraction = options.block_rate_ns = 1;
	if (component_profiler_start_options(&options, NULL))
		return 3;
	component_profiler_url(url, sizeof(url));
	printf("url %s\n", url);
	if (strcmp(how, "closes") == 0) {
		pthread_create(&t, NULL, closes, NULL);
		wait_for_the_end(NULL);
	}
	polled = epoll_create1(EPOLL_CLOEXEC);
	if (strcmp(how, "uring") == 0)
		uring();
	filtered = strcmp(how, "filtered") == 0;
	if (filtered)
		filter();
	if (pthread_create(&t, NULL, filtered ? under_a_filter : burn_here, NULL) ||
		(!filtered && pthread_create(&t, NULL, wait_here, NULL)))
		return 4;
	if (strcmp(how, "main-ends") == 0) {
		pthread_create(&t, NULL, wait_for_the_end, NULL);
		pthread_exit(NULL);
	}
	wait_for_the_end(NULL);
}
