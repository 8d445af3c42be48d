/*
 * own_thread.c - threads of the library inside somebody else's process.
 *
 * A guest's thread must not take a signal that was meant for the daemon's, must
 * not inherit its real-time priority, and must be told apart from it in ps, in
 * gdb and by our own collectors.  All of that is settled before the thread runs:
 * the creator blocks every signal around pthread_create(), so there is no moment
 * at which the new thread could be chosen for one, and raises the "own" mark on
 * itself, so that the hooks see neither the call nor what it allocates.
 *
 * What a stranger would get wrong:
 * - The mark is initial-exec TLS.  The dynamic model may allocate on first touch,
 *   and this is read in signal handlers and inside malloc.
 * - glibc carves static TLS out of the thread's stack: a daemon with a megabyte
 *   of __thread data would leave a small stack with nothing.  Its size is added,
 *   found once by dl_iterate_phdr(), never again: that takes the loader's lock,
 *   which a daemon may hold for long in a constructor of a dlopened object.
 * - SCHED_OTHER may be refused, to a SCHED_IDLE process or by a seccomp filter, which
 *   chooses the error; then it is inherited.
 *
 * Why not pthread_attr_setsigmask_np(): glibc 2.32, we support 2.31.
 * Tests: tests/test_own_thread.c.
 */
#include <config.h>

#include "own_thread.h"

#include <errno.h>
#include <link.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define STACK_BYTES (256 * 1024) /* the deepest own use is libevent and inflate: below 64 KiB */

static __thread bool own __attribute__((tls_model("initial-exec")));
static _Atomic unsigned made, named;

struct start {
	void *(*run)(void *);
	void *arg;
	char  name[16]; /* the kernel's limit, NUL included */
};

static int
add_tls(struct dl_phdr_info *info, size_t size, void *arg)
{
	size_t *sum = arg;

	(void)size;
	for (size_t i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_TLS)
			*sum += info->dlpi_phdr[i].p_memsz + info->dlpi_phdr[i].p_align;
	return 0;
}

/* Racing first calls compute the same number. */
static size_t
stack_bytes(void)
{
	static size_t once;
	size_t        bytes = __atomic_load_n(&once, __ATOMIC_RELAXED);
	long          page = sysconf(_SC_PAGESIZE), least = sysconf(_SC_THREAD_STACK_MIN);

	if (bytes > 0)
		return bytes;
	dl_iterate_phdr(add_tls, &bytes);
	bytes += STACK_BYTES + (least > 0 ? (size_t)least : 0);
	bytes = (bytes + (size_t)page - 1) / (size_t)page * (size_t)page;
	__atomic_store_n(&once, bytes, __ATOMIC_RELAXED);
	return bytes;
}

static void *
begin(void *arg)
{
	struct start *s = arg;
	void         *(*run)(void *) = s->run;
	void         *run_arg = s->arg;

	own = true;
	prctl(PR_SET_NAME, s->name, 0, 0, 0);
	named++;
	free(s);
	return run(run_arg);
}

static int
create(struct start *s, pthread_t *ret)
{
	struct sched_param param = { .sched_priority = 0 };
	pthread_attr_t     attr;
	int                r;

	r = pthread_attr_init(&attr);
	if (r)
		return -r;
	r = pthread_attr_setstacksize(&attr, stack_bytes());
	if (r)
		goto out;
	pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attr, SCHED_OTHER);
	pthread_attr_setschedparam(&attr, &param);
	r = pthread_create(ret, &attr, begin, s);
	if (r && r != EAGAIN && r != ENOMEM) { /* a filter may say anything */
		pthread_attr_setinheritsched(&attr, PTHREAD_INHERIT_SCHED);
		r = pthread_create(ret, &attr, begin, s);
	}
out:
	pthread_attr_destroy(&attr);
	return -r;
}

int
own_thread_start(const char *name, void *(*run)(void *), void *arg, pthread_t *ret)
{
	struct start *s;
	sigset_t      all, before;
	pthread_t     thread;
	bool          was = own;
	int           r;

	if (strlen(name) >= sizeof(s->name))
		return -EINVAL;
	own = true; /* before the first allocation, until after the last free */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = -ENOMEM;
	s = calloc(1, sizeof(*s));
	if (!s)
		goto out;
	s->run = run;
	s->arg = arg;
	strcpy(s->name, name);
	made++; /* a thread begins with its creator's name, and may wait long for a CPU to change it */
	r = create(s, &thread);
	if (r) {
		made--;
		free(s);
		goto out;
	}
	*ret = thread;
out:
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	own = was;
	return r;
}

unsigned
own_threads_made(void)
{
	return made;
}

unsigned
own_threads_named(void)
{
	return named;
}

bool
own_thread_is(void)
{
	return own;
}
