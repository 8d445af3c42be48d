/*
 * run.c - componentctl run: a program with the agent in it, and nothing else different.
 *
 *     run ── fork ──▶ exec CMD with LD_PRELOAD=agent, COMPONENT_RUN="FD PORT PARENT ID"
 *      │                   agent: takes both out of the environment (but for --follow-forks), binds, writes a record
 *      │◀── "up URL" or "off WHY" ──┘ by the pipe FD, before main()
 *      waits; passes signals on; ends with the program's status
 *
 * What a stranger would get wrong:
 * - The program stays in the process group of this one, so that the terminal's keys and job control
 *   work as without it.  Ctrl-C comes to both then, and is not passed on; what somebody sends to this
 *   process alone is (witness.h).  So is what the kernel sends to it alone: SIGHUP of a terminal whose
 *   session it leads, and SIGALRM of an alarm(2) that was set before exec.
 * - Ctrl-C does not begin the time after which the program is killed: in an interpreter it ends a
 *   line of input, and not the interpreter.  A signal that was sent does.
 * - Without a port the program's own process binds one.  A port that is asked for is tried before: when it
 *   is taken nothing is started.
 * - The agent does not remove the program's record when that ends: a filter of the program's may end it for
 *   an unlink().  This process removes it then, and each ten seconds the records of forked children that have
 *   ended.
 * - The program's signal mask, and what it ignores, is what this process was started with.
 *
 * Tests: tests/componentctl/run.t.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <component/duration.h>

#include "address.h"
#include "clock.h"
#include "command.h"
#include "listen.h"
#include "loadable.h"
#include "preload/under_run.h"
#include "record.h"
#include "utc.h"
#include "witness.h"

#define PIPE_FD_LEAST 100 /* three digits, where no program expects to find one of its own */
#define SIGNAL_STATUS 128 /* and the signal's number, as a shell has it */
#define REPORT_MAX    2048
#define SWEEP_NS      (10 * CLOCK_NS_PER_S)

static bool        enable = true, follow_forks;
static int64_t     app_port, profile_port = -1;
static int64_t     grace = COMPONENT_SECONDS(25);
static const char *app_id = "";

struct running {
	pid_t    pid;
	pid_t    witness; /* of signals to the process group */
	int      signals; /* a signalfd */
	int      report;  /* the pipe's end; -1: closed */
	char     text[REPORT_MAX];
	size_t   size;
	int64_t  kill_at; /* by the monotonic clock; 0: not yet */
	int64_t  sweep_at; /* the same; 0: nothing was swept yet */
	sigset_t mask;    /* that we were started with */
	bool     ignored_child;
};

/* ---- before it starts ---- */

static int
port_check(struct component_error *err)
{
	struct component_error why = COMPONENT_ERROR_INIT;
	struct listen_set      set;
	struct address         a;
	char                   text[32], sentence[128];
	int                    r;

	if (profile_port <= 0)
		return 0;
	snprintf(text, sizeof(text), "127.0.0.1:%" PRId64, profile_port);
	r = address_parse(text, &a, sentence, sizeof(sentence));
	if (!r)
		r = listen_open(&a, &set, &why);
	if (!r)
		listen_close(&set);
	else
		component_error_set(err, "invalid configuration for ProfilePort. Port %" PRId64 " is not available: %s; "
			"leave --profile-port out, and a free one is taken", profile_port, *why.text ? why.text : sentence);
	return r;
}

static int
id_choose(const char *command, char id[RECORD_ID_MAX], struct component_error *err)
{
	struct record other;
	char          name[PATH_MAX];

	if (*app_id) {
		snprintf(id, RECORD_ID_MAX, "%s", app_id);
		return record_id_check(app_id, err);
	}
	snprintf(name, sizeof(name), "%s", command);
	record_id_make(basename(name), id);
	if (record_find(id, &other, NULL) != -ENOENT) {
		snprintf(name, sizeof(name), "%.40s-%ld", id, (long)getpid());
		record_id_make(name, id);
	}
	return 0;
}

/* ---- the program ---- */

static int
set_number(const char *name, int64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, number);
	return setenv(name, text, 1);
}

/* In the child: what the program finds in its environment, and what the agent takes out of it again. */
static int
environment_make(const char *id, int fd)
{
	const char *others = getenv("LD_PRELOAD");
	char        agent[PATH_MAX], preload[3 * PATH_MAX], address[32], word[128];
	int         r = setenv("APP_ID", id, 1);

	r |= app_port ? set_number("APP_PORT", app_port) : unsetenv("APP_PORT");
	if (!enable)
		return r;
	if (loadable_agent(agent, NULL))
		return -1;
	if (snprintf(preload, sizeof(preload), "%s%s%s", agent, others && *others ? ":" : "", others ? others : "") >=
	    (int)sizeof(preload))
		return -1;
	snprintf(address, sizeof(address), "127.0.0.1:%" PRId64, profile_port > 0 ? profile_port : 0);
	snprintf(word, sizeof(word), "%03d %" PRId64 " %ld %s", fd, app_port, follow_forks ? (long)getpid() : 0, id);
	return r | setenv(RUN_PORT_VARIABLE, RUN_PORT_UNKNOWN, 1) | setenv("LD_PRELOAD", preload, 1) | setenv("COMPONENT_ENABLE_PPROF", "true", 1) |
	       setenv("COMPONENT_PROFILING_BIND_ADDRESS", address, 1) | setenv(RUN_VARIABLE, word, 1);
}

