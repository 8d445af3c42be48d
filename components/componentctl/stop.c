/*
 * stop.c - componentctl stop ID|PID: SIGTERM to a process that has a record.
 *
 * Tests: tests/componentctl/list.t.
 */
#include <config.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "records.h"

static int
stop(char **operands, struct component_error *err)
{
	struct record r;
	int           result = record_find(operands[0], &r, err);

	if (result)
		return result;
	result = records_signal(&r, SIGTERM);
	if (result && result != -ESRCH) { /* gone is what was wanted */
		component_error_set(err, "process %ld (%s) cannot be stopped: %s", (long)r.pid, r.id, strerror(-result));
		return result;
	}
	printf("app stopped successfully: %s\n", r.id);
	return 0;
}

const struct command stop_command = {
	.name = "stop",
	.operands = "ID|PID",
	.summary = "Asks a program that has a record to end, by SIGTERM.",
	.least = 1,
	.most = 1,
	.run = stop,
};
