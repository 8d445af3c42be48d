/*
 * doctor.c - componentctl doctor: what is in the way of looking into a program, and the command that mends it.
 *
 *     TARGET that serves ──▶ does it answer? ──▶ what it says of itself (notes.h) ──▶ facts.h, if it is on this machine
 *     PID of another one ──▶ may it be looked at from outside? ──▶ facts.h
 *     CMD                ──▶ loadable_check(): the agent, from outside, or not at all ──▶ facts.h of what it would get
 *
 * What a stranger would get wrong:
 * - A word is a TARGET first, as for profile: the program that runs under that name, and not the command.  A path
 *   is a CMD.
 * - Options come before it, for what is behind a CMD is the CMD's.
 *
 * Tests: tests/componentctl/doctor.t
 */
#include <config.h>

#include "doctor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "facts.h"
#include "fetch.h"
#include "findings.h"
#include "listen_owner.h"
#include "loadable.h"
#include "names.h"
#include "notes.h"
#include "shell.h"
#include "target.h"
#include "unserved.h"

#define COMMAND_MAX (2 * SHELL_WORD_MAX + 64)

enum output { LINES, JSON };

static const char *const outputs[] = { "lines", "json", NULL };
static int               output;
static int64_t           seconds = 1;
static const char       *token_file = "";

/* ---- a server ---- */

/* By an address of this machine? */
static bool
is_near(const struct target *t)
{
	const char *host = strstr(t->url, "://") + 3;

	return !strncmp(host, "localhost", 9) || !strncmp(host, "127.", 4) || !strncmp(host, "[::1]", 5);
}

/* Is it the program that runs as pid?  What forwards a port to another machine listens, and is not. */
static bool
is_program_of(const struct target *t, pid_t pid)
{
	struct component_error err = COMPONENT_ERROR_INIT;
	struct fetched         answer;
	char                   path[64], line[PATH_MAX];
	int                    r = fetch(t, "cmdline", "", 0, false, token_file, &answer, &err), fd;
	ssize_t                n;
	size_t                 first;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);
	if (fd >= 0)
		close(fd);
	line[n > 0 ? n : 0] = '\0';
	first = strlen(line);
	r = !r && first && answer.size >= first && !memcmp(answer.data, line, first) && (answer.size == first || !answer.data[first]);
	fetch_release(&answer);
	return r;
}

/* Of a server whose address alone is known; 0: it is not here, or /proc does not tell. */
static pid_t
process_of(const struct target *t)
{
	const char        *host = strstr(t->url, "://") + 3, *end = host + strcspn(host, "/");
	const char        *bracket = memchr(host, ']', (size_t)(end - host)), *from = bracket ? bracket : host;
	const char        *colon = memchr(from, ':', (size_t)(end - from));
	int                port = colon ? atoi(colon + 1) : !strncmp(t->url, "https", 5) ? 443 : 80;
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	pid_t              pid = *t->socket || !is_near(t) ? 0 : listen_owner_process((const void *)&sa);

	return pid && is_program_of(t, pid) ? pid : 0;
}

/* Many a server answers with a token that it never looked at. */
static bool
is_refused_without_token(const struct target *t)
{
	struct component_error err = COMPONENT_ERROR_INIT;
	struct fetched         answer;
	int                    r = fetch(t, "", "format=json", 0, false, NULL, &answer, &err);

	fetch_release(&answer);
	return r == -EACCES;
}

static bool
is_told(const struct findings *f, const char *about)
{
	for (size_t i = 0; i < f->count; i++)
		if (!strcmp(f->items[i].about, about))
			return true;
	return false;
}

