/*
 * stop.c - componentctl stop ID|PID: SIGTERM to a process that has a record.
 *
 * What a stranger would get wrong: between the look at the record and the signal the process may end
 * and its number be another's.  So it is held by a pidfd first and looked at then; where the kernel
 * has none (before 5.3), by its number.
 *
 * Tests: tests/componentctl/list.t.
 */
#include <config.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "command.h"
#include "record.h"

#ifndef SYS_pidfd_open /* headers of before 5.3; the same number everywhere */
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif

static int
terminate(const struct record *r, struct component_error *err)
{
	struct record now;
	char          pid[24];
	int           fd = (int)syscall(SYS_pidfd_open, r->pid, 0), result = 0;

	snprintf(pid, sizeof(pid), "%ld", (long)r->pid);
	if (record_find(pid, &now, NULL)) {
		/* It has ended meanwhile, which was wanted. */
	} else if (fd >= 0 ? syscall(SYS_pidfd_send_signal, fd, SIGTERM, NULL, 0) : kill(r->pid, SIGTERM)) {
		result = errno == ESRCH ? 0 : -errno;
	}
	if (fd >= 0)
		close(fd);
	if (result)
		component_error_set(err, "process %ld (%s) cannot be stopped: %s", (long)r->pid, r->id, strerror(-result));
	return result;
}

static int
stop(char **operands, struct component_error *err)
{
	struct record r;
	int           result = record_find(operands[0], &r, err);

	if (result)
		return result;
	result = terminate(&r, err);
	if (!result)
		printf("app stopped successfully: %s\n", r.id);
	return result;
}

const struct command stop_command = {
	.name = "stop",
	.operands = "ID|PID",
	.summary = "Asks a program that has a record to end, by SIGTERM.",
	.least = 1,
	.most = 1,
	.run = stop,
};