static void
child(const struct running *p, const char *path, const char *id, char **words, int report)
{
	int fd = enable ? fcntl(report, F_DUPFD, PIPE_FD_LEAST) : -1;

	if (p->ignored_child)
		signal(SIGCHLD, SIG_IGN);
	if ((!enable || fd >= 0) && !environment_make(id, fd)) {
		sigprocmask(SIG_SETMASK, &p->mask, NULL);
		execv(path, words);
	}
	dprintf(report, "exec %s\n", strerror(errno));
	_exit(127);
}

static int
start(struct running *p, const char *path, const char *id, char **words, struct component_error *err)
{
	sigset_t all;
	int      ends[2];

	sigfillset(&all);
	sigdelset(&all, SIGTSTP);
	sigdelset(&all, SIGTTIN);
	sigdelset(&all, SIGTTOU);
	sigprocmask(SIG_BLOCK, &all, &p->mask);
	p->ignored_child = signal(SIGCHLD, SIG_DFL) == SIG_IGN; /* else there is nobody to wait for */
	p->signals = signalfd(-1, &all, SFD_CLOEXEC);
	if (p->signals < 0 || pipe2(ends, O_CLOEXEC)) {
		component_error_set(err, "cannot start %s: %s", path, strerror(errno));
		return -errno;
	}
	p->report = ends[0];
	p->pid = fork();
	if (p->pid == 0)
		child(p, path, id, words, ends[1]);
	close(ends[1]);
	if (p->pid < 0) {
		component_error_set(err, "cannot start %s: %s", path, strerror(errno));
		return -errno;
	}
	p->witness = witness_begin(); /* the program is the first of our children */
	return 0;
}

/* ---- what it says ---- */

/* One line, as Dapr's sidecar wrote it. */
static void
say(const char *level, const char *message, const char *id)
{
	struct utc now;

	utc_from_unix(time(NULL), &now);
	fprintf(stderr, "time=\"%04" PRId64 "-%02d-%02dT%02d:%02d:%02dZ\" level=%s msg=\"%s\" app_id=%s\n", now.year, now.month,
		now.day, now.hour, now.minute, now.second, level, message, id);
}

/* 0; -ENOEXEC: it never ran. */
static int
report_take(struct running *p, const char *path, const char *id, struct component_error *err)
{
	char  message[REPORT_MAX + 64];
	char *end = memchr(p->text, '\n', p->size), *port;

	close(p->report);
	p->report = -1;
	if (end)
		*end = '\0';
	if (end && !strncmp(p->text, "exec ", 5)) {
		component_error_set(err, "cannot run %s: %s", path, p->text + 5);
		return -ENOEXEC;
	}
	if (end && !strncmp(p->text, RUN_UP " ", strlen(RUN_UP " "))) {
		port = strrchr(p->text, ':');
		snprintf(message, sizeof(message), "starting profiling server on port %d", port ? atoi(port + 1) : 0);
		say("info", message, id);
	} else if (enable) {
		for (char *c = p->text; end && *c; c++)
			*c = *c == '"' ? '\'' : *c;
		snprintf(message, sizeof(message), "profiling is off: %s", end ? p->text + strcspn(p->text, " ") + 1 :
			"the program ended, or has closed all descriptors, before the agent was there");
		say("warning", message, id);
	}
	return 0;
}

static int
report_read(struct running *p, const char *path, const char *id, struct component_error *err)
{
	ssize_t n = read(p->report, p->text + p->size, sizeof(p->text) - 1 - p->size);

	if (n < 0 && errno == EINTR)
		return 0;
	p->size += n > 0 ? (size_t)n : 0;
	p->text[p->size] = '\0';
	return n <= 0 || memchr(p->text, '\n', p->size) || p->size + 1 == sizeof(p->text) ? report_take(p, path, id, err) : 0;
}

/* ---- while it runs ---- */

/* From the terminal, which sends it to the whole group.  A hang-up goes to the session's leader alone; the
 * group has it when that leader ends. */
static bool
is_the_terminals(const struct signalfd_siginfo *s)
{
	if (s->ssi_code != SI_KERNEL)
		return false;
	switch (s->ssi_signo) {
	case SIGINT:
	case SIGQUIT:
	case SIGWINCH:
	case SIGCONT:
		return true;
	case SIGHUP:
		return getsid(0) != getpid();
	default:
		return false;
	}
}

