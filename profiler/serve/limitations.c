/*
 * limitations.c - what is less in this process than it could be, and why.
 *
 * A daemon that has changed its root, or runs in a container that hides /proc or refuses
 * calls, is profiled by other ways.  Each of them has its limits, which the index tells.
 *
 * What a stranger would get wrong: all of this may change at any time, so it is not noted at
 * the start; and nobody may be blamed by guess.  That /proc cannot be read is the fact; whether
 * by chroot(2) or by a mount is not to be seen from within.
 *
 * Tests: tests/whole/restricted_process.t.
 */
#include <config.h>

#include "limitations.h"

#include <stdio.h>

#include "proc_self.h"
#include "thread_events.h"
#include "maps.h"
#include "memory.h"
#include "program_file.h"

#define TEXT_BYTES 640

static void
threads_without_proc(limitations_fn *fn, void *arg, const char *reason)
{
	char        text[TEXT_BYTES];
	const char *hooks = thread_events_status();

	snprintf(text, sizeof(text), "%s: threads are those that the hooks have seen begin, or whose "
		"numbers the kernel knows; a dump wakes each by a signal, even under a seccomp filter (who "
		"blocks them is [no answer]), and has no names of threads%s%s", reason, *hooks ? "; " : "", hooks);
	fn(arg, "threads", text);
	snprintf(text, sizeof(text), "%s: where blocked threads wait cannot be read, they are [no answer]",
		reason);
	fn(arg, "fgprof", text);
}

static void
names_without_proc(limitations_fn *fn, void *arg, const char *reason)
{
	char text[TEXT_BYTES];

	snprintf(text, sizeof(text), "%s: objects are known by the loader's list, code made at run time is "
		"not; where a file cannot be opened by its path only exported names are known%s", reason,
		program_file_is_held() ? ", but for the program's own" : "");
	fn(arg, "names", text);
}

static void
memory_refused(limitations_fn *fn, void *arg)
{
	struct memory m;
	const char   *text;
	int           r;

	if (!memory_call_refused())
		return;
	r = memory_open(&m);
	if (r < 0)
		text = "process_vm_readv() is refused and no descriptor is left: there are no names and no "
			"unwind tables";
	else if (m.to.fd >= 0)
		text = "process_vm_readv() is refused and /proc/thread-self/mem cannot be opened: memory is "
			"read through a socket, blocked threads may have to be woken";
	else
		text = "process_vm_readv() is refused (seccomp): /proc/thread-self/mem is read instead";
	fn(arg, "memory", text);
	if (r >= 0)
		memory_close(&m);
}

void
limitations_each(limitations_fn *fn, void *arg)
{
	const char *reason = proc_self_missing();

	if (*reason) {
		threads_without_proc(fn, arg, reason);
		if (maps_without_proc())
			names_without_proc(fn, arg, reason);
	}
	memory_refused(fn, arg);
}
