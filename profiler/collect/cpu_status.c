/*
 * cpu_status.c - why CPU windows cannot be had or miss threads, in words for the index.
 *
 * What a stranger would get wrong: limits change, so whether there is room for timers is
 * asked anew as long as no window is open.
 *
 * Tests: tests/test_cpu_guest.c, tests/test_cpu_limits.c.
 */
#include <config.h>

#include "cpu.h"

#include <errno.h>

#include "cpu_parts.h"

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
	case EXDEV:
		return "threads cannot be listed: /proc is that of another pid namespace";
	case EAGAIN:
		return "no thread can be started (RLIMIT_NPROC, pids.max)";
	default:
		return "threads cannot be listed: /proc is not mounted or not readable";
	}
}

const char *
cpu_status_of_state(const struct cpu_timers_state *state)
{
	if (state->no_slot == 0)
		return "";
	return state->why == EAGAIN ? status_limit : cpu_status_refused;
}

const char *
cpu_status(void)
{
	const char *status = atomic_load(&cpu_engine.status);
	int         room;

	if (atomic_load(&cpu_engine.running) || (*status && status != status_limit))
		return status;
	pthread_mutex_lock(&cpu_engine.lock);
	room = cpu_timers_room();
	pthread_mutex_unlock(&cpu_engine.lock);
	return room == 0 ? "" : room == -EAGAIN ? status_limit : cpu_status_of_start(room);
}
