/*
 * run.c - componentctl run: a program with the agent in it, and nothing else different.
 *
 *     run ── fork ──▶ exec CMD with LD_PRELOAD=agent, COMPONENT_RUN="FD PORT PARENT ID FILTERS"
 *      │                   agent: takes both out of the environment (but for --follow-forks), binds, writes a record
 *      │◀── "up URL" or "off WHY" ──┘ by the pipe FD, before main()
 *      waits; passes signals on; ends with the program's status
 *
 * What a stranger would get wrong:
 * - The program stays in the process group of this one, so that the terminal's keys and job control
 *   work as without it.  Ctrl-C comes to both then, and is not passed on; what somebody sends to this
 *   process alone is (witness.h).  So is what the kernel sends to it alone: SIGHUP of a terminal whose
 *   session it leads, and SIGALRM of an alarm(2) that was set before exec.
 * - A program may make a process group of its own, which it could not in our place if we lead ours.  So what came
 *   to our group is passed on to such a one.
 * - This process stops when the program does, and not by the signal that stops that: the program may handle it.
 * - Ctrl-C does not begin the time after which the program is killed: in an interpreter it ends a
 *   line of input, and not the interpreter.  A signal that was sent does.
 * - Without a port the program's own process binds one.  A port that is asked for is tried before: when it
 *   is taken nothing is started.
 * - The agent does not remove the program's record when that ends: a filter of the program's may end it for
 *   an unlink().  This process removes it then, and each ten seconds the records of forked children that have
 *   ended.
 * - A script for env is run by what env would run: nothing of ours stays in env, nor in any other program that
 *   runs one in its own place.  The user is told of that.
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
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <component/duration.h>

#include "address.h"
#include "clock.h"
#include "command.h"
#include "end_windows.h"
#include "listen.h"
#include "loadable.h"
#include "preload/under_run.h"
#include "record.h"
#include "utc.h"
#include "witness.h"

#define PIPE_FD_LEAST 100 /* three digits, where no program expects to find one of its own */
#define PIPE_FD_FEW   10  /* where there are no more than a hundred; written with three digits as well */
#define SIGNAL_STATUS 128 /* and the signal's number, as a shell has it */
#define REPORT_MAX    2048
#define LOOK_NS       (100 * CLOCK_NS_PER_MS) /* the first time; then twice as much, up to */
#define LOOK_NS_MOST  (10 * CLOCK_NS_PER_S)

static bool        enable = true, follow_forks;
static int64_t     app_port, profile_port = -1;
static int64_t     grace = COMPONENT_SECONDS(25);
static const char *app_id = "";

