/*
 * writers.c - which threads are writing into which ring of a trace right now.
 *
 *     enter: a place <- thread      leave: place <- 0
 *     ring of the place <- current, until it still is the current one
 *
 * A ring that no place names is nobody's: its memory can be given back.
 *
 * What a stranger would get wrong:
 * - A thread that is cancelled asynchronously, or leaves by siglongjmp() from a handler, never
 *   leaves its place.  Once it has ended the place is taken back; a counter could not be, as
 *   nobody would know whose it is.
 * - Ids of threads come again: a thread of that id which started later than the one that
 *   entered is another.  Its start is known to a hundredth of a second and is rounded
 *   down, so that it is never later than it was.
 * - A place that has just been claimed has no time of birth yet, and then is never taken back.
 * - A handler that interrupts a writer takes a place of its own.
 *
 * Tests: tests/trace/test_ring_writers.c, tests/trace/test_tracer.c.
 */
#include <config.h>

#include "writers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "our_fd.h"
#include "proc_self.h"
#include "ring.h"
#include "thread_id.h"

#define PROBES_MAX     32
#define STARTTIME      22 /* field of /proc/self/task/TID/stat, counted from 1 */
#define STAT_BYTES_MAX 1024

static struct trace_writer writers[TRACE_WRITERS_MAX];

static __thread int32_t tid_of_thread __attribute__((tls_model("initial-exec")));
static __thread int64_t thread_born_ns __attribute__((tls_model("initial-exec")));

/* BEGIN SIGNAL CONTEXT */

int32_t
trace_tid(void)
{
	if (tid_of_thread == 0) {
		thread_born_ns = clock_ns(CLOCK_BOOTTIME);
		tid_of_thread = thread_id_self();
	}
	return tid_of_thread;
}

struct trace_writer *
events_writers_enter(void)
{
	int32_t              tid = trace_tid(), nobody;
	struct trace_writer *w;

	for (uint32_t n = 0; n < PROBES_MAX; n++) {
		w = &writers[((uint32_t)tid + n) % TRACE_WRITERS_MAX];
		nobody = 0;
		if (atomic_load_explicit(&w->tid, memory_order_relaxed) == 0 &&
			atomic_compare_exchange_strong(&w->tid, &nobody, tid)) {
			atomic_store(&w->born_ns, thread_born_ns);
			return w;
		}
	}
	return NULL;
}

void
events_writers_leave(struct trace_writer *w)
{
	atomic_store_explicit(&w->ring, NULL, memory_order_release);
	atomic_store_explicit(&w->born_ns, 0, memory_order_release);
	atomic_store_explicit(&w->tid, 0, memory_order_release);
}

/* END SIGNAL CONTEXT */

/* When a thread started, by CLOCK_BOOTTIME; 0: not known. */
static int64_t
start_of(int32_t tid)
{
	char    text[STAT_BYTES_MAX], *at;
	ssize_t got;
	int     fd = proc_self_thread_open(tid, "stat");

	if (fd < 0)
		return 0;
	got = read(fd, text, sizeof(text) - 1);
	our_fd_close(fd);
	text[got > 0 ? got : 0] = '\0';
	at = strrchr(text, ')'); /* ends field 2: a name may hold anything */
	for (int field = 2; at && field < STARTTIME; field++)
		at = strchr(at + 1, ' ');
	return at ? (int64_t)(strtoull(at, NULL, 10) * (1000000000ULL / (uint64_t)sysconf(_SC_CLK_TCK))) : 0;
}

bool
events_writers_ended(int32_t tid, int64_t born_ns)
{
	if (syscall(SYS_tgkill, getpid(), tid, 0) < 0 && errno == ESRCH)
		return true;
	return born_ns && start_of(tid) > born_ns;
}

void
events_writers_sweep(void)
{
	int32_t tid;

	for (unsigned i = 0; i < TRACE_WRITERS_MAX; i++) {
		tid = atomic_load(&writers[i].tid);
		if (tid && events_writers_ended(tid, atomic_load(&writers[i].born_ns)) &&
			atomic_load(&writers[i].tid) == tid)
			events_writers_leave(&writers[i]);
	}
}

bool
events_writers_in(const void *ring)
{
	for (unsigned i = 0; i < TRACE_WRITERS_MAX; i++)
		if (atomic_load(&writers[i].ring) == ring)
			return true;
	return false;
}

void
events_writers_forget(void)
{
	tid_of_thread = 0;
}
