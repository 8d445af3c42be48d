/*
 * stop.c - componentctl stop ID|PID: SIGTERM to a process that has a record, and waits for its end.
 *
 *     stop ── TERM ──▶ componentctl run, if that has started it ── TERM, KILL after its grace period ──▶ process
 *      └───── TERM ──▶ else, such as a child of --follow-forks ───────────────────────────────────────────┘
 *
 * What a stranger would get wrong: where run is process 1 of a container, it is the parent of each daemon there.
 *
 * Tests: tests/componentctl/list.t, tests/componentctl/run.t.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <component/duration.h>

#include "clock.h"
#include "command.h"
#include "end_windows.h"
#include "proc_status.h"
#include "records.h"

#define END_NS  COMPONENT_SECONDS(60) /* more than the grace period that run has if it is not told */
#define LOOK_MS 10

static const char *app_id = "";

/* The name without folders of the file that exe leads to, also after its removal; "": it cannot be read. */
static void
name_of(const char *exe, char *ret, size_t size)
{
	ssize_t     n = readlink(exe, ret, size - 1);
	const char *name;
	char       *deleted;

	ret[n > 0 ? n : 0] = '\0';
	name = strrchr(ret, '/');
	if (name)
		memmove(ret, name + 1, strlen(name));
	deleted = strstr(ret, " (deleted)");
	if (deleted)
		*deleted = '\0';
}

/* By its name, or that of our own file: since it was started its file may have been replaced by an upgrade. */
static bool
is_componentctl(long pid)
{
	char path[32], name[PATH_MAX], own[PATH_MAX];

	snprintf(path, sizeof(path), "/proc/%ld/exe", pid);
	name_of(path, name, sizeof(name));
	name_of("/proc/self/exe", own, sizeof(own));
	return *name && (!strcmp(name, own) || !strcmp(name, "componentctl"));
}

/* The oldest child that it has now; 0: none, or the kernel does not tell. */
static long
first_child(long pid)
{
	char  path[64];
	long  child = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%ld/task/%ld/children", pid, pid);
	f = fopen(path, "re");
	if (f && fscanf(f, "%ld", &child) != 1)
		child = 0;
	if (f)
		fclose(f);
	return child;
}

/* The "componentctl run" that has started it; 0: there is none.  The program is the first child of run, and orphans come behind. */
static pid_t
run_of(const struct record *r)
{
	char path[32], value[PROC_STATUS_BYTES] = "";
	long parent;

	snprintf(path, sizeof(path), "/proc/%ld/status", (long)r->pid);
	proc_status_find(open(path, O_RDONLY | O_CLOEXEC), "\nPPid:", value);
	parent = atol(value);
	return is_componentctl(parent) && first_child(parent) == r->pid ? (pid_t)parent : 0;
}

static int
ask(const struct record *r)
{
	struct record now;
	pid_t         run = run_of(r);

	/* If it is still the same process, that is its parent. */
	if (run && !records_again(r, &now) && !kill(run, SIGTERM))
		return 0;
	if (r->takes_words) /* the agent's */
		end_windows(r->pid, r->url, SIGTERM);
	return records_signal(r, SIGTERM);
}

/* A daemon takes its record back before it ends, so that counts where the kernel does not tell its end alone. */
static int
wait_for_end(struct pollfd *process, const struct record *r)
{
	struct record now;
	int64_t       until = clock_ns(CLOCK_MONOTONIC) + END_NS;

	while (poll(process, 1, LOOK_MS) <= 0 && (process->fd >= 0 || !records_again(r, &now)))
		if (clock_ns(CLOCK_MONOTONIC) > until)
			return -ETIMEDOUT;
	return 0;
}

static int
stop(char **operands, struct component_error *err)
{
	struct record r;
	struct pollfd process = { .events = POLLIN };
	const char   *who = *app_id ? app_id : operands[0];
	int           result;

	if (!who || (*app_id && operands[0])) {
		component_error_set(err, "%s; write componentctl stop ID|PID", who ? "an operand beside --app-id" : "no operand is given");
		return -EINVAL;
	}
	result = record_find(who, &r, err);
	if (result)
		return result;
	process.fd = records_hold(&r);
	result = ask(&r);
	if (!result)
		result = wait_for_end(&process, &r);
	if (process.fd >= 0)
		close(process.fd);
	if (result == -ETIMEDOUT) {
		component_error_set(err, "process %ld (%s) was asked to stop and has not ended yet; 'kill -KILL %ld' ends it at once",
			(long)r.pid, r.id, (long)r.pid);
		return result;
	}
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
	.summary = "Asks a program that has a record to end, by SIGTERM, and waits until it has.",
	.most = 1,
	.flags = flags,
	.run = stop,
};