struct running {
	char        path[PATH_MAX], id[RECORD_ID_MAX];
	bool        id_is_taken; /* so the program's number is added */
	pid_t       pid;
	pid_t       waker;   /* what has last been there to continue us */
	int         signals; /* a signalfd */
	int         report;  /* the pipe's end; -1: closed */
	char        text[REPORT_MAX];
	size_t      size;
	int64_t     kill_at;   /* by the monotonic clock; 0: not yet */
	int64_t     look_at;   /* the same */
	int64_t     look_ns;   /* how long until the look after that */
	struct witness witness; /* of signals to the process group */
	struct stat program;   /* the file that the process was found to run */
	bool        is_served; /* as far as is known */
	sigset_t    mask;      /* that we were started with */
	bool        ignored_child;
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
id_choose(struct running *p, const char *command, struct component_error *err)
{
	struct record other;
	char          name[PATH_MAX];

	if (*app_id) {
		snprintf(p->id, RECORD_ID_MAX, "%s", app_id);
		return record_id_check(app_id, err);
	}
	snprintf(name, sizeof(name), "%s", command);
	record_id_make(basename(name), p->id);
	p->id_is_taken = record_find(p->id, &other, NULL) != -ENOENT;
	return 0;
}

static void
id_number(struct running *p, pid_t pid)
{
	char name[PATH_MAX];

	snprintf(name, sizeof(name), "%.40s-%ld", p->id, (long)pid);
	record_id_make(name, p->id);
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
		return r | unsetenv(RUN_PORT_VARIABLE); /* it is who started us that has it */
	if (loadable_agent(agent, NULL))
		return -1;
	if (snprintf(preload, sizeof(preload), "%s%s%s", agent, others && *others ? ":" : "", others ? others : "") >=
	    (int)sizeof(preload))
		return -1;
	snprintf(address, sizeof(address), "127.0.0.1:%" PRId64, profile_port > 0 ? profile_port : 0);
	snprintf(word, sizeof(word), "%03d %" PRId64 " %ld %s " RUN_NO_FILTERS, fd, app_port, follow_forks ? (long)getpid() : 0, id);
	return r | setenv(RUN_PORT_VARIABLE, RUN_PORT_UNKNOWN, 1) | setenv("LD_PRELOAD", preload, 1) | setenv("COMPONENT_ENABLE_PPROF", "true", 1) |
	       setenv("COMPONENT_PROFILING_BIND_ADDRESS", address, 1) | setenv(RUN_VARIABLE, word, 1);
}

static void
child(const struct running *p, char **words, int report)
{
	int fd = enable ? fcntl(report, F_DUPFD, PIPE_FD_LEAST) : -1;

	if (enable && fd < 0) /* ulimit -n */
		fd = fcntl(report, F_DUPFD, PIPE_FD_FEW);
	if (p->ignored_child)
		signal(SIGCHLD, SIG_IGN);
	if ((!enable || fd >= 0) && !environment_make(p->id, fd)) {
		sigprocmask(SIG_SETMASK, &p->mask, NULL);
		execv(p->path, words);
	}
	dprintf(report, "exec %s\n", strerror(errno));
	_exit(127);
}

static int
start(struct running *p, char **words, struct component_error *err)
{
	sigset_t all;
	int      ends[2];

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &p->mask);
	p->ignored_child = signal(SIGCHLD, SIG_DFL) == SIG_IGN; /* else there is nobody to wait for */
	p->signals = signalfd(-1, &all, SFD_CLOEXEC);
	if (p->signals < 0 || pipe2(ends, O_CLOEXEC)) {
		component_error_set(err, "cannot start %s: %s", p->path, strerror(errno));
		return -errno;
	}
	p->report = ends[0];
	p->pid = fork();
	if (p->id_is_taken)
		id_number(p, p->pid ? p->pid : getpid());
	if (p->pid == 0)
		child(p, words, ends[1]);
	close(ends[1]);
	if (p->pid < 0) {
		component_error_set(err, "cannot start %s: %s", p->path, strerror(errno));
		return -errno;
	}
	witness_begin(&p->witness); /* the program is the first of our children */
	return 0;
}

/* ---- what it says ---- */

/* One line, as Dapr's sidecar wrote it. */
static void
say(const struct running *p, const char *level, const char *message)
{
	struct utc now;

	utc_from_unix(time(NULL), &now);
	fprintf(stderr, "time=\"%04" PRId64 "-%02d-%02dT%02d:%02d:%02dZ\" level=%s msg=\"%s\" app_id=%s\n", now.year, now.month,
		now.day, now.hour, now.minute, now.second, level, message, p->id);
}

/* In Dapr's words, whose sidecar has a port for gRPC, too.  0: there is no port. */
static void
say_starting(const struct running *p, int port)
{
	char message[RECORD_ID_MAX + 64];
	int  size = snprintf(message, sizeof(message), "Starting Dapr with id %s.", p->id);

	if (port)
		snprintf(message + size, sizeof(message) - (size_t)size, " HTTP Port: %d.", port);
	say(p, "info", message);
}

