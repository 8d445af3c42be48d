/*
 * one_thread.c - hooks of the calls that go otherwise in a process of several threads.
 *
 * The agent's threads must not be noticed, and three kinds of calls notice them:
 *
 *   set*id(), setgroups()   glibc has each thread make the call, and ends the process if they do not all fare alike.
 *                           A program that has kept capabilities, or given some up, has done so in one thread.
 *   capset()                is for one thread: ours would keep what the program gives up
 *   unshare(), setns()      of user, mount and time namespaces fail where there are several
 *
 * So our threads end before such a call, if they are in its way, and begin again behind it, as the caller is
 * then (rest.c).  Without a server, and in a forked child, there is none in the way.
 *
 * What a stranger would get wrong:
 * - set*id() are for signal handlers, too: unless capabilities differ nothing but capget(2) is added.
 * - A namespace of the network is each thread's own: ours stay where they can be reached.
 * - glibc calls its own setgroups() in initgroups(), past us.
 *
 * Tests: tests/componentctl/one_thread.t.
 */
#include <config.h>

#include "one_thread.h"

#include <dlfcn.h>
#include <errno.h>
#include <grp.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <unistd.h>

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif

#define EXPORT        __attribute__((visibility("default")))
#define NEED_ONE      (CLONE_NEWUSER | CLONE_NEWTIME | CLONE_THREAD | CLONE_SIGHAND | CLONE_VM)
#define NEED_ONE_JOIN (CLONE_NEWUSER | CLONE_NEWTIME | CLONE_NEWNS)

static __typeof__(component_profiler_rest)     *rest;
static __typeof__(component_profiler_rest_end) *rest_end;

void
one_thread_begin(void *core)
{
	__typeof__(component_profiler_rest_prepare) *prepare =
		(__typeof__(prepare))dlsym(core, "component_profiler_rest_prepare");

	if (!prepare) {
		dlerror(); /* its memory: a program's own core has no such function */
		return;
	}
	prepare();
	rest_end = (__typeof__(rest_end))dlsym(core, "component_profiler_rest_end");
	rest = (__typeof__(rest))dlsym(core, "component_profiler_rest");
}

static bool
begins(enum rest_why why)
{
	return rest && rest(why);
}

/* Behind a call that may have changed the caller alone. */
static int
ends(bool rests, int r)
{
	if (rests || begins(REST_CREDENTIALS))
		rest_end();
	return r;
}

#define REAL(name) \
	static __typeof__(name) *real; \
	if (!real) \
		real = (__typeof__(real))dlsym(RTLD_NEXT, #name)

#define CREDENTIALS(name, declared, given)                                 \
	EXPORT int name declared                                           \
	{                                                                  \
		REAL(name);                                                \
		bool rests = begins(REST_CREDENTIALS);                     \
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
CREDENTIALS(capset, (void *head, const void *data), (head, data))

EXPORT int
unshare(int flags)
{
	REAL(unshare);
	bool rests = (flags & NEED_ONE) && begins(REST_ALONE);

	return ends(rests, real(flags));
}

static int
kind_of(int fd, int flags)
{
	int saved = errno;

	if (!flags)
		flags = ioctl(fd, NS_GET_NSTYPE);
	errno = saved;
	return flags < 0 ? 0 : flags;
}

EXPORT int
setns(int fd, int flags)
{
	REAL(setns);
	bool rests = (kind_of(fd, flags) & NEED_ONE_JOIN) && begins(REST_ALONE);

	return ends(rests, real(fd, flags));
}
