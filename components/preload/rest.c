/*
 * rest.c - the profiler's threads out of the way of a call that goes otherwise where there are several.
 *
 *     the program:  setresuid() ──▶ hook ── do ours differ? ── they end ──▶ real call ──▶ they begin again, as the caller is now
 *
 * Tests: tests/componentctl/one_thread.t.
 */
#include <config.h>

#include "rest.h"

#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"
#include "our_thread.h"
#include "profiler.h"
#include "seccomp.h"

#define OURS_MAX 128
#define WAIT_NS  CLOCK_NS_PER_S

/* Of the process that the server is in: a child of vfork() or clone() has another, and none of our threads. */
static pid_t pid;

void
component_profiler_rest_prepare(void)
{
	pid = getpid();
}

/* A thread that has just ended has none; the caller's are those of 0. */
static int
capabilities(pid_t tid, struct __user_cap_data_struct ret[_LINUX_CAPABILITY_U32S_3])
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3, .pid = tid };

	return (int)syscall(SYS_capget, &head, ret);
}

static bool
differ(void)
{
	struct __user_cap_data_struct own[_LINUX_CAPABILITY_U32S_3], other[_LINUX_CAPABILITY_U32S_3];
	pid_t                         tids[OURS_MAX];
	size_t                        count = our_thread_ids(tids, OURS_MAX);

	if (count == 0 || capabilities(0, own))
		return false;
	for (size_t i = 0; i < count; i++)
		if (!capabilities(tids[i], other) && memcmp(own, other, sizeof(own)) != 0)
			return true;
	return false;
}

static bool
are_in_the_way(enum rest_why why)
{
	if (!component_profiler_running() || getpid() != pid || our_thread_is() || seccomp_on())
		return false;
	our_thread_all_here(WAIT_NS); /* those that were just started again */
	return why == REST_ALONE || differ();
}

bool
component_profiler_rest(enum rest_why why)
{
	int  saved = errno;
	bool rests = are_in_the_way(why) && profiler_rest();

	if (rests && why == REST_ALONE)
		our_thread_all_gone(WAIT_NS);
	errno = saved;
	return rests;
}

void
component_profiler_rest_end(void)
{
	int saved = errno;

	profiler_rest_end();
	errno = saved;
}
