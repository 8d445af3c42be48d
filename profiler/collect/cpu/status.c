/*
 * status.c - why CPU windows cannot be had or miss threads, in words for the index.
 *
 * What a stranger would get wrong: limits change, so whether there is room for timers is
 * asked anew as long as no window is open.
 *
 * Tests: tests/test_cpu_guest.c, tests/test_cpu_limits.c.
 */
#include <config.h>

#include "cpu.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>

#include "own_thread.h"
#include "parts.h"
#include "proc_self.h"
#include "signal.h"
#include "timers_parts.h"

#define BLOCKED_LOOKS 512 /* threads looked at for one answer: some milliseconds */

static const char status_limit[] =
	"RLIMIT_SIGPENDING leaves no timers for some threads: raise it (ulimit -i, LimitSIGPENDING=)";
const char cpu_status_refused[] = "timer_create() is refused to this process (seccomp?)";

const char *
cpu_status_of_start(int err)
{
	switch (-err) {
	case EBUSY:
		return "the program uses SIGPROF and every real-time signal";
	case ENOMEM:
		return "there is no memory for samples (RLIMIT_AS, RLIMIT_MEMLOCK)";
	case EMFILE:
	case ENFILE:
		return "threads cannot be listed: no descriptor is free (RLIMIT_NOFILE)";
	case EAGAIN:
		return "no thread can be started (RLIMIT_NPROC, pids.max)";
	default:
		return "threads cannot be listed: /proc cannot be read";
	}
}

const char *
cpu_status_of_state(const struct cpu_timers_state *state)
{
	if (state->no_slot == 0)
		return "";
	return state->why == EAGAIN ? status_limit : cpu_status_refused;
}

/* ---- threads that block the signal ---- */

struct blocked {
	int      signal_number;
	unsigned looked, count;
	pid_t    first;
};

static void
on_thread(void *arg, pid_t tid)
{
	struct blocked *b = arg;

	if (b->looked == BLOCKED_LOOKS || own_thread_has(tid))
		return;
	b->looked++;
	if (!(proc_self_blocked_now(tid) >> (b->signal_number - 1) & 1))
		return;
	if (b->count++ == 0)
		b->first = tid;
}

void
cpu_status_blocked(char *buf, size_t size)
{
	struct blocked b = { .signal_number = cpu_slots_signal() > 0 ? cpu_slots_signal() : SIGPROF };
	char           name[PROC_SELF_NAME_BYTES], number[32];

	*buf = '\0';
	if (proc_self_threads(on_thread, &b) < 0 || b.count == 0)
		return;
	proc_self_name(b.first, name);
	cpu_signal_name(b.signal_number, number, sizeof(number));
	snprintf(buf, size, "threads that block %s, since before profiling began or unseen by the hooks: %u%s, thread %d \"%s\" among "
		"them; their CPU time is [lost samples]", number, b.count, b.looked == BLOCKED_LOOKS ? " or more" : "",
		(int)b.first, name);
}

const char *
cpu_status(void)
{
	const char *status = atomic_load(&cpu_engine.status);
	int         room;

	if (atomic_load(&cpu_engine.running) || (*status && status != status_limit))
		return status;
	pthread_mutex_lock(&cpu_engine.windows.lock);
	room = cpu_timers_room();
	pthread_mutex_unlock(&cpu_engine.windows.lock);
	return room == 0 ? "" : room == -EAGAIN ? status_limit : cpu_status_of_start(room);
}
