/*
 * preload.c - the agent: the profiling server in a program nobody rebuilt.
 *
 *     LD_PRELOAD=.../libcomponent-preload.so PPROF_BIND_ADDRESS=:6060 program
 *
 * Holds the allocation hooks, and this constructor, which reads three variables
 * and starts the server.  The core is libcomponent-preload-core.so beside it (core.c), loaded
 * when it is asked for: it is nine tenths of what the agent takes at the start of a
 * program, and most children of a daemon ask for nothing.
 *
 *     COMPONENT_ENABLE_PPROF              true or false; false wins over the rest
 *     COMPONENT_PROFILING_BIND_ADDRESS    where; does not switch on by itself
 *     PPROF_BIND_ADDRESS                  where, and switches on; "0" is off
 *
 * Under "componentctl run" a fourth one is there: under_run.h.
 *
 * What a stranger would get wrong:
 * - Children inherit LD_PRELOAD: a shell that the program runs would try for the
 *   same port and complain on the program's stderr.  A busy port is not worth a
 *   word when the parent process has this library too, or is this user's and may not be
 *   looked into: that of a daemon that was root is so.
 * - Nothing of the environment is taken out, though it would keep children quiet:
 *   the environment is the program's.  Only "componentctl run", which has put it there, has the agent
 *   take all of it out again before main(), without a call of malloc or of setenv(3).
 * - Other flags' variables are not read: a program that has libcomponent linked in
 *   reads them itself, and one that has not does not expect them.
 * - The core is for us alone (RTLD_LOCAL), so that no name of it meets one of the program's.  But a
 *   program that is linked with libcomponent.so has a core, whose labels and rates are meant.
 * - It is loaded by a path: where somebody stands before dlopen() (AddressSanitizer), the
 *   loader does not see who calls, and no search path of ours would count.
 *
 * Tests: tests/components/preload.t, tests/components/agent.t.
 */
#include <config.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <component/profiler.h>

#include "at_exit.h"
#include "follow_forks.h"
#include "one_thread.h"
#include "under_run.h"

#define ADDRESS_DEFAULT "127.0.0.1:6060"
#define ADDRESS_BYTES   32

#define CORE "libcomponent-preload-core.so"
/* CORE_LINKED: libcomponent's soname, which make passes. */
typedef __typeof__(component_profiler_start_options) start_fn;

/* One line, in one piece; the program's own stdio is not touched. */
static void
say(const char *what, const char *name, const char *value, const char *why)
{
	char line[COMPONENT_ERROR_MAX + 512];
	int  n;

	n = snprintf(line, sizeof(line), "libcomponent-preload: %s%s%s%s%s%s\n", what, name ? name : "",
		value ? "='" : "", value ? value : "", value ? "'" : "", why);
	if (n < 0)
		return;
	if ((size_t)n >= sizeof(line))
		n = sizeof(line) - 1;
	if (write(STDERR_FILENO, line, (size_t)n) < 0)
		return;
}

/* NULL for empty: what templates render means "not given". */
static const char *
variable(const char *name)
{
	const char *value = secure_getenv(name);

	return value && *value ? value : NULL;
}

static bool
is_one_of(const char *value, const char *const *words)
{
	while (*words && strcasecmp(value, *words) != 0)
		words++;
	return *words != NULL;
}

/* 1 yes, 0 no, -1 not given, -EINVAL neither. */
static int
boolean(const char *value)
{
	static const char *const yes[] = { "1", "t", "true", "yes", "on", NULL };
	static const char *const no[] = { "0", "f", "false", "no", "off", NULL };

	if (!value)
		return -1;
	if (is_one_of(value, yes))
		return 1;
	return is_one_of(value, no) ? 0 : -EINVAL;
}

/* The address to serve on, NULL for off; *ret_from: the variable that named it. */
static const char *
address_wanted(const char **ret_from)
{
	const char *enable = variable("COMPONENT_ENABLE_PPROF");
	const char *own = variable("COMPONENT_PROFILING_BIND_ADDRESS");
	const char *alias = variable("PPROF_BIND_ADDRESS");
	int         on = boolean(enable);

	if (on == -EINVAL) {
		say("", "COMPONENT_ENABLE_PPROF", enable, " is not a boolean; write true or false. Profiling is off");
		return NULL;
	}
	if (on == 0) {
		if (alias && strcmp(alias, "0") != 0)
			say("", "PPROF_BIND_ADDRESS", alias,
				" has no effect: COMPONENT_ENABLE_PPROF is false, which wins. Profiling is off");
		return NULL;
	}
	if (on < 0 && !alias) {
		if (own)
			say("", "COMPONENT_PROFILING_BIND_ADDRESS", own,
				" has no effect: profiling is not enabled; set COMPONENT_ENABLE_PPROF=true");
		return NULL;
	}
	*ret_from = own ? "COMPONENT_PROFILING_BIND_ADDRESS" : alias ? "PPROF_BIND_ADDRESS" : NULL;
	own = own ? own : alias ? alias : ADDRESS_DEFAULT;
	return strcmp(own, "0") == 0 ? NULL : own;
}

