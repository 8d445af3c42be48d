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

static const char *app_id = "";

static int
stop(char **operands, struct component_error *err)
{
	struct record r;
	const char   *who = *app_id ? app_id : operands[0];
	int           result;

	if (!who || (*app_id && operands[0])) {
		component_error_set(err, "%s; write componentctl stop ID|PID", who ? "an operand beside --app-id" : "no operand is given");
		return -EINVAL;
	}
	result = record_find(who, &r, err);
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

static const struct component_flag flags[] = {
	COMPONENT_FLAG_STRING("app-id", &app_id, "The same as the operand, as Dapr's own command has it.", .section = "Stop", .letter = 'a'),
	COMPONENT_FLAG_END
};

const struct command stop_command = {
	.name = "stop",
	.operands = "ID|PID",
	.summary = "Asks a program that has a record to end, by SIGTERM.",
	.most = 1,
	.flags = flags,
	.run = stop,
};
