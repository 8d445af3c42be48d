/*
 * seccomp.c - has the program put threads of its own under a seccomp filter?
 *
 * What a stranger would get wrong:
 * - Every process of a container is under a filter, and is signalled all the same: that one
 *   lets programs be programs.  Meant is what a program adds itself once it has all it
 *   needs: more filters (TID/status counts them since Linux 5.9) than at the first look.
 * - Nobody can ask this of his own thread without a system call, and prctl(2) is on few
 *   lists.  Threads of ours read it of others: the file is readable by all, also after a
 *   setuid() inside the process.
 * - A filter comes when the program likes: one that has none at one look may have one before
 *   the next.  So what is done at the start and the end of every thread makes no system
 *   call in any case; this is for windows that are open.
 *
 * Tests: tests/whole/odd_threads.t.
 */
#include <config.h>

#include "seccomp.h"

#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proc_self.h"

static _Atomic int  began; /* filters at the first look, and one */
static _Atomic bool seen;

bool
seccomp_on(void)
{
	return atomic_load_explicit(&seen, memory_order_relaxed);
}

bool
seccomp_by(int filters)
{
	int none = 0;

	if (filters < 0)
		return false;
	atomic_compare_exchange_strong(&began, &none, filters + 1);
	if (filters < atomic_load(&began))
		return false;
	atomic_store(&seen, true);
	return true;
}

bool
seccomp_thread(pid_t tid)
{
	return seccomp_by(proc_self_filters(tid));
}

void
seccomp_look(void)
{
	if (!seccomp_on())
		seccomp_thread((pid_t)syscall(SYS_getpid));
}
