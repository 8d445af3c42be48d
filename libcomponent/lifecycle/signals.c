/*
 * signals.c - INT, TERM, HUP, USR1, USR2, QUIT and PIPE, as component_main() wants them.
 *
 *     handler --> count per signal --> eventfd --> "component-sig" --> requests
 *     any thread                                   a thread of ours    of the loop
 *
 * The handler counts and writes to an eventfd, nothing else.  A thread of ours
 * reads it, so that a second TERM ends the process even when the loop hangs, and
 * so that a hanging loop does not outlive the graceful time after the first.
 *
 * What surprises:
 * - PIPE gets a handler that does nothing.  SIG_IGN would be inherited by every
 *   program the daemon runs; a handler is reset by execve(2).
 * - A child of fork() gets the defaults back.  A signal that comes before it
 *   could do so is noticed by the process id: the handler sets the default and
 *   raises it again, instead of telling the parent through the shared eventfd.
 * - HUP and INT that are ignored at start stay ignored: nohup and the job control
 *   of shells mean that.  TERM and USR1 ignored are nobody's wish.
 * - QUIT and USR2 are taken only where somebody prints stacks, see thread_dump.h.  What
 *   they do must work while any lock of the process is held, so nothing is logged; a
 *   second QUIT ends in the handler, should even that hang.  As in Go, QUIT is taken
 *   although it is ignored: shells do that to what they start with "&".
 *
 * Why not signalfd(): it needs the signals blocked in every thread, and blocked
 * signals are inherited by children.
 *
 * Tests: tests/lifecycle/signals.t with tests/programs/life_daemon.c; tests/threads/hanging_daemon.t.
 */
#include <config.h>

#include "life.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"
#include "fd.h"
#include "our_mask.h"
#include "our_thread.h"
#include "record.h"
#include "thread_dump.h"
#include "utc.h"

/* What the loop gets beyond delay and graceful time to move on, ns: a busy machine may be late. */
#define STUCK_SLACK_NS 5000000000LL
/* What it gets to end, ns, once it stops the parts that are last to stop.  The profiling server takes less, also when a client does
 * not read (SERVE_GRACE_MS, STOP_FLUSH_MS) and its descriptors are gone (COME_NS, and LOST_SECONDS twice). */
#define LAST_SLACK_NS 25000000000LL

#define STATUS_DUMPED 2 /* of QUIT, as in Go */
#define HEAD_WAIT_MS  1000
#define HEAD_BYTES    256 /* of a dump */

struct kind {
	int                   number;
	const char           *name;
	enum component_signal left; /* bit of spec.signals that leaves it alone */
	bool                  keep_ignored;
	bool                  stops;
	bool                  dumps;
	unsigned              request;
};

