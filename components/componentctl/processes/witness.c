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
 * pending there never goes away.
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

#define LOOKS   10
#define LOOK_MS 2
#define FDS_MAX 1024 /* where the kernel has no close_range(2) */

/* It holds nothing open, or a reader of the program's output would wait for it. */
static _Noreturn void
witness(pid_t parent)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "componentctl-w");
	if (syscall(SYS_close_range, 0U, ~0U, 0U))
		for (int fd = 0; fd < FDS_MAX; fd++)
			close(fd);
	while (getppid() == parent)
		pause();
	_exit(0);
}

pid_t
witness_begin(void)
{
	pid_t self = getpid(), w = fork();

	if (w == 0)
		witness(self);
	return w < 0 ? -errno : w;
}

static bool
is_pending(pid_t w, int number)
{
	char path[32], value[PROC_STATUS_BYTES];

	snprintf(path, sizeof(path), "/proc/%d/status", (int)w);
	return proc_status_find(open(path, O_RDONLY | O_CLOEXEC), "\nShdPnd:", value) &&
	       strtoull(value, NULL, 16) >> (number - 1) & 1;
}

/* The new one first, so that there is always one. */
void
witness_renew(pid_t *w)
{
	pid_t old = *w;

	*w = witness_begin();
	witness_end(old);
}

bool
witness_had(pid_t *w, int number)
{
	for (int i = 0; i < LOOKS && *w > 0; i++) {
		if (is_pending(*w, number)) {
			witness_renew(w);
			return true;
		}
		poll(NULL, 0, LOOK_MS);
	}
	return false;
}

void
witness_end(pid_t w)
{
	if (w <= 0)
		return;
	kill(w, SIGKILL);
	waitpid(w, NULL, 0);
}