/* Who else may ask what was asked just now?  An abstract socket has no file, and is as open as a port. */
static void
access_look(const struct target *t, struct findings *f)
{
	if (is_told(f, "access"))
		return; /* the server knows better */
	if (*token_file && is_refused_without_token(t))
		findings_ok(f, "access", NULL, "the token was taken");
	else if (*t->socket == '/')
		findings_ok(f, "access", NULL, "a unix socket: its file's mode decides who may ask");
	else if (is_near(t))
		findings_ok(f, "access", NULL, "no token is asked for at %s", t->word);
	else
		findings_warn(f, "access", "PROGRAM --profiling-token-file=FILE", "no token is asked for: whoever reaches %s can see memory "
			"addresses, the command line and all profiles", t->word);
}

/* Why it could not be asked: r and sentence of fetch(). */
static void
unreachable_tell(const struct target *t, int r, const char *sentence, struct findings *f)
{
	const char *host = strstr(t->url, "://") + 3;
	char        command[COMMAND_MAX] = "", name[TARGET_MAX], word[SHELL_WORD_MAX];

	shell_word(t->word, word);
	if (*t->socket == '/' && access(t->socket, R_OK | W_OK) && errno == EACCES) {
		snprintf(command, sizeof(command), "sudo componentctl doctor %s", word);
		findings_warn(f, "reachable", command, "%s: this user may not open its socket; run this as the program's user, or as root",
			t->word);
		return;
	}
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(host, ":/"), host);
	if (r == -EACCES && strstr(sentence, "--profiling-allowed-host"))
		snprintf(command, sizeof(command), "PROGRAM --profiling-allowed-host=%s", shell_word(name, word));
	else if (r == -EACCES || !strncmp(sentence, "--token-file", strlen("--token-file")))
		snprintf(command, sizeof(command), "componentctl doctor --token-file=FILE %s", word);
	else if (r == -ECONNREFUSED)
		snprintf(command, sizeof(command), "componentctl list -o wide");
	else /* shows what is there instead */
		shell_curl("-v", t->socket, t->url, "", command, sizeof(command));
	findings_warn(f, "reachable", command, "%s", *sentence ? sentence : strerror(-r));
}

/* Does it answer?  *ret_ours: and it is not known to be another's, such as Go's. */
static bool
server_look(const struct target *t, bool *ret_ours, struct findings *f)
{
	struct component_error err = COMPONENT_ERROR_INIT;
	struct fetched         answer;
	int                    r = fetch(t, "", "format=json", 0, false, token_file, &answer, &err);

	*ret_ours = true;
	if (r < 0) {
		unreachable_tell(t, r, err.text, f);
	} else {
		findings_ok(f, "reachable", NULL, "%s answers", *t->socket ? t->socket : t->url);
		*ret_ours = notes_read(t, answer.data, answer.size, f);
		if (!*ret_ours)
			findings_ok(f, "server", NULL, "says nothing of itself: it is not libcomponent's, or older than 0.2");
		access_look(t, f);
	}
	fetch_release(&answer);
	return r == 0;
}

/* A profile of it; why there is none is told of a window alone. */
static void
profile_count(const struct target *t, const char *kind, int64_t window, struct names *n, struct findings *f)
{
	struct component_error err = COMPONENT_ERROR_INIT, why = COMPONENT_ERROR_INIT;
	struct fetched         answer;
	struct pprof           p = { .types = NULL };
	char                   query[32] = "", word[SHELL_WORD_MAX], command[SHELL_WORD_MAX + 64];
	int                    r;

	if (window)
		snprintf(query, sizeof(query), "seconds=%" PRId64, window);
	r = fetch(t, kind, query, window, true, token_file, &answer, &err);
	if (!r && read_profile(answer.data, answer.size, &p, &why) < 0) {
		component_error_set(&err, "%.500s: the answer for '%s' %s", t->word, kind, why.text);
		r = -EBADMSG;
	}
	snprintf(command, sizeof(command), "componentctl profile %s", shell_word(t->word, word));
	if (!r)
		names_count_profile(n, &p, window > 0);
	else if (window)
		findings_warn(f, kind, command, "%s", *err.text ? err.text : strerror(-r));
	read_release(&p);
	fetch_release(&answer);
}