static void
up_take(struct running *p)
{
	struct component_error why = COMPONENT_ERROR_INIT;
	char                   message[64];
	const char            *text = strrchr(p->text, ':');
	int                    port = text ? atoi(text + 1) : 0;

	say_starting(p, port);
	snprintf(message, sizeof(message), "starting profiling server on port %d", port);
	say(p, "info", message);
	if (record_folder_check(&why))
		say(p, "warning", why.text);
	p->is_served = true;
	p->look_at = 0;
	p->look_ns = LOOK_NS;
}

/* 0; -ENOEXEC: it never ran. */
static int
report_take(struct running *p, struct component_error *err)
{
	char  message[REPORT_MAX + 64];
	char *end = memchr(p->text, '\n', p->size);

	close(p->report);
	p->report = -1;
	if (end)
		*end = '\0';
	if (end && !strncmp(p->text, "exec ", 5)) {
		component_error_set(err, "cannot run %s: %s%s", p->path, p->text + 5, strcmp(p->text + 5, strerror(ENOEXEC)) ? "" :
			"; a script begins with #! and its interpreter, or write 'componentctl run sh SCRIPT'");
		return -ENOEXEC;
	}
	if (end && !strncmp(p->text, RUN_UP " ", strlen(RUN_UP " "))) {
		up_take(p);
	} else {
		say_starting(p, 0);
	}
	if (enable && !p->is_served) {
		for (char *c = p->text; end && *c; c++)
			*c = *c == '"' ? '\'' : *c;
		snprintf(message, sizeof(message), "profiling is off: %s", end ? p->text + strcspn(p->text, " ") + 1 :
			"the program ended, or has closed all descriptors, before the agent was there");
		say(p, "warning", message);
	}
	if (end || !enable)
		say(p, "info", "You're up and running! Both Dapr and your app logs will appear here.");
	return 0;
}

static int
report_read(struct running *p, struct component_error *err)
{
	ssize_t n = read(p->report, p->text + p->size, sizeof(p->text) - 1 - p->size);

	if (n < 0 && errno == EINTR)
		return 0;
	p->size += n > 0 ? (size_t)n : 0;
	p->text[p->size] = '\0';
	return n <= 0 || memchr(p->text, '\n', p->size) || p->size + 1 == sizeof(p->text) ? report_take(p, err) : 0;
}

/* Of a program that has ended, what is there: a child that it has left may have the pipe, too. */
static int
report_end(struct running *p, struct component_error *err)
{
	int r = 0;

	while (p->report >= 0 && poll(&(struct pollfd){ p->report, POLLIN, 0 }, 1, 0) > 0)
		r = report_read(p, err);
	return p->report >= 0 ? report_take(p, err) : r;
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
	case SIGTSTP:
	case SIGTTIN:
	case SIGTTOU:
		return true;
	case SIGHUP:
		return getsid(0) != getpid();
	default:
		return false;
	}
}

/* Is it in another process group than we are? */
static bool
is_apart(pid_t pid)
{
	return getpgid(pid) != getpgrp();
}

/* A line of ours went to a pipe that nobody reads any more, or to a file that may not grow. */
static bool
is_of_our_writing(const struct signalfd_siginfo *s)
{
	return (s->ssi_signo == SIGPIPE || s->ssi_signo == SIGXFSZ) && (pid_t)s->ssi_pid == getpid();
}

/* Where it serves is asked of its record: what was switched off and on again may have another port. */
static void
pass_on(const struct running *p, int number)
{
	struct record now;
	char          word[24];

	snprintf(word, sizeof(word), "%ld", (long)p->pid);
	if (p->is_served && record_find(word, &now, NULL))
		end_windows(p->pid, p->text + strlen(RUN_UP " "), number); /* no record could be written */
	else if (p->is_served && strcmp(now.url, RECORD_URL_OFF) != 0)
		end_windows(p->pid, now.url, number);
	kill(p->pid, number);
}

/* The terminal's keys are for the group that we lead, if a shell has made us its leader.  Without us the program would
 * be that, and could not leave it.  Where we do not lead it, a program that leaves it is rid of them, with us or without. */
