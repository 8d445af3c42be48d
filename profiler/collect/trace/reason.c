/*
 * reason.c - what a wait is, by the system call it is in.
 *
 * A read() may be of a file or of a socket; most that a dump finds blocked are of the
 * latter, for files answer before anybody looks.
 *
 * Tests: tests/trace/test_tracer.c.
 */
#include <config.h>

#include "reason.h"

#include <stddef.h>
#include <sys/syscall.h>

#include "trace.h"

static const int network[] = {
	SYS_read, SYS_write, SYS_readv, SYS_writev, SYS_recvfrom, SYS_recvmsg, SYS_recvmmsg, SYS_sendto, SYS_sendmsg,
	SYS_sendmmsg, SYS_accept, SYS_accept4, SYS_connect, SYS_ppoll, SYS_pselect6, SYS_epoll_pwait,
#ifdef SYS_poll
	SYS_poll,
#endif
#ifdef SYS_select
	SYS_select,
#endif
#ifdef SYS_epoll_wait
	SYS_epoll_wait,
#endif
#ifdef SYS_epoll_pwait2
	SYS_epoll_pwait2,
#endif
};

uint8_t
trace_reason_of_call(int32_t number)
{
	if (number == SYS_futex)
		return TRACE_SYNC;
	if (number == SYS_nanosleep || number == SYS_clock_nanosleep)
		return TRACE_SLEEP;
	for (size_t i = 0; i < sizeof(network) / sizeof(network[0]); i++)
		if (network[i] == number)
			return TRACE_NETWORK;
	return TRACE_OTHER;
}