static void
served_look(struct target *t, struct findings *f)
{
	struct component_error err = COMPONENT_ERROR_INIT;
	struct names           n = { .objects = NULL };
	char                   command[32];
	bool                   ours = true, heard = false;

	if (target_is_stopped(t)) {
		snprintf(command, sizeof(command), "kill -CONT %d", (int)t->process);
		findings_warn(f, "reachable", command, "process %d is stopped, and answers nobody until it goes on", (int)t->process);
		heard = true; /* nothing is known of its address */
	} else if (server_look(t, &ours, f)) {
		/* Another network may have another program at the same port. */
		heard = !t->process || is_program_of(t, t->process);
		t->process = t->process ? t->process : process_of(t);
		profile_count(t, "goroutine", 0, &n, f);
		if (seconds)
			profile_count(t, "profile", seconds, &n, f);
		if (t->process && !unserved_begin(t->process, false, &err))
			names_look(&n, false, 0);
		names_tell(&n, t->word, t->process, f);
		names_release(&n);
	}
	if (!t->process)
		return;
	if (ours)
		facts_switches(t->process, f);
	facts_look(t->process, !ours ? FACTS_OUTSIDE : heard || *t->socket == '/' ? FACTS_SERVED : FACTS_UNHEARD, f);
}

/* ---- a process that serves nothing ---- */

/* What mends that it cannot be looked at: r and sentence of unserved_begin(). */
static void
refusal_command(pid_t pid, int r, const char *sentence, char *buf, size_t size)
{
	*buf = '\0';
	if (r == -EPERM && geteuid())
		snprintf(buf, size, "sudo componentctl doctor %d", (int)pid);
	else if (r == -EPERM && strstr(sentence, "sysctl kernel.yama.ptrace_scope=0"))
		snprintf(buf, size, "sysctl kernel.yama.ptrace_scope=0");
	else if (r == -EPERM)
		snprintf(buf, size, "docker run --cap-add=SYS_PTRACE IMAGE");
	else if (r == -ENOEXEC)
		snprintf(buf, size, "file -L /proc/%d/exe", (int)pid);
	else if (r == -ESRCH)
		snprintf(buf, size, "ps -o pid,stat,comm -p %d", (int)pid);
}

static void
unserved_look(pid_t pid, struct findings *f)
{
	struct component_error err = COMPONENT_ERROR_INIT;
	struct names           n = { .objects = NULL };
	char                   word[24], command[96];
	int                    r = unserved_begin(pid, false, &err);

	snprintf(word, sizeof(word), "%d", (int)pid);
	if (r < 0) {
		refusal_command(pid, r, err.text, command, sizeof(command));
		findings_warn(f, "access", command, "none: %s", err.text);
	} else {
		snprintf(command, sizeof(command), "componentctl profile %d", (int)pid);
		findings_ok(f, "access", command, "from outside: process %d serves no profiles, and its memory may be read", (int)pid);
		facts_perf(pid, f);
		names_look(&n, true, seconds);
		names_tell(&n, word, pid, f);
		names_release(&n);
	}
	facts_look(pid, FACTS_OUTSIDE, f);
}

/* It could serve, and does not: sentence says so. */
static void
off_look(const struct target *t, const char *sentence, struct findings *f)
{
	char command[64];

	snprintf(command, sizeof(command), "componentctl enable %d", (int)t->process);
	findings_warn(f, "reachable", t->has_switch ? command : "PROGRAM --enable-pprof", "%s", sentence);
	unserved_look(t->process, f);
}

/* ---- a program that does not run yet ---- */