static void
signal_take(struct running *p)
{
	struct signalfd_siginfo s;
	bool                    ends;

	if (read(p->signals, &s, sizeof(s)) != (ssize_t)sizeof(s) || s.ssi_signo == SIGCHLD)
		return;
	if (is_the_terminals(&s)) {
		witness_renew(&p->witness);
		return;
	}
	if (!witness_had(&p->witness, (int)s.ssi_signo))
		kill(p->pid, (int)s.ssi_signo);
	ends = s.ssi_signo == SIGTERM || s.ssi_signo == SIGINT;
	if (ends && !p->kill_at)
		p->kill_at = clock_ns(CLOCK_MONOTONIC) + grace;
}

/* Milliseconds until there is something to do; -1: for ever. */
static int
time_left(const struct running *p)
{
	int64_t until = p->kill_at, left;

	if (p->sweep_at && (!until || p->sweep_at < until))
		until = p->sweep_at;
	left = until - clock_ns(CLOCK_MONOTONIC);
	return !until ? -1 : left <= 0 ? 0 : (int)(left / 1000000 + 1);
}

static void
sweep_when_due(struct running *p)
{
	int64_t now = clock_ns(CLOCK_MONOTONIC);

	if (!follow_forks || now < p->sweep_at)
		return;
	record_sweep();
	p->sweep_at = now + SWEEP_NS;
}

/* The program's exit status. */
static int
wait_for(struct running *p, const char *path, const char *id, struct component_error *err)
{
	int status, failed = 0;

	for (;;) {
		struct pollfd fds[2] = { { p->signals, POLLIN, 0 }, { p->report, POLLIN, 0 } };
		pid_t         ended = waitpid(p->pid, &status, WNOHANG);

		if (ended == p->pid)
			break;
		if (p->kill_at && clock_ns(CLOCK_MONOTONIC) >= p->kill_at) {
			say("warning", "the program did not end in time and is killed", id);
			kill(p->pid, SIGKILL);
			p->kill_at = 0;
		}
		sweep_when_due(p);
		if (poll(fds, 2, time_left(p)) <= 0)
			continue;
		if (fds[1].revents)
			failed = report_read(p, path, id, err);
		if (fds[0].revents)
			signal_take(p);
	}
	while (p->report >= 0)
		failed = report_read(p, path, id, err);
	record_sweep();
	witness_end(p->witness);
	if (failed)
		return failed;
	return WIFSIGNALED(status) ? SIGNAL_STATUS + WTERMSIG(status) : WEXITSTATUS(status);
}

static int
run(char **words, struct component_error *err)
{
	struct running p = { .report = -1, .signals = -1 };
	char           path[PATH_MAX], agent[PATH_MAX], id[RECORD_ID_MAX];
	int            r;

	if (!words[0]) {
		component_error_set(err, "no application command found; write componentctl run [OPTION]... CMD [ARGUMENT]...");
		return -EINVAL;
	}
	r = id_choose(words[0], id, err);
	if (!r)
		r = loadable_find(words[0], path, err);
	if (!r && enable)
		r = loadable_check(path, err);
	if (!r && enable)
		r = loadable_agent(agent, err);
	if (!r && enable)
		r = port_check(err);
	if (!r)
		r = start(&p, path, id, words, err);
	return r ? r : wait_for(&p, path, id, err);
}

static const struct component_flag flags[] = {
	COMPONENT_FLAG_STRING("app-id", &app_id, "Under which name the others find it; without it the program's.",
		.section = "Run", .letter = 'a'),
	COMPONENT_FLAG_INT("app-port", &app_port, "The port that the program serves its own clients on, for list and for APP_PORT.",
		.section = "Run", .max = UINT16_MAX, .letter = 'p'),
	COMPONENT_FLAG_BOOL("enable-profiling", &enable, "Load the agent, and serve profiles of the program.",
		.section = "Run", .bits = COMPONENT_FLAG_BOOL_WORD),
	COMPONENT_FLAG_INT("profile-port", &profile_port, "Where on 127.0.0.1 profiles are served; -1 is any free port.",
		.section = "Run", .min = -1, .max = UINT16_MAX),
	COMPONENT_FLAG_BOOL("follow-forks", &follow_forks, "Serve profiles of each process that the program forks, too; their records "
		"have its name, and say whose children they are.", .section = "Run"),
	COMPONENT_FLAG_DURATION("graceful-shutdown-timeout", &grace,
		"How long a program that was asked to end by a signal to this one has for it, before it is killed.",
		.section = "Run", .min = 0),
	COMPONENT_FLAG_END
};

const struct command run_command = {
	.name = "run",
	.operands = "CMD [ARGUMENT]...",
	.summary = "Runs a program that knows nothing of profiles, and serves them.",
	.most = SIZE_MAX,
	.first = true,
	.flags = flags,
	.run = run,
};