/* Those that dump come first: what the others do may hang on the log. */
static const struct kind kinds[] = {
	{ SIGQUIT, "SIGQUIT", COMPONENT_SIGNAL_QUIT, false, false, true, 0 },
	{ SIGUSR2, "SIGUSR2", COMPONENT_SIGNAL_USR2, false, false, true, 0 },
	{ SIGTERM, "SIGTERM", COMPONENT_SIGNAL_TERM, false, true, false, REQUEST_STOP },
	{ SIGINT, "SIGINT", COMPONENT_SIGNAL_TERM, true, true, false, REQUEST_STOP },
	{ SIGHUP, "SIGHUP", COMPONENT_SIGNAL_HUP, true, false, false, REQUEST_RELOAD },
	{ SIGUSR1, "SIGUSR1", COMPONENT_SIGNAL_USR1, false, false, false, REQUEST_USR1 },
	{ SIGPIPE, "SIGPIPE", COMPONENT_SIGNAL_PIPE, true, false, false, 0 },
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* All that the handler touches. */
static struct {
	_Atomic int      pid; /* of the process the handlers are for */
	_Atomic int      fd;
	_Atomic unsigned counts[KINDS];
	_Atomic int      senders[KINDS]; /* the last one's process id */
} record = { .fd = -1 };

/* Of the one component that has the signals. */
static struct {
	struct component *owner;
	bool              installed[KINDS];
	_Atomic bool      quit;
	pthread_t         thread;
	unsigned          seen[KINDS];
	unsigned          stops; /* TERM and INT so far */
	int64_t           deadline_ns; /* of the graceful stop; 0: none */
} state;

/* ---- in the handler ---- */

static void
kill_child(int number)
{
	/* Blocked while the handler runs, so it is delivered when it returns. */
	signal(number, SIG_DFL);
	raise(number);
}

static void
on_signal(int number, siginfo_t *info, void *context)
{
	int      saved = errno;
	uint64_t one = 1;
	int      fd = record.fd;

	(void)context;
	if (number == SIGPIPE)
		return;
	if (getpid() != record.pid) {
		kill_child(number);
		goto out;
	}
	for (size_t i = 0; i < KINDS; i++) {
		if (kinds[i].number != number)
			continue;
		record.senders[i] = info && info->si_code <= 0 ? (int)info->si_pid : 0;
		if (record.counts[i]++ > 0 && number == SIGQUIT)
			_exit(STATUS_DUMPED);
	}
	/* write() is a cancellation point: the thread would be unwound out of the handler. */
	if (fd >= 0 && syscall(SYS_write, fd, &one, sizeof(one)) < 0)
		goto out; /* full: the thread will look anyway */
out:
	errno = saved;
}

/* ---- on the thread ---- */

/* Never waits long: the loop may be stuck because nobody reads the log. */
static void
log_signal(size_t kind, enum component_log_level level, const char *message)
{
	struct component_log_field fields[2] = { { "signal", kinds[kind].name }, { "sender", NULL } };
	char                       sender[16];
	size_t                     count = 1;

	if (record.senders[kind] > 0) {
		snprintf(sender, sizeof(sender), "%d", record.senders[kind]);
		fields[count++].value = sender;
	}
	log_write_soon(&state.owner->log, level, message, fields, count);
}

static void
on_stop(size_t kind)
{
	const struct life_options *o = &state.owner->options;

	if (state.stops++ > 0) {
		log_signal(kind, COMPONENT_LOG_ERROR, "second signal to stop, exiting at once");
		_exit(STATUS_FAILED);
	}
	log_signal(kind, COMPONENT_LOG_INFO, "signal received, stopping");
	if (o->graceful_ns < 0 || o->graceful_ns > INT64_MAX / 4 || o->delay_ns > INT64_MAX / 4)
		return; /* without limit */
	state.deadline_ns = clock_ns(CLOCK_MONOTONIC) + o->delay_ns + o->graceful_ns;
}

/* Whose dump it is, and when it was taken.  Bytes. */
static size_t
dump_head(char *buf, size_t size, bool quit)
{
	const struct component_spec *spec = &state.owner->spec;
	struct utc                   at;
	int                          n;

	utc_from_unix(clock_ns(CLOCK_REALTIME) / CLOCK_NS_PER_S, &at);
	n = snprintf(buf, size, "%s %s, pid %d, %04d-%02d-%02dT%02d:%02d:%02dZ\n%s\n", spec->name,
		spec->version ? spec->version : PACKAGE_VERSION, (int)getpid(), (int)at.year, at.month, at.day, at.hour,
		at.minute, at.second, quit ? "SIGQUIT: quit\n" : "");
	return n < 0 ? 0 : (size_t)n < size ? (size_t)n : size - 1;
}

/* Neither the log nor anything else that a stuck thread may hold. */
static void
on_dump(size_t kind)
{
	char            head[HEAD_BYTES];
	bool            quit = kinds[kind].number == SIGQUIT;
	thread_dump_fn *dump = thread_dump_get();
	struct pollfd   room = { STDERR_FILENO, POLLOUT, 0 };
	size_t          size = dump_head(head, sizeof(head), quit);

	/* Nobody may be reading. */
	if (dump && poll(&room, 1, HEAD_WAIT_MS) == 1 && write(STDERR_FILENO, head, size) < 0 && quit)
		_exit(STATUS_DUMPED);
	if (dump)
		dump(STDERR_FILENO);
	if (quit)
		_exit(STATUS_DUMPED);
}

static bool
is_stopping(const struct component *c)
{
	return component_phase(c) > COMPONENT_PHASE_RUNNING;
}

static void
on_count(size_t kind)
{
	if (kinds[kind].dumps) {
		on_dump(kind);
		return;
	}
	if (kinds[kind].stops)
		on_stop(kind);
	else
		log_signal(kind, COMPONENT_LOG_INFO, kinds[kind].request == REQUEST_RELOAD && !is_stopping(state.owner) ?
			"signal received, reloading" : "signal received");
	phase_request(state.owner, kinds[kind].request);
}

static void
look_at_counts(void)
{
	for (size_t i = 0; i < KINDS; i++) {
		unsigned count = record.counts[i];

		/* Two that came before we looked are two for a stop; anything
		 * else is done once. */
		for (; state.seen[i] != count; state.seen[i]++)
			if (kinds[i].stops || state.seen[i] + 1 == count)
				on_count(i);
	}
}

/* The loop should have ended by itself: it hangs, and so do its timers. */
static void
exit_stuck(void)
{
	struct component *c = state.owner;
	char              limit[32], text[128];

	life_duration_text(c->options.graceful_ns, limit, sizeof(limit));
	snprintf(text, sizeof(text), "not finished within %s: the event loop, which does not answer", limit);
	log_write_soon(&c->log, COMPONENT_LOG_ERROR, text, NULL, 0);
	_exit(STATUS_FAILED);
}

/* Milliseconds until the deadline; -1: there is none. */
static int
wait_ms(void)
{
	struct component *c = state.owner;
	int64_t           left, end = state.deadline_ns;

	if (!state.deadline_ns || component_phase(c) == COMPONENT_PHASE_FINISHED)
		return -1;
	if (end < c->grace_end_ns)
		end = c->grace_end_ns; /* it began late */
	left = end + (c->lingers ? LAST_SLACK_NS : STUCK_SLACK_NS) - clock_ns(CLOCK_MONOTONIC);
	if (left <= 0)
		exit_stuck();
	left = left / CLOCK_NS_PER_MS + 1;
	return left < INT32_MAX ? (int)left : INT32_MAX;
}

static void *
run(void *arg)
{
	(void)arg;
	while (!state.quit) {
		struct pollfd ready = { record.fd, POLLIN, 0 };
		uint64_t      count;

		if (poll(&ready, 1, wait_ms()) <= 0)
			continue;
		/* Emptied before the counts are read, so none is missed. */
		if (read(record.fd, &count, sizeof(count)) < 0 && errno != EINTR && errno != EAGAIN)
			break;
		look_at_counts();
	}
	return NULL;
}

/* ---- installing ---- */

static bool
is_ours(const struct sigaction *action)
{
	return action->sa_flags & SA_SIGINFO && action->sa_sigaction == on_signal;
}

static void
handlers_remove(void)
{
	for (size_t i = 0; i < KINDS; i++) {
		struct sigaction now;

		if (!state.installed[i])
			continue;
		state.installed[i] = false;
		if (kinds[i].request == REQUEST_USR1)
			record_takes_usr1(false);
		if (sigaction(kinds[i].number, NULL, &now) == 0 && is_ours(&now))
			signal(kinds[i].number, SIG_DFL);
	}
}

static void
handler_install(struct component *c, size_t kind)
{
	const struct kind *k = &kinds[kind];
	struct sigaction   before, action = { .sa_sigaction = on_signal };

	if (k->dumps && !thread_dump_get())
		return;
	if (c->spec.signals & (unsigned)k->left || sigaction(k->number, NULL, &before) < 0)
		return;
	if (!(before.sa_flags & SA_SIGINFO) && before.sa_handler == SIG_IGN && k->keep_ignored)
		return;
	if ((before.sa_flags & SA_SIGINFO) ||
		(before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)) {
		component_log(c, COMPONENT_LOG_WARNING, "signal has a handler already, left to it", "signal",
			k->name, NULL);
		return;
	}
	action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
	our_mask_fill(&action.sa_mask);
	state.installed[kind] = sigaction(k->number, &action, NULL) == 0;
	if (k->request == REQUEST_USR1)
		record_takes_usr1(state.installed[kind]);
}

int
component_signals_install(struct component *c, struct component_error *err)
{
	int result, fd;

	if (life_in_child(c))
		return -EPERM;
	if (state.owner) {
		component_error_set(err, "signals drive another component of this process already");
		return -EBUSY;
	}
	result = fd = fd_keep(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (result < 0)
		goto out;
	memset(&state, 0, sizeof(state));
	for (size_t i = 0; i < KINDS; i++)
		state.seen[i] = record.counts[i];
	state.owner = c;
	record.pid = getpid();
	record.fd = fd;
	result = our_thread_start("component-sig", run, NULL, &state.thread);
	if (result < 0) {
		state.owner = NULL;
		record.fd = -1;
		close(fd);
		goto out;
	}
	c->has_signals = true;
	for (size_t i = 0; i < KINDS; i++)
		handler_install(c, i);
out:
	if (result < 0)
		component_error_set(err, "cannot take over the signals: %s", strerror(-result));
	return result < 0 ? result : 0;
}

void
signals_remove(struct component *c)
{
	uint64_t one = 1;
	int      fd = record.fd;

	if (state.owner != c || life_in_child(c))
		return;
	handlers_remove();
	state.quit = true;
	if (write(fd, &one, sizeof(one)) < 0)
		one = 0; /* full: the thread is awake */
	pthread_join(state.thread, NULL);
	record.fd = -1;
	close(fd);
	state.owner = NULL;
}

void
signals_fork_child(struct component *c)
{
	int fd = record.fd;

	if (state.owner != c)
		return;
	record.fd = -1;
	close(fd);
	handlers_remove();
	state.owner = NULL;
}