static void
signal_take(struct running *p)
{
	struct signalfd_siginfo s;
	int                     number;

	if (read(p->signals, &s, sizeof(s)) != (ssize_t)sizeof(s) || s.ssi_signo == SIGCHLD ||
	    (s.ssi_signo == SIGCONT && (pid_t)s.ssi_pid == p->waker) || is_of_our_writing(&s))
		return;
	number = (int)s.ssi_signo;
	if (is_the_terminals(&s)) {
		if (is_apart(p->pid) && getpgrp() == getpid())
			kill(p->pid, number);
		witness_renew(&p->witness, number);
		p->look_at = 0; /* the new one is to stand where the program does */
		return;
	}
	if (is_apart(p->witness.pid) != is_apart(p->pid) || !witness_had(&p->witness, number))
		pass_on(p, number);
	else
		p->look_at = 0;
	if ((number == SIGTERM || number == SIGINT) && !p->kill_at) {
		say(p, "info", "terminated signal received: shutting down");
		if (grace < 0 || __builtin_add_overflow(clock_ns(CLOCK_MONOTONIC), grace, &p->kill_at))
			p->kill_at = INT64_MAX;
	}
}

/* Milliseconds until there is something to do. */
static int
time_left(const struct running *p)
{
	int64_t until = p->kill_at && p->kill_at < p->look_at ? p->kill_at : p->look_at;
	int64_t left = until - clock_ns(CLOCK_MONOTONIC);

	return left <= 0 ? 0 : (int)(left / CLOCK_NS_PER_MS + 1);
}

/* True, too, where its mappings cannot be read. */
static bool
has_agent(pid_t pid)
{
	char   path[32], *line = NULL;
	size_t room = 0;
	bool   found = false;
	FILE  *f;

	snprintf(path, sizeof(path), "/proc/%ld/maps", (long)pid);
	f = fopen(path, "re");
	while (f && !found && getline(&line, &room, f) > 0)
		found = strstr(line, "/" LOADABLE_AGENT) != NULL;
	free(line);
	if (f)
		fclose(f);
	return !f || found;
}

static bool
program_read(pid_t pid, struct stat *ret)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%ld/exe", (long)pid);
	return stat(path, ret) == 0;
}

/* Each program that the process runs is looked into once.  One that ends meanwhile has no file any more. */
static void
program_look(struct running *p)
{
	struct stat now;

	if (!program_read(p->pid, &now) || (now.st_dev == p->program.st_dev && now.st_ino == p->program.st_ino))
		return;
	if (has_agent(p->pid)) {
		p->program = now;
	} else if (program_read(p->pid, &now)) {
		say(p, "warning", "the program has run another one in its place, which is not profiled; write --follow-forks, or run that one");
		p->is_served = false;
	}
}

/* What nobody tells us of. */
static void
look_when_due(struct running *p)
{
	int64_t now = clock_ns(CLOCK_MONOTONIC);

	if (now < p->look_at)
		return;
	if (follow_forks)
		record_sweep();
	else if (p->is_served)
		program_look(p);
	if (p->witness.pid <= 0 || is_apart(p->witness.pid) != is_apart(p->pid))
		witness_stand(&p->witness, is_apart(p->pid));
	p->look_at = now + p->look_ns;
	p->look_ns = p->look_ns < LOOK_NS_MOST / 2 ? 2 * p->look_ns : LOOK_NS_MOST;
}

static void
kill_when_due(struct running *p)
{
	if (!p->kill_at || clock_ns(CLOCK_MONOTONIC) < p->kill_at)
		return;
	say(p, "warning", "the program did not end in time and is killed");
	pass_on(p, SIGKILL);
	p->kill_at = 0;
}