static void
loadable_look(const char *path, const char *word, struct findings *f)
{
	struct component_error err = COMPONENT_ERROR_INIT;
	char                   agent[PATH_MAX], command[COMMAND_MAX], quoted[SHELL_WORD_MAX];
	int                    r = loadable_check(path, &err);

	snprintf(command, sizeof(command), "componentctl run %s", shell_word(word, quoted));
	if (r == -ENOTSUP) {
		findings_warn(f, "access", "componentctl profile PID", "from outside, for the CPU time and the threads alone: %s", err.text);
		facts_perf(getpid(), f);
		facts_yama(f);
		return;
	}
	if (r < 0) {
		snprintf(command, sizeof(command), "file -L %s", shell_word(path, quoted));
		findings_warn(f, "access", command, "none: %s", err.text);
		return;
	}
	r = loadable_agent(agent, &err);
	if (r < 0)
		findings_warn(f, "access", "apt-get install libcomponent-preload", "from outside alone: %s", err.text);
	else
		findings_ok(f, "access", command, "the agent: it can be loaded into %s", path);
	facts_switches(getpid(), f);
}

/* ---- which of them ---- */

/* -ENOENT: no target has that name; err is as target_find() left it. */
static int
target_look(char **words, struct findings *f, struct component_error *err)
{
	struct target t;
	int           r = strchr(words[0], '/') && !strstr(words[0], "://") && strncmp(words[0], "unix:", 5) ? -ENOENT :
		target_find(&t, words[0], err);

	if ((r < 0 && r != -ECONNREFUSED) || t.is_file)
		return r < 0 ? r : -ENOENT; /* a CMD may have the name of a file here */
	if (words[1]) {
		component_error_set(err, "'%.200s' runs, and nothing may stand behind it; write options before it, and a command that "
			"has the same name by its path", words[0]);
		return -EINVAL;
	}
	if (r == -ECONNREFUSED)
		off_look(&t, err->text, f);
	else if (t.pid)
		unserved_look(t.pid, f);
	else
		served_look(&t, f);
	return 0;
}

static int
command_look(const char *word, struct findings *f, struct component_error *err)
{
	char path[PATH_MAX];
	int  r = loadable_find(word, path, err);

	if (r == -ENOENT) {
		component_error_set(err, "'%.200s': there is no such program, running or to be run; write HOST:PORT, a URL, unix:/path, an "
			"ID or PID, or a command", word);
		return r;
	}
	if (r < 0)
		return r;
	loadable_look(path, word, f);
	names_tell_file(path, f);
	facts_look(getpid(), FACTS_STARTED, f);
	return 0;
}

static int
print(const struct findings *f)
{
	struct text out = TEXT_INIT;
	int         r;

	if (output == JSON)
		findings_print_json(f, &out);
	else
		findings_print(f, &out);
	r = f->failed || out.failed ? -ENOMEM : f->warnings ? 1 : 0;
	if (r >= 0)
		fputs(text_string(&out), stdout);
	text_release(&out);
	return r;
}

static int
run(char **words, struct component_error *err)
{
	struct findings f = { .items = NULL };
	int             r = target_look(words, &f, err);

	if (r == -ENOENT)
		r = command_look(words[0], &f, err);
	if (!r)
		r = print(&f);
	findings_release(&f);
	return r;
}

static const struct component_flag flags[] = {
	COMPONENT_FLAG_ENUM("output", &output, "How the findings are written: lines are for people.", .section = "Doctor",
		.choices = outputs, .letter = 'o'),
	COMPONENT_FLAG_INT("seconds", &seconds, "How long CPU time is looked at, to see what is lost of it; 0: not at all.",
		.section = "Doctor", .min = 0, .max = 3600, .argument = "N"),
	COMPONENT_FLAG_STRING("token-file", &token_file, "File with the server's token in its first line.", .section = "Doctor",
		.argument = "FILE"),
	COMPONENT_FLAG_END
};

const struct command doctor_command = {
	.name = "doctor",
	.operands = "TARGET|CMD [ARGUMENT]...",
	.summary = "Says what is in the way of looking into a program, and the command that mends it.",
	.least = 1,
	.most = SIZE_MAX,
	.first = true,
	.flags = flags,
	.run = run,
};