/* Of a process by /proc's own number, which getppid() does not tell where /proc is another pid namespace's; -1: not known. */
static long
status_number(const char *process, const char *key)
{
	char  line[4096];
	long  number = -1;
	FILE *f;

	snprintf(line, sizeof(line), "/proc/%s/status", process);
	f = fopen(line, "re");
	while (f && number < 0 && fgets(line, sizeof(line), f))
		if (!strncmp(line, key, strlen(key)))
			number = atol(line + strlen(key));
	if (f)
		fclose(f);
	return number;
}

/* Has our parent process this library as well?  True, too, where that is kept from us although it is this user's, as of
 * one that was root before. */
static bool
parent_may_have_us(void)
{
	char  parent[24], path[64], line[4096];
	FILE *f;
	bool  found;

	snprintf(parent, sizeof(parent), "%ld", status_number("self", "PPid:"));
	snprintf(path, sizeof(path), "/proc/%s/maps", parent);
	f = fopen(path, "re");
	found = !f && (errno == EACCES || errno == EPERM) && status_number(parent, "Uid:") == (long)getuid();
	while (f && !found && fgets(line, sizeof(line), f))
		found = strstr(line, "/libcomponent-preload.so") != NULL;
	if (f)
		fclose(f);
	return found;
}

/* The program's own, or the one beside us.  NULL: the loader has said why. */
static void *
core_load(void)
{
	void       *core = dlopen(CORE_LINKED, RTLD_NOW | RTLD_NOLOAD);
	char        path[PATH_MAX] = CORE;
	const char *name;
	Dl_info     here;

	if (core)
		return core;
	dlerror(); /* its memory */
	if (dladdr((void *)core_load, &here) && (name = strrchr(here.dli_fname, '/')) &&
	    (size_t)(name - here.dli_fname) + sizeof("/" CORE) <= sizeof(path))
		snprintf(path, sizeof(path), "%.*s/%s", (int)(name - here.dli_fname), here.dli_fname, CORE);
	return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/* ---- under componentctl run ---- */

struct run {
	int     fd; /* -1: not under it, or in a child of what is */
	int64_t app_port;
	long    parent;  /* whose children are followed; 0: they are not */
	char   *filters; /* in the variable; "": there is no room */
	char    id[128]; /* "": no record */
};

static void
run_read(struct run *run)
{
	const char *word = variable(RUN_VARIABLE);
	long long   port;
	int         fd, end = 0;

	if (!word || sscanf(word, "%d %lld %ld %127s %n", &fd, &port, &run->parent, run->id, &end) != 4 ||
	    (!run->parent && fcntl(fd, F_SETFD, FD_CLOEXEC))) {
		run->id[0] = '\0';
		run->parent = 0;
		return;
	}
	run->app_port = port;
	run->filters = (char *)(uintptr_t)word + end;
	if (fd >= 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) == 0)
		run->fd = fd;
	if (run->parent)
		memcpy((char *)(uintptr_t)word, RUN_NO_FD, strlen(RUN_NO_FD));
}

/* Of a program that the first process has become (exec), where it was before: its port is told already. */
static const char *
address_again(const struct run *run, char buf[ADDRESS_BYTES])
{
	const char *port = variable(RUN_PORT_VARIABLE);

	if (run->fd >= 0 || run->parent != (long)getpid() || !port || atoi(port) <= 0)
		return NULL;
	snprintf(buf, ADDRESS_BYTES, "127.0.0.1:%d", atoi(port) & 0xffff);
	return buf;
}

/* One line. */
static void
report(const struct run *run, const char *word, const char *text)
{
	char line[COMPONENT_ERROR_MAX + 16];
	int  n = snprintf(line, sizeof(line) - 1, "%s %s", word, text);

	if (run->fd < 0 || n < 0)
		return;
	n = n < (int)sizeof(line) - 1 ? n : (int)sizeof(line) - 2;
	for (int i = 0; i < n; i++)
		if (line[i] == '\n')
			line[i] = ' ';
	line[n++] = '\n';
	if (write(run->fd, line, (size_t)n) < 0)
		return; /* nobody listens any more */
}

/* With the port, which the program finds in its environment. */
static void
report_up(const struct run *run, void *core)
{
	typedef __typeof__(component_profiler_url) url_fn;
	url_fn     *url = (url_fn *)dlsym(core, "component_profiler_url");
	char        text[600] = "";
	const char *port;
	char       *variable = getenv(RUN_PORT_VARIABLE);

	if (run->fd < 0)
		return;
	if (url)
		url(text, sizeof(text));
	port = strrchr(text, ':');
	if (port && variable && strlen(variable) == strlen(RUN_PORT_UNKNOWN))
		snprintf(variable, sizeof(RUN_PORT_UNKNOWN), "%d", atoi(port + 1) & 0xffff);
	report(run, RUN_UP, text);
}

