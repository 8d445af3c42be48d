/*
 * one_thread.c - hooks of the calls that go otherwise in a process of several threads.
 *
 * The agent's threads must not be noticed, and three kinds of calls notice them:
 *
 *   set*id(), setgroups()   glibc has each thread make the call, and ends the process if they do not all fare alike.
 *                           A program that has kept capabilities, or given some up, has done so in one thread.
 *   capset()                is for one thread: ours would keep what the program gives up
 *   unshare(), setns()      of a user namespace fail where there are several threads, and setns() of a mount namespace
 *                           where they share their working directory
 *
 * Our threads end, and begin again behind the call, as the caller is then (rest.c): before a set*id() if they
 * differ, behind a capset() if they may do more, and for the others if the real call has failed.
 *
 * prctl() also tells follow_forks.c of a seccomp filter, under which that must not make a system call.
 *
 * What a stranger would get wrong:
 * - set*id() are for signal handlers, and seccomp filters may allow little else.  So nothing is asked unless the
 *   program has made a call by which threads come to differ: capset(), or prctl() of what becomes of capabilities.
 * - unshare() and setns() have changed nothing when they fail.
 * - The real functions are looked up without the loader, whose lock a thread may hold for long.
 * - glibc calls its own setgroups() in initgroups(), past us.
 *
 * Tests: tests/componentctl/one_thread.t.
 */
#include <config.h>

#include "one_thread.h"

#include <dlfcn.h>
#include <errno.h>
#include <grp.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "abi.h"
#include "at_exit.h"
#include "follow_forks.h"

#define EXPORT   __attribute__((visibility("default")))
#define NEED_ONE (CLONE_NEWUSER | CLONE_THREAD | CLONE_SIGHAND | CLONE_VM)

static __typeof__(component_profiler_rest)     *rest;
static __typeof__(component_profiler_rest_end) *rest_end;
static bool                                     may_differ;

static __typeof__(component_profiler_confined)  *confined;

void
one_thread_begin(void *core)
{
	__typeof__(component_profiler_first) *first;

	rest_end = (__typeof__(rest_end))dlsym(core, "component_profiler_rest_end");
	if (!rest_end) {
		dlerror(); /* its memory: a program's own core has no such function */
		return;
	}
	rest = (__typeof__(rest))dlsym(core, "component_profiler_rest");
	first = (__typeof__(first))dlsym(core, "component_profiler_first");
	if (first)
		first();
	confined = (__typeof__(confined))dlsym(core, "component_profiler_confined");
}

static bool
begins(enum rest_why why)
{
	return rest && rest(why);
}

static int
ends(bool rests, int r)
{
	if (rests)
		rest_end();
	return r;
}

static void *
behind(const char *name)
{
	return HOOKS_HAVE(behind) ? component_hooks.behind(name) : dlsym(RTLD_NEXT, name);
}

#define REAL(name) \
	static __typeof__(name) *real; \
	if (!real) \
		real = (__typeof__(real))behind(#name)

#define CREDENTIALS(name, declared, given)                                 \
	EXPORT int name declared                                           \
	{                                                                  \
		REAL(name);                                                \
		bool rests = may_differ && begins(REST_UNLIKE);            \
                                                                           \
		return ends(rests, real given);                            \
	}

CREDENTIALS(setuid, (uid_t a), (a))
CREDENTIALS(seteuid, (uid_t a), (a))
CREDENTIALS(setreuid, (uid_t a, uid_t b), (a, b))
CREDENTIALS(setresuid, (uid_t a, uid_t b, uid_t c), (a, b, c))
CREDENTIALS(setgid, (gid_t a), (a))
CREDENTIALS(setegid, (gid_t a), (a))
CREDENTIALS(setregid, (gid_t a, gid_t b), (a, b))
CREDENTIALS(setresgid, (gid_t a, gid_t b, gid_t c), (a, b, c))
CREDENTIALS(setgroups, (size_t count, const gid_t *list), (count, list))
CREDENTIALS(initgroups, (const char *user, gid_t group), (user, group))

int capset(void *head, const void *data); /* of glibc, in none of its headers */

EXPORT int
capset(void *head, const void *data)
{
	REAL(capset);
	int r = real(head, data);

	if (r)
		return r;
	may_differ = true;
	return ends(begins(REST_MORE), r);
}

EXPORT int
prctl(int option, ...)
{
	REAL(prctl);
	unsigned long a[4];
	va_list       more;
	int           r;

	va_start(more, option);
	for (int i = 0; i < 4; i++)
		a[i] = va_arg(more, unsigned long);
	va_end(more);
	if ((option == PR_SET_SECCOMP || option == PR_SET_NO_NEW_PRIVS) && confined)
		confined();
	r = real(option, a[0], a[1], a[2], a[3]);
	if (r == 0 && (option == PR_SET_KEEPCAPS || option == PR_SET_SECUREBITS))
		may_differ = true;
	return r;
}

EXPORT int
unshare(int flags)
{
	REAL(unshare);
	int  before = errno, r = real(flags);
	bool rests;

	if (r == 0 || errno != EINVAL || !(flags & NEED_ONE))
		return r;
	rests = begins(REST_ALONE);
	errno = before;
	return ends(rests, real(flags)); /* where none rests ours may have ended just now, or it is the program's that is in the way */
}

EXPORT int
setns(int fd, int flags)
{
	REAL(setns);
	int  before = errno, r = real(fd, flags);
	bool rests;

	if (r == 0 || (errno != EINVAL && errno != EUSERS))
		return r;
	rests = begins(REST_ALONE);
	errno = before;
	return ends(rests, real(fd, flags));
}