/* As process 1 of a container we get the children of those that have ended.  Nobody else waits for them. */
static void
reap_others(struct running *p)
{
	siginfo_t ended = { 0 };

	while (waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid && ended.si_pid != p->pid) {
		if (ended.si_pid != p->witness.pid) {
			waitpid(ended.si_pid, NULL, 0);
			continue;
		}
		witness_ended(&p->witness);
		p->look_at = clock_ns(CLOCK_MONOTONIC) + LOOK_NS; /* not at once: it may end again */
	}
}

/* The program's exit status. */
static int
wait_for(struct running *p, struct component_error *err)
{
	int status, failed = 0;

	for (;;) {
		struct pollfd fds[2] = { { p->signals, POLLIN, 0 }, { p->report, POLLIN, 0 } };
		bool          changed = waitpid(p->pid, &status, WNOHANG | WUNTRACED) == p->pid;

		if (changed && !WIFSTOPPED(status))
			break;
		if (changed && (!p->kill_at || p->kill_at == INT64_MAX))
			p->waker = witness_stop(p->pid);
		reap_others(p);
		kill_when_due(p);
		look_when_due(p);
		if (poll(fds, 2, time_left(p)) <= 0)
			continue;
		if (fds[1].revents)
			failed = report_read(p, err);
		if (fds[0].revents)
			signal_take(p);
	}
	if (p->report >= 0)
		failed = report_end(p, err);
	record_sweep();
	witness_end(&p->witness);
	if (failed)
		return failed;
	return WIFSIGNALED(status) ? SIGNAL_STATUS + WTERMSIG(status) : WEXITSTATUS(status);
}

static int
run(char **words, struct component_error *err)
{
	struct running p = { .report = -1, .signals = -1, .waker = -1, .look_ns = LOOK_NS };
	char           agent[PATH_MAX], **past = NULL;
	int            r;

	if (!words[0]) {
		component_error_set(err, "WARNING: no application command found. Write componentctl run [OPTION]... CMD [ARGUMENT]...");
		return -EINVAL;
	}
	r = id_choose(&p, words[0], err);
	if (!r)
		r = loadable_find(words[0], p.path, err);
	if (!r && enable)
		r = loadable_check(p.path, err);
	if (!r && enable)
		r = loadable_agent(agent, err);
	if (!r && enable)
		r = port_check(err);
	if (!r && enable)
		past = loadable_past_env(p.path, words);
	if (!r)
		r = start(&p, past ? past : words, err);
	if (!r)
		r = wait_for(&p, err);
	free(past);
	return r;
}

static const struct component_flag flags[] = {
	COMPONENT_FLAG_STRING("app-id", &app_id, "Name by which the other commands find the program; its own name if not given.",
		.section = "Run", .letter = 'a'),
	COMPONENT_FLAG_INT("app-port", &app_port, "Port on which the program serves its own clients; shown by list, and set as APP_PORT.",
		.section = "Run", .max = UINT16_MAX, .letter = 'p'),
	COMPONENT_FLAG_BOOL("enable-profiling", &enable, "Load the agent, and serve profiles of the program.",
		.section = "Run", .bits = COMPONENT_FLAG_BOOL_WORD),
	COMPONENT_FLAG_INT("profile-port", &profile_port, "Port on 127.0.0.1 for profiles; 0 and -1 are any free port.",
		.section = "Run", .min = -1, .max = UINT16_MAX),
	COMPONENT_FLAG_BOOL("follow-forks", &follow_forks, "Serve profiles of each process that the program forks, too; their records "
		"have its name, and say whose children they are.", .section = "Run"),
	COMPONENT_FLAG_DURATION("graceful-shutdown-timeout", &grace,
		"After TERM or INT was sent to componentctl run, kill the program if it has not ended within this time; below 0: never.",
		.section = "Run"),
	COMPONENT_FLAG_END
};

const struct command run_command = {
	.name = "run",
	.operands = "CMD [ARGUMENT]...",
	.summary = "Runs a program that was not built with the library, and serves its profiles.",
	.most = SIZE_MAX,
	.first = true,
	.flags = flags,
	.run = run,
};
