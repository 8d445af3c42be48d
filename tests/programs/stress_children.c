/*
 * stress_children.c - processes: fork, _Fork, the bare system call, vfork and exec,
 * posix_spawn.  A forked child allocates, looks for descriptors that are not the
 * program's, and ends by _exit() or exit().
 *
 * What a stranger would get wrong: after _Fork() and the bare call, in a process of
 * many threads, the C library's own locks stand as they stood, so there the child
 * may do nothing but what is safe in a signal handler.  vfork's child shares our
 * memory and does even less.  And exit() in a child waits for ever where another
 * thread was in dlopen() or dlclose() when it was forked: glibc leaves the lock of
 * its exit handlers as it stood.  A sanitizer does so with the lock of its malloc.
 */
#include "stress.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define FDS_MAX       256
#define CHILD_SECONDS 150 /* alarm(2): a child that hangs ends by it, and is counted */

#ifdef STRESS_SANITIZED
#define MAY_EXIT false
#else
#define MAY_EXIT true
#endif

static char *const plain_environment[] = { (char *)"PATH=/usr/bin:/bin", NULL };
static char *const true_words[] = { (char *)"true", NULL };

static void
reap(pid_t pid, const char *what)
{
	int   status = 0;
	pid_t got;

	if (pid < 0) {
		if (errno != EAGAIN && errno != ENOMEM)
			stress_wrong("%s: %s", what, strerror(errno));
		return;
	}
	got = waitpid(pid, &status, 0); /* SA_RESTART covers it */
	if (got != pid)
		stress_wrong("waitpid after %s: %s", what, strerror(errno));
	else if (WIFSIGNALED(status))
		stress_wrong("a child of %s ended by signal %d", what, WTERMSIG(status));
	else if (status != 0)
		stress_wrong("a child of %s ended with %d", what, WEXITSTATUS(status));
}

/* The program itself opens pipes, plugins and what the loader reads; it may have been
 * given a device. */
static bool
is_ours(const char *target)
{
	return strncmp(target, "pipe:", 5) == 0 || strncmp(target, "/dev/", 5) == 0 || strncmp(target, stress_dir, strlen(stress_dir)) == 0 ||
		strcmp(target, "/etc/ld.so.cache") == 0;
}

/* glibc's malloc counts the processors when it has several arenas.  The profiler reads the same file
 * for a trace, but opens with its mark. */
static bool
is_mallocs(int fd, const char *target)
{
	return strcmp(target, "/sys/devices/system/cpu/online") == 0 && !(fcntl(fd, F_GETFL) & O_APPEND);
}

static void
descriptors_check(void)
{
	char    target[512], path[64], line[640];
	int     fd;
	ssize_t n;

	/* Not opendir(3): in this child a sanitizer's malloc is out of bounds. */
	for (fd = 3; fd < FDS_MAX; fd++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, target, sizeof(target) - 1);
		if (n < 0)
			continue;
		target[n] = '\0';
		if (is_ours(target) || is_mallocs(fd, target))
			continue;
		snprintf(line, sizeof(line), "a forked child holds descriptor %d, %s", fd, target);
		stress_wrong_raw(line);
		_exit(4);
	}
}

void
stress_fork(uint64_t *random)
{
	bool  by_exit = MAY_EXIT && stress_random(random) % 4 == 0;
	pid_t pid;

	stress_burn_us(300);
	if (by_exit)
		pthread_rwlock_wrlock(&stress_loading);
	pid = fork();
	if (by_exit && pid != 0)
		pthread_rwlock_unlock(&stress_loading);
	if (pid == 0) {
		alarm(CHILD_SECONDS);
#ifndef STRESS_SANITIZED
		for (int i = 0; i < 5; i++)
			stress_blocks_few(random);
#endif
		descriptors_check();
		stress_burn_us(500);
		if (by_exit)
			exit(0);
		_exit(0);
	}
	reap(pid, "fork");
}

static pid_t
fork_raw(uint64_t *random)
{
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34) && !defined(STRESS_SANITIZED)
	if (stress_random(random) % 2)
		return _Fork();
#else
	(void)random;
#endif
#ifdef STRESS_SANITIZED
	return fork();
#elif defined(__aarch64__)
	return (pid_t)syscall(SYS_clone, (unsigned long)SIGCHLD, 0, 0, 0, 0);
#else
	return (pid_t)syscall(SYS_fork);
#endif
}

void
stress_fork_raw(uint64_t *random)
{
	uintptr_t         profiler[4] = { 0 }; /* the kernel's: sigaction() says SIG_DFL of ours */
	volatile unsigned spin = 0;
	pid_t             pid;

	stress_burn_us(300);
	pid = fork_raw(random);
	if (pid == 0) {
		alarm(CHILD_SECONDS);
		for (int i = 0; i < 500000; i++)
			spin += (unsigned)i;
		if (syscall(SYS_rt_sigaction, SIGPROF, NULL, profiler, sizeof(uint64_t)) == 0 && profiler[0])
			raise(SIGPROF); /* none of our timers': must touch nothing */
		_exit(0);
	}
	reap(pid, "_Fork or the bare call");
}

void
stress_vfork(uint64_t *random)
{
	pid_t pid;

	stress_blocks_few(random);
	pid = vfork();
	if (pid == 0) {
		execve("/bin/true", true_words, plain_environment);
		_exit(127);
	}
	reap(pid, "vfork");
}

void
stress_spawn(uint64_t *random)
{
	pid_t pid = -1;
	int   err;

	stress_blocks_few(random);
	err = posix_spawn(&pid, "/bin/true", NULL, NULL, true_words, plain_environment);
	if (err) {
		errno = err;
		pid = -1;
	}
	reap(pid, "posix_spawn");
}
