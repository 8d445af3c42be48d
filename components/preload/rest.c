/*
 * rest.c - the profiler's threads out of the way of a call that goes otherwise where there are several.
 *
 *     the program:  setresuid() ──▶ hook ── do ours differ? ── they end ──▶ real call ──▶ they begin again, as the caller is now
 *
 * What a stranger would get wrong: a child of a bare clone() has all of our memory and may have our number, as
 * process 1 of another namespace.  The kernel says whether a thread of ours is in this process.
 *
 * Tests: tests/componentctl/one_thread.t.
 */
#include <config.h>

#include "rest.h"

#include <errno.h>
#include <linux/capability.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <component/profiler.h>

#include "clock.h"
#include "follow_forks.h"
#include "our_thread.h"
#include "profiler.h"
#include "seccomp.h"

#define OURS_MAX 128
#define WAIT_NS  (5 * CLOCK_NS_PER_S)

struct capabilities {
	struct __user_cap_data_struct of[_LINUX_CAPABILITY_U32S_3];
};

static int cancel; /* of who rests */

/* tid: 0 is the caller.  A thread that has just ended has none. */
static bool
capabilities_read(pid_t tid, struct capabilities *ret)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3, .pid = tid };

	return syscall(SYS_capget, &head, ret->of) == 0;
}

static bool
has_more(const struct capabilities *a, const struct capabilities *b)
{
	for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
		if (a->of[i].permitted & ~b->of[i].permitted)
			return true;
	return false;
}

static bool
are_in_the_way(enum rest_why why)
{
	struct capabilities own, other;
	pid_t               tids[OURS_MAX], pid = getpid();
	size_t              count;
	bool                here = false;

	our_thread_all_here(WAIT_NS); /* those that were just started again */
	count = our_thread_ids(tids, OURS_MAX);
	for (size_t i = 0; i < count && !here; i++)
		here = syscall(SYS_tgkill, pid, tids[i], 0) == 0;
	if (!here || why == REST_ALONE)
		return here;
	if (!capabilities_read(0, &own))
		return false;
	for (size_t i = 0; i < count; i++)
		if (capabilities_read(tids[i], &other) &&
		    (why == REST_MORE ? has_more(&other, &own) : memcmp(&own, &other, sizeof(own)) != 0))
			return true;
	return false;
}

bool
component_profiler_rest(enum rest_why why)
{
	int  saved = errno, was;
	bool rests;

	if (our_thread_is() || seccomp_on())
		return false;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &was);
	if (follow_forks_settle(WAIT_NS) && !component_profiler_running() && why == REST_ALONE)
		our_thread_all_gone(WAIT_NS); /* one that could start no server */
	rests = component_profiler_running() && are_in_the_way(why) && profiler_rest();
	if (rests) {
		cancel = was;
		if (why == REST_ALONE)
			our_thread_all_gone(WAIT_NS);
		else
			our_thread_all_ended(WAIT_NS);
	} else {
		pthread_setcancelstate(was, NULL);
	}
	errno = saved;
	return rests;
}

void
component_profiler_rest_end(void)
{
	int saved = errno, was = cancel;

	profiler_rest_end();
	pthread_setcancelstate(was, NULL);
	errno = saved;
}
