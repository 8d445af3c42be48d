/*
 * enable.c - componentctl enable and disable ID|PID: switches profiling of a running program.
 *
 *     record says off ──▶ USR1, or a word ──▶ the program listens, writes its record anew ──▶ record says where
 *
 * A record says what its process takes for that.  A daemon takes SIGUSR1.  The agent has no signal of its own, so a line
 * is added to its record.  What takes neither is left alone: a signal that a program does not expect ends it.
 * Of what --follow-forks follows, children are switched with their parent.
 *
 * What a stranger would get wrong:
 * - USR1 switches to the other state, whichever that is.  Two at once would undo each other, so the
 *   record's file is locked from the look to the change (by fcntl(2): the daemon itself has flock(2)).
 * - A change writes another file of that name.  Who has waited for the lock has the old file, and so looks
 *   only then.
 * - Who stops lets slow clients finish, for some seconds.
 * - A line names the state, so two at once do not undo each other, and there is no lock.
 *
 * Tests: tests/componentctl/enable.t.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <component/duration.h>

#include "clock.h"
#include "command.h"
#include "proc_status.h"
#include "records.h"

#define CHANGE_NS COMPONENT_SECONDS(60) /* of a busy machine, and of clients that read slowly */
#define LOOK_MS   10
#define AGAIN_NS  COMPONENT_SECONDS(2) /* a word that is added just as the process writes its record may be lost */

static const char *
word_of(bool on)
{
	return on ? "on" : "off";
}

/* Does it catch USR1 at this moment?  Else it would be ended. */
static bool
catches_usr1(pid_t pid)
{
	char               path[32], value[PROC_STATUS_BYTES];
	unsigned long long caught;

	snprintf(path, sizeof(path), "/proc/%ld/status", (long)pid);
	return proc_status_find(open(path, O_RDONLY | O_CLOEXEC), "\nSigCgt:", value) && sscanf(value, "%llx", &caught) == 1 &&
	       caught >> (SIGUSR1 - 1) & 1;
}

/* A descriptor, which holds the lock; -1: it cannot be had, and two at once are the caller's affair. */
static int
lock(const struct record *r)
{
	struct flock all = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	struct stat  locked, now;
	int          fd;

	/* Who had it before us may have led the daemon to another file, which others lock by now. */
	while ((fd = open(r->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)) >= 0) {
		fcntl(fd, F_OFD_SETLKW, &all);
		if (fstat(fd, &locked) || lstat(r->path, &now) || (locked.st_dev == now.st_dev && locked.st_ino == now.st_ino))
			break;
		close(fd);
	}
	return fd;
}

static int
ended(const struct record *r, struct component_error *err)
{
	component_error_set(err, "process %ld (%s) has ended meanwhile", (long)r->pid, r->id);
	return -ESRCH;
}

static int
still(const struct record *r, bool on, struct component_error *err)
{
	component_error_set(err, "process %ld (%s) has been asked, and profiling is still not %s; %s", (long)r->pid, r->id, word_of(on),
		r->takes_words ? "it may be stopped, or its own filter of system calls may forbid it" : "its log says why");
	return -ETIMEDOUT;
}

/* While it changes it may have no record for a moment. */
static int
wait_for(const struct record *r, bool on, int64_t until, struct record *now, struct component_error *err)
{
	struct pollfd process = { records_hold(r), POLLIN, 0 };
	int64_t       again = clock_ns(CLOCK_MONOTONIC) + AGAIN_NS;
	int           result = 0;

	while (!result && (records_again(r, now) || records_is_on(now) != on)) {
		if (poll(&process, 1, LOOK_MS) > 0)
			result = ended(r, err);
		else if (clock_ns(CLOCK_MONOTONIC) > until)
			result = still(r, on, err);
		if (!result && r->takes_words && clock_ns(CLOCK_MONOTONIC) > again) {
			record_add_word(r, on);
			again = clock_ns(CLOCK_MONOTONIC) + AGAIN_NS;
		}
	}
	if (process.fd >= 0)
		close(process.fd);
	return result;
}

static int
ask(const struct record *r, bool on, struct record *now, struct component_error *err)
{
	int result;

	if (!r->takes_words && !(r->takes_usr1 && catches_usr1(r->pid))) {
		component_error_set(err, "process %ld (%s) has no switch, as its signals are its own; start it again with %s", (long)r->pid, r->id,
			on ? "profiling on" : "profiling off, as by 'componentctl run --enable-profiling=false'");
		return -ENOTSUP;
	}
	result = r->takes_words ? record_add_word(r, on) : records_signal(r, SIGUSR1);
	if (result) {
		component_error_set(err, "process %ld (%s) cannot be asked: %s", (long)r->pid, r->id, strerror(-result));
		return result;
	}
	return wait_for(r, on, clock_ns(CLOCK_MONOTONIC) + CHANGE_NS, now, err);
}

/* *now is its record afterwards. */
static int
turn(const struct record *r, bool on, struct record *now, struct component_error *err)
{
	int fd = r->takes_words ? -1 : lock(r), result = records_again(r, now);

	if (result)
		ended(r, err);
	else if (records_is_on(now) != on)
		result = ask(now, on, now, err);
	if (fd >= 0)
		close(fd);
	return result;
}

/* All are asked, and then all are waited for.  One that has ended meanwhile is no fault. */
static int
turn_children(const struct record *parent, bool on, struct component_error *err)
{
	int64_t        until = clock_ns(CLOCK_MONOTONIC) + CHANGE_NS;
	struct records all;
	struct record  now;
	int            result = records_read(&all), r;

	for (size_t i = 0; i < all.count; i++) {
		struct record *child = &all.items[i];

		if (child->parent != parent->pid || strcmp(child->id, parent->id) || !child->takes_words ||
		    records_is_on(child) == on || record_add_word(child, on))
			child->pid = 0;
	}
	for (size_t i = 0; i < all.count; i++) {
		r = all.items[i].pid ? wait_for(&all.items[i], on, until, &now, err) : 0;
		result = r && r != -ESRCH ? r : result;
	}
	records_release(&all);
	return result;
}

static int
turn_named(const char *word, bool on, struct component_error *err)
{
	struct record r, now;
	int           result = record_find(word, &r, err);

	if (!result)
		result = turn(&r, on, &now, err);
	if (!result)
		result = turn_children(&now, on, err);
	if (!result)
		printf("profiling of %s is %s%s%s\n", now.id, word_of(on), on ? ": " : "", on ? now.url : "");
	return result;
}

static int
enable(char **operands, struct component_error *err)
{
	return turn_named(operands[0], true, err);
}

static int
disable(char **operands, struct component_error *err)
{
	return turn_named(operands[0], false, err);
}

const struct command enable_command = {
	.name = "enable",
	.operands = "ID|PID",
	.summary = "Switches profiling of a running program on.",
	.least = 1,
	.most = 1,
	.run = enable,
};

const struct command disable_command = {
	.name = "disable",
	.operands = "ID|PID",
	.summary = "Switches profiling of a running program off: no port answers any more.",
	.least = 1,
	.most = 1,
	.run = disable,
};
