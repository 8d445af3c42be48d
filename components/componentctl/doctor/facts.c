/*
 * facts.c - what the kernel tells of a process that is in the way of looking into it.
 *
 * What a stranger would get wrong:
 * - Warned is of what costs something here.  A filter of seccomp is none of that for who looks from outside, and
 *   a limit only where it is near.
 * - Of another user's process links in /proc may not be read: what is not known is not guessed.
 *
 * Tests: tests/componentctl/doctor.t
 */
#include <config.h>

#include "facts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "outside.h"
#include "proc_status.h"
#include "refused.h"

#define DESCRIPTORS_LEFT 32 /* that the agent and a few clients take */
#define DESCRIPTORS_MORE 1024
#define OUR_DESCRIPTORS  "prlimit --pid=$$ --nofile=1000000:1000000" /* beyond the hard limit, where ulimit ends */
#define SIGNALS_MORE     65536
#define COMMAND_MAX      128
#define CAP_SYS_ADMIN    21
#define CAP_PERFMON      38

static int
open_of(pid_t pid, const char *name, int flags)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return open(path, flags | O_RDONLY | O_CLOEXEC);
}

/* Of /proc/PID/status; "": not known. */
static const char *
status_of(pid_t pid, const char *key, char value[PROC_STATUS_BYTES])
{
	*value = '\0';
	proc_status_find(open_of(pid, "status", 0), key, value);
	return value + strspn(value, " \t");
}

/* How many entries it has; -1: it may not be read. */
static int64_t
entries_of(pid_t pid, const char *name)
{
	int     fd = open_of(pid, name, O_DIRECTORY);
	DIR    *dir = fd < 0 ? NULL : fdopendir(fd);
	int64_t n = 0;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	for (struct dirent *e; (e = readdir(dir));)
		n += *e->d_name != '.';
	closedir(dir);
	return n;
}

/* ---- who else has to do with it ---- */

static void
tracer_look(pid_t pid, struct findings *f)
{
	char value[PROC_STATUS_BYTES], who[PROC_STATUS_BYTES], command[COMMAND_MAX];
	int  tracer = atoi(status_of(pid, "\nTracerPid:", value));

	snprintf(command, sizeof(command), "kill %d", tracer);
	if (tracer > 0)
		findings_warn(f, "tracer", command, "process %d (%s) traces it, and may stop it or change how long everything takes; detach "
			"or end that before you measure", tracer, status_of(tracer, "Name:", who));
}

static void
seccomp_look(pid_t pid, enum facts_of of, struct findings *f)
{
	static const char *const filtered[] = {
		[FACTS_SERVED] = "a filter decides which calls it may make; what that takes from the profiles is told above",
		[FACTS_UNHEARD] = "a filter decides which calls it may make",
		[FACTS_OUTSIDE] = "a filter, which who looks from outside does not meet",
		[FACTS_STARTED] = "a filter, which what is started here inherits",
	};
	char value[PROC_STATUS_BYTES], command[COMMAND_MAX];
	int  mode = atoi(status_of(pid, "\nSeccomp:", value));

	snprintf(command, sizeof(command), "componentctl profile %d", (int)pid);
	if (mode == 1 && of != FACTS_OUTSIDE)
		findings_warn(f, "seccomp", command, "strict: it may read, write and end, and nothing else; look at it from outside");
	else if (*value)
		findings_ok(f, "seccomp", NULL, "%s", mode == 2 ? filtered[of] : mode ? "strict" : "off");
}

/* Its namespace and ours: 1: they are two, 0: one, -1: that is not known. */
static int
is_elsewhere(pid_t pid, const char *name)
{
	char        theirs[64], ours[64];
	struct stat a, b;

	snprintf(theirs, sizeof(theirs), "/proc/%d/%s", (int)pid, name);
	snprintf(ours, sizeof(ours), "/proc/self/%s", name);
	return stat(theirs, &a) || stat(ours, &b) ? -1 : a.st_ino != b.st_ino || a.st_dev != b.st_dev;
}

