/*
 * witness.c - was a signal sent to this process alone, or to its whole process group?
 *
 *     kill -- -PGRP ──▶ componentctl run (signalfd) ── pending in the witness? ── yes: the program had it
 *                 ├──▶ program                                              └─ no: pass it on
 *                 └──▶ witness (blocked)
 *
 * What a stranger would get wrong: a signal comes to the processes of a group one after the other, and
 * systemd sends to each by itself.  So the answer "no" is checked for some time: a signal to this process
 * alone reaches the program that much later.  A witness that has seen a signal is replaced, since what is
 * pending there never goes away, unless a SIGTSTP or the like comes after a SIGCONT, or the other way round: the
 * later one takes the earlier away.  And the program may be continued alone (kill -CONT, cpulimit), which a
 * process that is stopped does not see: another one does.
 *
 * Tests: tests/componentctl/run.t.
 */
#include <config.h>

#include "witness.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proc_status.h"

#ifndef SYS_close_range
#define SYS_close_range 436 /* of every architecture */
#endif

#define LOOKS           10
#define LOOK_MS         2
#define STOPPED_LOOK_MS 50
#define FDS_MAX         1024 /* where the kernel has no close_range(2) */

/* So that who looks for componentctl by its name or its words (pkill -f) finds us alone. */
static void
become_nameless(void)
{
	char    words[4096];
	int     fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, words, sizeof(words));

	for (ssize_t i = 0; i < n; i++)
		program_invocation_name[i] = '\0';
	prctl(PR_SET_NAME, "component-group");
}

/* A child, 0 in it; or a negative errno.  It holds nothing open, or a reader of the program's output would wait for it. */
static pid_t
beside_us(void)
{
	pid_t    w = fork();
	sigset_t all;

	if (w)
		return w < 0 ? -errno : w;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	become_nameless();
	if (syscall(SYS_close_range, 0U, ~0U, 0U))
		for (int fd = 0; fd < FDS_MAX; fd++)
			close(fd);
	return 0;
}

static pid_t
begin(void)
{
	pid_t self = getpid(), w = beside_us();

	if (w)
		return w;
	while (getppid() == self)
		pause();
	_exit(0);
}

static void
end(pid_t w)
{
	if (w <= 0)
		return;
	kill(w, SIGKILL);
	waitpid(w, NULL, 0);
}

void
witness_begin(struct witness *w)
{
	*w = (struct witness){ .pid = begin() };
}

void
witness_ended(struct witness *w)
{
	waitpid(w->pid, NULL, 0);
	w->pid = 0;
}

void
witness_end(struct witness *w)
{
	end(w->pid);
	w->pid = 0;
}

static int
status_open(pid_t pid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static uint64_t
bit(int number)
{
	return 1ULL << (number - 1);
}

static uint64_t
pending(pid_t w)
{
	char value[PROC_STATUS_BYTES];

	return w > 0 && proc_status_find(status_open(w), "\nShdPnd:", value) ? strtoull(value, NULL, 16) : 0;
}

/* The new one first, so that there is always one. */
static void
replace(struct witness *w)
{
	pid_t old = w->pid;

	w->pid = begin();
	w->had |= pending(old);
	end(old);
}

static void
renew_without(struct witness *w, uint64_t signals)
{
	replace(w);
	w->had &= ~signals;
}

void
witness_renew(struct witness *w, int number)
{
	renew_without(w, bit(number));
}

/* What was pending in the old one was sent where that stood.  So was what came to the new one before it left our group. */
void
witness_stand(struct witness *w, bool apart)
{
	replace(w);
	if (apart && w->pid > 0 && !setpgid(w->pid, 0) && pending(w->pid))
		replace(w);
	w->had = 0;
}

/* The signals that take this one away where it is pending. */
static uint64_t
takers_of(int number)
{
	switch (number) {
	case SIGCONT:
		return bit(SIGTSTP) | bit(SIGTTIN) | bit(SIGTTOU);
	case SIGTSTP:
	case SIGTTIN:
	case SIGTTOU:
		return bit(SIGCONT);
	default:
		return 0;
	}
}

/* Those that this process has still to read. */
static uint64_t
of_us(void)
{
	sigset_t set;
	uint64_t all = 0;

	sigpending(&set);
	for (int number = 1; number <= 64; number++)
		all |= sigismember(&set, number) == 1 ? bit(number) : 0;
	return all;
}

bool
witness_had(struct witness *w, int number)
{
	w->had &= of_us() | bit(number);
	for (int i = 0; i < LOOKS && w->pid > 0; i++) {
		/* A taker that we have read, or that was taken from us, came before. */
		if ((w->had | pending(w->pid)) & (bit(number) | (takers_of(number) & of_us()))) {
			witness_renew(w, number);
			return true;
		}
		poll(NULL, 0, LOOK_MS);
	}
	if (number == SIGCONT)
		renew_without(w, takers_of(number)); /* of which none is to be read any more */
	return false;
}

static bool
is_stopped(pid_t pid)
{
	return proc_status_state(status_open(pid)) == 'T';
}

pid_t
witness_stop(pid_t program)
{
	pid_t self = getpid(), w = beside_us();

	if (w == 0) {
		while (getppid() == self && (!is_stopped(self) || is_stopped(program)))
			poll(NULL, 0, STOPPED_LOOK_MS);
		if (getppid() == self)
			kill(self, SIGCONT);
		_exit(0);
	}
	raise(SIGSTOP);
	end(w);
	return w;
}
