/*
 * notes.c - reads what a server says of itself: JSON of one form, an array of objects whose values are strings.
 *
 * The answer is looked at twice: what ends in the middle, or has another form, leaves no findings behind.
 *
 * What a stranger would get wrong: keys that are not known are passed over, so that later servers may say more.
 *
 * Tests: tests/componentctl/doctor.t
 */
#include <config.h>

#include "notes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shell.h"

struct note {
	const char *about, *level, *text;
};

static bool
skip(char **at, char c)
{
	*at += strspn(*at, " \t\r\n");
	if (**at != c)
		return false;
	++*at;
	return true;
}

/* A character beyond ASCII is passed on as it came; an escaped one becomes '?', unless it is ASCII. */
static bool
unescape(char **from, char **to)
{
	static const char names[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
	const char       *found = **from ? strchr(names, **from) : NULL;
	char              hex[5] = "", *end;
	unsigned long     code;

	if (found) {
		*(*to)++ = meant[found - names];
		++*from;
		return true;
	}
	if (**from != 'u')
		return false;
	strncpy(hex, *from + 1, 4);
	code = strtoul(hex, &end, 16);
	if (end != hex + 4 || !code)
		return false;
	*(*to)++ = code < 0x80 ? (char)code : '?';
	*from += 5;
	return true;
}

/* A string, which is written over itself without its escapes. */
static bool
string_read(char **at, const char **ret)
{
	char *from, *to;

	if (!skip(at, '"'))
		return false;
	from = to = *at;
	*ret = to;
	while (*from != '"') {
		if (!*from)
			return false;
		if (*from != '\\')
			*to++ = *from++;
		else if (from++, !unescape(&from, &to))
			return false;
	}
	*at = from + 1;
	*to = '\0';
	return true;
}

static bool
note_read(char **at, struct note *ret)
{
	*ret = (struct note){ "", "", "" };
	if (!skip(at, '{'))
		return false;
	do {
		const char *key, *value;

		if (!string_read(at, &key) || !skip(at, ':') || !string_read(at, &value))
			return false;
		if (!strcmp(key, "about"))
			ret->about = value;
		else if (!strcmp(key, "level"))
			ret->level = value;
		else if (!strcmp(key, "text"))
			ret->text = value;
	} while (skip(at, ','));
	return skip(at, '}') && *ret->about && *ret->level;
}

/* PID is written as the number where it is known, and TARGET as it was given. */
static void
fill_in(const struct target *t, const char *command, char *buf, size_t size)
{
	const char *word = strstr(command, "TARGET"), *pid = strstr(command, "PID");
	char        number[16], quoted[SHELL_WORD_MAX];

	snprintf(number, sizeof(number), "%d", (int)t->process);
	if (word)
		snprintf(buf, size, "%.*s%s%s", (int)(word - command), command, shell_word(t->word, quoted), word + strlen("TARGET"));
	else if (pid && t->process)
		snprintf(buf, size, "%.*s%s%s", (int)(pid - command), command, number, pid + strlen("PID"));
	else
		snprintf(buf, size, "%s", command);
}

/* What mends it, or shows more of it, by a part of the server's sentence: the first that is in it.  "": nothing is known to. */
static void
command_of(const struct target *t, const char *sentence, char *buf, size_t size)
{
	static const char rebuild[] = "cc SOURCES $(pkg-config --cflags --libs libcomponent)", memory[] = "prlimit --pid=PID --as=unlimited";
	static const char files[] = "prlimit --pid=PID --nofile=1048576:1048576", copies[] = "grep libcomponent /proc/PID/maps";
	static const char proc[] = "mount -t proc proc /proc/PID/root/proc", samples[] = "sudo perf record -g -p PID -- sleep 30";
	static const struct {
		const char *part, *command;
	} all[] = {
		{ "/proc is that of another pid namespace", "unshare --pid --fork --mount-proc PROGRAM" },
		{ "/proc is not mounted", proc },
		{ "/proc cannot be read", proc },
		{ "RLIMIT_NOFILE", files },
		{ "descriptor is left", files },
		{ "descriptors are left", files },
		{ "/proc/thread-self/mem cannot be opened", proc },
		{ "/sys is not mounted", "mount -t sysfs sysfs /proc/PID/root/sys" },
		{ "-lcomponent_hooks", "componentctl run PROGRAM" },
		{ "libcomponent-preload.so", "componentctl run PROGRAM" },
		{ "threads that block ", "componentctl run PROGRAM" },
		{ "component_after_fork()", "componentctl run --follow-forks -- PROGRAM" },
		{ "linked with -static", rebuild },
		{ "are of another version", rebuild },
		{ "copy of libcomponent", copies },
		{ "RLIMIT_MEMLOCK", "prlimit --pid=PID --as=unlimited --memlock=unlimited" },
		{ "no memory for ", memory },
		{ "out of memory", memory },
		{ "RLIMIT_NPROC", "prlimit --pid=PID --nproc=unlimited" },
		{ "RLIMIT_SIGPENDING", "prlimit --pid=PID --sigpending=unlimited" },
		{ "kernel.perf_event_paranoid", "sysctl kernel.perf_event_paranoid=2" },
		{ "a seccomp filter is in force", "sudo perf record -e context-switches -c 1 -g -p PID -- sleep 5" },
		{ "timer_create() is refused", samples },
		{ "uses SIGPROF and every real-time signal", samples },
		{ "valgrind runs one thread at a time", "componentctl profile TARGET" },
		{ "-Wl,--eh-frame-hdr", "cc -fasynchronous-unwind-tables -Wl,--eh-frame-hdr SOURCES" },
		{ "libcomponent-common", "apt-get install libcomponent-common" },
		{ "--profiling-memory", "PROGRAM --profiling-memory=128MiB" },
		{ "--profiling-token-file", "PROGRAM --profiling-token-file=FILE" },
	};
	bool is_own_malloc = strstr(sentence, "load libcomponent's hooks before it") != NULL;

	*buf = '\0';
	if (strstr(sentence, "its rate is 0"))
		shell_curl("-d heap-profile-rate=524288", t->socket, t->url, "rates", buf, size);
	else if (!strcmp(sentence, "none")) /* of the unwinder */
		snprintf(buf, size, "apt-get install libunwind8");
	else if (is_own_malloc && strstr(sentence, ".so")) /* a library's, which the agent comes before; a program's own stays */
		snprintf(buf, size, "componentctl run PROGRAM");
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]) && !*buf && !is_own_malloc; i++)
		if (strstr(sentence, all[i].part))
			fill_in(t, all[i].command, buf, size);
}

static void
note_tell(const struct target *t, const struct note *n, struct findings *f)
{
	char command[2 * SHELL_WORD_MAX + 128];

	command_of(t, n->text, command, sizeof(command));
	if (!strcmp(n->level, "ok"))
		findings_ok(f, n->about, NULL, "%s", *n->text ? n->text : "in order");
	else
		findings_warn(f, n->about, command, "%s", n->text);
}

/* f NULL: is it one? */
static bool
read_all(const struct target *t, char *at, struct findings *f)
{
	struct note n;

	if (!skip(&at, '['))
		return false;
	do {
		if (!note_read(&at, &n))
			return false;
		if (f)
			note_tell(t, &n, f);
	} while (skip(&at, ','));
	return skip(&at, ']') && at[strspn(at, " \t\r\n")] == '\0';
}

bool
notes_read(const struct target *t, const void *data, size_t size, struct findings *f)
{
	bool ok = true;

	/* First without findings. */
	for (int i = 0; i < 2 && ok; i++) {
		char *copy = strndup(data ? data : "", size);

		ok = copy && strlen(copy) == size && read_all(t, copy, i ? f : NULL);
		free(copy);
	}
	return ok;
}