static void
namespaces_look(pid_t pid, enum facts_of of, struct findings *f)
{
	static const struct { const char *path, *name; } all[] = {
		{ "ns/pid", "process numbers" }, { "ns/mnt", "mounts" }, { "ns/net", "network" }, { "ns/user", "users" },
		{ "root", "root" },
	};
	struct text names = TEXT_INIT;
	char        command[64];
	int         net = is_elsewhere(pid, "ns/net");

	if (of == FACTS_STARTED)
		return;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (is_elsewhere(pid, all[i].path) > 0)
			text_add(&names, "%s%s", names.size ? ", " : "", all[i].name);
	snprintf(command, sizeof(command), "nsenter -t %d -n componentctl doctor %d", (int)pid, (int)pid);
	if (net > 0 && of == FACTS_UNHEARD)
		findings_warn(f, "namespaces", command, "its own: %s; its address is not on this network, so ask for it there",
			text_string(&names));
	else if (names.size)
		findings_ok(f, "namespaces", NULL, "its own: %s; its files are read below /proc/%d/root", text_string(&names), (int)pid);
	else if (net < 0)
		findings_ok(f, "namespaces", NULL, "not known: they may not be read");
	else
		findings_ok(f, "namespaces", NULL, "those of this terminal");
	text_release(&names);
}

/* ---- limits ---- */

/* The command that gives a running process another limit, or what this terminal starts.  hard 0: as it is. */
static void
limit_command(pid_t pid, const char *name, char letter, uint64_t soft, uint64_t hard, char *buf, size_t size)
{
	char more[24] = "", whose[16] = "$$";

	if (hard)
		snprintf(more, sizeof(more), "%" PRIu64, hard);
	if (pid != getpid())
		snprintf(whose, sizeof(whose), "%d", (int)pid);
	if (pid == getpid() && !hard)
		snprintf(buf, size, "ulimit -S -%c %" PRIu64, letter, soft);
	else
		snprintf(buf, size, "prlimit --pid=%s --%s=%" PRIu64 ":%s", whose, name, soft, more);
}

static void
descriptors_look(pid_t pid, struct findings *f)
{
	struct rlimit l;
	int64_t       taken = entries_of(pid, "fd");
	uint64_t      used = (uint64_t)taken, more = used + DESCRIPTORS_MORE;
	char          command[COMMAND_MAX];

	if (taken < 0 || prlimit(pid, RLIMIT_NOFILE, NULL, &l))
		return;
	if (l.rlim_cur == RLIM_INFINITY || used + DESCRIPTORS_LEFT <= l.rlim_cur) {
		findings_ok(f, "descriptors", NULL, "%" PRIu64 " are taken, %" PRIu64 " may be (RLIMIT_NOFILE)", used, (uint64_t)l.rlim_cur);
		return;
	}
	if (l.rlim_max >= used + DESCRIPTORS_LEFT)
		limit_command(pid, "nofile", 'n', l.rlim_max, 0, command, sizeof(command));
	else
		limit_command(pid, "nofile", 'n', more, more, command, sizeof(command));
	findings_warn(f, "descriptors", command, "%" PRIu64 " of %" PRIu64 " are taken (RLIMIT_NOFILE), and the server needs some for its "
		"clients and for files with names", used, (uint64_t)l.rlim_cur);
}

/* Each thread's timer takes a place in its user's queue of signals; at most half of what is left is taken. */
static void
signals_look(pid_t pid, struct findings *f)
{
	char          value[PROC_STATUS_BYTES], command[COMMAND_MAX];
	uint64_t      used, limit, least, more;
	int64_t       threads = entries_of(pid, "task");
	struct rlimit l = { .rlim_max = RLIM_INFINITY };

	if (threads < 1 || sscanf(status_of(pid, "\nSigQ:", value), "%" SCNu64 "/%" SCNu64, &used, &limit) != 2)
		return;
	least = used + 2 * (uint64_t)threads;
	more = least + SIGNALS_MORE;
	prlimit(pid, RLIMIT_SIGPENDING, NULL, &l);
	if (l.rlim_max >= least)
		limit_command(pid, "sigpending", 'i', l.rlim_max < more ? l.rlim_max : more, 0, command, sizeof(command));
	else
		limit_command(pid, "sigpending", 'i', more, more, command, sizeof(command));
	if (limit < used || (limit - used) / 2 < (uint64_t)threads)
		findings_warn(f, "timers", command, "its user has %" PRIu64 " of %" PRIu64 " signals queued (RLIMIT_SIGPENDING), and half of "
			"the rest is too few for the timers of %" PRId64 " threads: CPU profiles miss some", used, limit, threads);
	else
		findings_ok(f, "timers", NULL, "%" PRId64 " for its threads, %" PRIu64 " can be had (RLIMIT_SIGPENDING)", threads,
			(limit - used) / 2);
}

