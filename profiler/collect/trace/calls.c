/*
 * calls.c - system calls that threads wait in, timed while a trace is open.
 *
 * What a stranger would get wrong:
 * - All of it may run in a signal handler, in the middle of anything.
 * - There is no cleanup handler.  One that the C library knows of would be left behind
 *   by a siglongjmp() out of a read(), which is nothing unusual, and a later
 *   pthread_exit() would jump into what is no longer there.  A wait that was cancelled
 *   is told when its thread ends (events_wait_gone()).
 * - The child of a vfork() has our memory, and so the switch; it is told by its pid.
 *
 * Tests: tests/trace/test_tracer.c, tests/trace/measured_waits.t.
 */
#include <config.h>

#include "calls.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi.h"
#include "events/wait.h"
#include "hidden_frames.h"
#include "our_thread.h"
#include "seccomp.h"
#include "which_core.h"

static _Atomic pid_t pid; /* whose calls these are */

static HOOKS_FRAME long
call(const struct hooks_wait *w)
{
	return ((hooks_call_fn *)component_hooks.next[w->name])(w->args[0], w->args[1], w->args[2], w->args[3],
		w->more[0], w->more[1], w->more[2]);
}

static uint8_t
reason_of(const struct hooks_wait *w)
{
	switch (w->name) {
	case HOOKS_nanosleep:
	case HOOKS_clock_nanosleep:
	case HOOKS_usleep:
	case HOOKS_sleep:
		return TRACE_SLEEP;
	case HOOKS_fsync:
	case HOOKS_fdatasync:
		return TRACE_OTHER;
	case HOOKS_poll:
	case HOOKS_ppoll:
	case HOOKS___poll_chk:
	case HOOKS___ppoll_chk:
		return w->args[1] ? TRACE_NETWORK : TRACE_SLEEP;
	case HOOKS_select:
	case HOOKS_pselect:
		return (int)w->args[0] ? TRACE_NETWORK : TRACE_SLEEP;
	default:
		return TRACE_NETWORK;
	}
}

/* Of a file, not of a socket or a pipe; asked when it has taken its time. */
static bool
is_file(const struct hooks_wait *w)
{
	struct stat st;

	switch (w->name) {
	case HOOKS_read:
	case HOOKS_write:
	case HOOKS_readv:
	case HOOKS_writev:
	case HOOKS___read_chk:
		return fstat((int)w->args[0], &st) == 0 && (S_ISREG(st.st_mode) || S_ISBLK(st.st_mode));
	default:
		return false;
	}
}

static HOOKS_FRAME long
on_call(struct hooks_wait *w)
{
	struct events_wait t = { .pc = w->pc, .sp = w->sp, .fp = w->fp, .reason = reason_of(w) };
	int64_t           now;
	long              r;
	int               saved;

	if (our_thread_is() || !events_wait_on() || (!seccomp_on() && getpid() != pid))
		return call(w);
	saved = errno;
	t.since_ns = trace_now_ns();
	events_wait_begin(&t);
	errno = saved;
	r = call(w);
	saved = errno;
	now = trace_now_ns();
	if (now - t.since_ns >= TRACE_CALL_LEAST_NS && !seccomp_on() && is_file(w))
		t.reason = TRACE_OTHER;
	events_wait_end(&t, now, TRACE_CALL_LEAST_NS);
	errno = saved;
	return r;
}

void
trace_calls_watch(bool on)
{
	if (!HOOKS_HAVE(call) || (on ? !hooks_claim() : !hooks_are_ours()))
		return;
	component_hooks.resolve();
	pid = getpid();
	component_hooks.call = on_call;
	__atomic_store_n(&component_hooks.call_state, on ? HOOKS_ON : HOOKS_OFF, __ATOMIC_RELEASE);
}
