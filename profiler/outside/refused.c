/*
 * refused.c - what the kernel keeps from us, in one sentence.
 *
 * Another user's process is kept from all but root.  One's own is, too, where it has gained privileges, where
 * yama allows a parent alone to look, or where perf is for root.
 *
 * Tests: tests/componentctl/outside.t.
 */
#include <config.h>

#include "refused.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int
refused_setting(const char *name)
{
	char    path[64], text[16];
	ssize_t n;
	int     fd;

	snprintf(path, sizeof(path), "/proc/sys/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return -1;
	text[n] = '\0';
	return atoi(text);
}

/* Does it belong to another user, or has it gained privileges?  Both make its files root's, or another's. */
static bool
is_others(pid_t pid)
{
	char        path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	return stat(path, &st) < 0 || st.st_uid != geteuid();
}

/* A process, or what is left of it. */
static bool
is_there(pid_t pid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	return access(path, F_OK) == 0;
}

/* Root that is kept from it is not all of root, as in a container. */
#define WHO_MAY(capability) \
	(geteuid() ? "run this as root" : "run this outside of the container, or with " capability)

int
refused_process(pid_t pid, int r, struct component_error *err)
{
	if (r == -ESRCH && is_there(pid)) {
		component_error_set(err, "%d: is a thread of the kernel's, or has ended, or its first thread has; then there is no code to look at", (int)pid);
		return r;
	}
	if (r == -ESRCH || r == -ENOENT) {
		component_error_set(err, "%d: there is no such process", (int)pid);
		return -ESRCH;
	}
	if (r == -ENOEXEC) {
		component_error_set(err, "%d: its program is for another processor than this one's (32 bits?), and its stacks "
			"cannot be walked here", (int)pid);
		return r;
	}
	if (r != -EACCES && r != -EPERM) {
		component_error_set(err, "%d: cannot be looked at: %s", (int)pid, strerror(-r));
		return r;
	}
	if (is_others(pid))
		component_error_set(err, "%d: is another user's process, or has gained privileges; %s", (int)pid, WHO_MAY("CAP_SYS_PTRACE"));
	else if (refused_setting("kernel/yama/ptrace_scope") > 0)
		component_error_set(err, "%d: its memory may not be read, as kernel.yama.ptrace_scope is %d; write 'sysctl "
			"kernel.yama.ptrace_scope=0', or %s", (int)pid, refused_setting("kernel/yama/ptrace_scope"), WHO_MAY("CAP_SYS_PTRACE"));
	else
		component_error_set(err, "%d: its memory may not be read: %s; %s", (int)pid, strerror(-r), WHO_MAY("CAP_SYS_PTRACE"));
	return -EPERM;
}

int
refused_perf(pid_t pid, int r, struct component_error *err)
{
	int paranoid = refused_setting("kernel/perf_event_paranoid");

	if (r == -ESRCH)
		return refused_process(pid, r, err);
	if (r == -ENOSYS || r == -EOPNOTSUPP) {
		component_error_set(err, "%d: CPU time cannot be sampled from outside here: %s", (int)pid,
			paranoid < 0 ? "the kernel has no perf_event_open(2)" : "this processor's registers are not known");
		return r;
	}
	if (r == -EMFILE || r == -ENFILE) {
		component_error_set(err, "%d: has too many threads for the descriptors that this process may have; run this "
			"as root, with 'ulimit -n 1000000' before", (int)pid);
		return r;
	}
	if (r == -ENOBUFS) {
		component_error_set(err, "%d: cannot be sampled, as this user may lock no more memory (another profiler?); write 'sysctl "
			"kernel.perf_event_mlock_kb=%d', or %s", (int)pid, REFUSED_MLOCK_KB, WHO_MAY("CAP_IPC_LOCK"));
		return r;
	}
	if (r != -EACCES && r != -EPERM) {
		component_error_set(err, "%d: cannot be sampled: %s", (int)pid, strerror(-r));
		return r;
	}
	if (paranoid > REFUSED_PARANOID_MOST)
		component_error_set(err, "%d: may not be sampled, as kernel.perf_event_paranoid is %d; write 'sysctl "
			"kernel.perf_event_paranoid=%d', or %s", (int)pid, paranoid, REFUSED_PARANOID_MOST, WHO_MAY("CAP_PERFMON"));
	else
		component_error_set(err, "%d: may not be sampled: perf_event_open(2) says '%s' (a container's seccomp rules?); %s%s",
			(int)pid, strerror(-r), WHO_MAY("CAP_PERFMON"), geteuid() ? ", or outside of the container" : "");
	return -EPERM;
}