/* Samples from outside take a descriptor of ours for each thread on each processor. */
static void
samplers_look(pid_t pid, struct findings *f)
{
	int64_t       threads = entries_of(pid, "task"), processors = sysconf(_SC_NPROCESSORS_CONF);
	struct rlimit l;

	if (threads > 0 && !getrlimit(RLIMIT_NOFILE, &l) && (uint64_t)(threads * processors) + DESCRIPTORS_LEFT > l.rlim_max)
		findings_warn(f, "descriptors", OUR_DESCRIPTORS, "of this terminal: %" PRIu64 ", and %" PRId64 " threads on %" PRId64
			" processors take one each", (uint64_t)l.rlim_max, threads, processors);
}

void
facts_look(pid_t pid, enum facts_of of, struct findings *f)
{
	tracer_look(pid, f);
	seccomp_look(pid, of, f);
	namespaces_look(pid, of, f);
	if (of == FACTS_OUTSIDE) {
		samplers_look(pid, f);
	} else {
		descriptors_look(pid, f);
		signals_look(pid, f);
	}
	facts_cgroup(pid, f);
}

/* ---- perf and yama ---- */

void
facts_perf(pid_t pid, struct findings *f)
{
	struct component_error err = COMPONENT_ERROR_INIT;
	bool                   kernel = true;
	char                   command[COMMAND_MAX] = "";
	int                    r = outside_may_sample(pid, &kernel, &err);

	if (r == -EPERM && refused_setting("kernel/perf_event_paranoid") > REFUSED_PARANOID_MOST)
		snprintf(command, sizeof(command), "sysctl kernel.perf_event_paranoid=2");
	else if (r == -EPERM && geteuid() && pid != getpid())
		snprintf(command, sizeof(command), "sudo componentctl doctor %d", (int)pid);
	else if (r == -EPERM)
		snprintf(command, sizeof(command), "docker run --cap-add=PERFMON --security-opt=seccomp=unconfined IMAGE");
	else if (r == -EMFILE || r == -ENFILE)
		snprintf(command, sizeof(command), OUR_DESCRIPTORS);
	else if (r == -ENOBUFS)
		snprintf(command, sizeof(command), "sysctl kernel.perf_event_mlock_kb=%d", REFUSED_MLOCK_KB);
	if (r < 0)
		findings_warn(f, "perf", command, "%s", err.text);
	else if (kernel)
		findings_ok(f, "perf", NULL, "CPU time can be sampled from outside");
	else
		findings_ok(f, "perf", "sysctl kernel.perf_event_paranoid=1", "CPU time can be sampled from outside, without what is "
			"spent in the kernel");
}

void
facts_switches(pid_t pid, struct findings *f)
{
	char     value[PROC_STATUS_BYTES], command[COMMAND_MAX];
	uint64_t caps = strtoull(status_of(pid, "\nCapEff:", value), NULL, 16);
	int      paranoid = refused_setting("kernel/perf_event_paranoid");
	bool     started = pid == getpid();

	if (atoi(status_of(pid, "\nSeccomp:", value)) == 2) {
		if (started)
			snprintf(command, sizeof(command), "docker run --security-opt=seccomp=unconfined IMAGE");
		else
			snprintf(command, sizeof(command), "sudo perf record -e context-switches -c 1 -g -p %d -- sleep 5", (int)pid);
		findings_warn(f, "perf", command, "a seccomp filter is in force, which may end a program that calls perf_event_open(): context "
			"switches of a trace come from the hooks alone, which miss those that no lock and no call causes; %s",
			started ? "if it is a container's, start that without" : "perf has all of them, from outside");
		return;
	}
	/* No command mends that: it takes another kernel. */
	if (paranoid < 0)
		findings_warn(f, "perf", NULL, "the kernel has no perf_event_open(2): context switches of a trace come from the hooks "
			"alone");
	else if (paranoid > REFUSED_PARANOID_MOST && !(caps >> CAP_SYS_ADMIN & 1) && !(caps >> CAP_PERFMON & 1))
		findings_warn(f, "perf", "sysctl kernel.perf_event_paranoid=2", "kernel.perf_event_paranoid is %d, and it has no "
			"CAP_PERFMON: context switches of a trace come from the hooks alone", paranoid);
	else
		findings_ok(f, "perf", NULL, "its traces may have the kernel's context switches");
}

void
facts_yama(struct findings *f)
{
	int scope = refused_setting("kernel/yama/ptrace_scope");

	if (scope > 0 && geteuid())
		findings_warn(f, "yama", "sysctl kernel.yama.ptrace_scope=0", "kernel.yama.ptrace_scope is %d: root alone may read the "
			"memory of a process that is not its child", scope);
}