static void
report_off(const struct run *run, const char *why)
{
	if (run->fd >= 0)
		report(run, RUN_OFF, why);
	else
		say("profiling is off: ", NULL, NULL, why);
}

/* Our entry out of the list "LD_PRELOAD=a:b c", in place; false: nothing is left in it. */
static bool
preload_cut(char *variable)
{
	char *list = strchr(variable, '=') + 1, *to = list;

	for (char *at = list; *at;) {
		size_t size = strcspn(at, ": ");
		char   after = at[size];

		at[size] = '\0';
		if (!strstr(at, "libcomponent-preload.so")) {
			memmove(to, at, size);
			to += size;
			*to++ = after;
		}
		at += size + (after != '\0');
	}
	if (to > list && (to[-1] == ':' || to[-1] == ' ' || to[-1] == '\0'))
		to--;
	*to = '\0';
	return to > list;
}

/* Of the environment; an LD_PRELOAD may be another one afterwards. */
static bool
stays(const struct run *run, char *variable)
{
	if (!strcmp(variable, RUN_PORT_VARIABLE "=" RUN_PORT_UNKNOWN))
		return false;
	if (run->parent)
		return true;
	if (!strncmp(variable, "LD_PRELOAD=", strlen("LD_PRELOAD=")))
		return preload_cut(variable);
	return strncmp(variable, "COMPONENT_", strlen("COMPONENT_")) != 0;
}

/* The program's environment becomes what "componentctl run" was given, so that children are plain.  Where
 * children are followed it stays, but for a port that is none. */
static void
run_end(const struct run *run)
{
	char **to = environ, **from;

	if (run->fd < 0)
		return;
	close(run->fd);
	for (from = environ; from && *from; from++)
		if (stays(run, *from))
			*to++ = *from;
	if (!to || to == from)
		return;
	/* Behind it programs look for the auxiliary vector (Go).  What is left there ends the vector: then they ask /proc. */
	while (to < from)
		*to++ = NULL;
}

static bool
is_followed_child(const struct run *run)
{
	return run->parent && run->parent != (long)getpid();
}

static void
follow(const struct run *run, void *core)
{
	typedef __typeof__(component_profiler_follow_forks) follow_fn;
	follow_fn *fn = run->parent ? (follow_fn *)dlsym(core, "component_profiler_follow_forks") : NULL;

	if (fn)
		fn(run->id, run->app_port, run->parent, is_followed_child(run), run->filters);
	else if (run->parent)
		dlerror(); /* its memory: a program's own core has no such function */
}

/* ---- the program's end ---- */

static __typeof__(component_profiler_at_exit) *at_exit;

/* A program's own core has no such function. */
static void
at_exit_take(void *core)
{
	at_exit = (__typeof__(at_exit))dlsym(core, "component_profiler_at_exit");
	if (!at_exit)
		dlerror(); /* its memory */
}

__attribute__((destructor)) static void
end(void)
{
	if (at_exit)
		at_exit();
}

/* ---- its begin ---- */

/* A program's own core has but the second. */
static start_fn *
start_of(void *core)
{
	start_fn *apart = (start_fn *)dlsym(core, "component_profiler_start_apart");

	return apart ? apart : (start_fn *)dlsym(core, "component_profiler_start_options");
}

__attribute__((constructor)) static void
begin(void)
{
	struct component_profiler_options options = COMPONENT_PROFILER_OPTIONS_INIT;
	struct component_error            err = COMPONENT_ERROR_INIT;
	const char                       *from = NULL, *address, *again;
	char                              port[ADDRESS_BYTES];
	void                             *core;
	start_fn                         *start;
	struct run                        run = { .fd = -1 };
	int                               saved = errno, r;

	if (getauxval(AT_SECURE))
		return;
	run_read(&run);
	address = address_wanted(&from);
	if (!address)
		goto out;
	core = core_load();
	start = core ? start_of(core) : NULL;
	if (!start) {
		const char *why = dlerror();

		report_off(&run, why ? why : CORE " has no profiling server");
		dlerror(); /* its memory */
		goto out;
	}
	one_thread_begin(core);
	if (is_followed_child(&run)) {
		follow(&run, core);
		at_exit_take(core); /* for when it has a server */
		goto out;
	}
	again = address_again(&run, port);
	options.address = again ? again : address;
	options.how_named = from;
	options.record_id = run.id;
	options.record_port = run.app_port;
	r = start(&options, &err);
	if (r == -EADDRINUSE && again) { /* somebody else was faster */
		options.address = address;
		r = start(&options, &err);
	}
	if (r == 0) {
		report_up(&run, core);
		follow(&run, core);
		at_exit_take(core);
	} else if (run.fd >= 0 || !((r == -EADDRINUSE || r == -EALREADY) && parent_may_have_us()))
		report_off(&run, *err.text ? err.text : strerror(-r));
out:
	run_end(&run);
	errno = saved;
}
