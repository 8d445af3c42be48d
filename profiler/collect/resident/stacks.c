/*
 * stacks.c - which addresses are the stack of which thread.
 *
 *     guard ── grows down ◀── stack ── the thread's own variables ── struct pthread
 *                                                                     └ the list of robust mutexes
 *
 * The kernel knows of each thread where its list of robust mutexes is, and glibc keeps that in the
 * thread's record at the upper end of its stack: get_robust_list(2) tells it of any thread of this
 * process, running or blocked, without waking it.
 *
 * What a stranger would get wrong:
 * - A stack begins where its guard ends.  Where the kernel keeps the guard inside of the mapping, or
 *   a program has given the stack itself, the mapping may hold much else: then no more is taken than
 *   the end of the stack below, or what a thread gets that asks for nothing.
 * - Stacks of threads that have ended are kept by glibc for the next ones.  They look as a stack
 *   does: a guard, and the usual size.
 * - The first thread's is [stack], and its record elsewhere, perhaps right above another thread's.  But in
 *   a child that a thread has forked, that thread is the first one, and its stack looks as one does.
 *
 * Tests: tests/memory/memory.t.
 */
#include <config.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "our_thread.h"
#include "owners.h"
#include "proc_self.h"
#include "seccomp.h"
#include "thread_id.h"

#define RECORD_MAX ((uintptr_t)64 << 10) /* bytes above the list's head: variables of threads, on some processors */

struct stacks {
	struct owners *owners;
	struct ranges *to;
	size_t         usual; /* bytes of a stack that nobody has asked for */
	int            error;
};

/* What pthread_setattr_default_np() has said, or the limit of stacks when the program began. */
static size_t
usual_bytes(void)
{
	size_t         bytes = 0;
	pthread_attr_t attr;

	if (pthread_attr_init(&attr))
		return 0;
	pthread_attr_getstacksize(&attr, &bytes);
	pthread_attr_destroy(&attr);
	return bytes;
}

/* The guard below a mapping: it may neither be read nor written. */
static const struct smaps_mapping *
guard_below(const struct smaps *s, const struct smaps_mapping *m)
{
	const struct smaps_mapping *below = m > s->all ? m - 1 : NULL;

	if (!below || below->limit != m->start || below->readable || below->writable || *below->path)
		return NULL;
	return below;
}

static int
row_of(struct stacks *s, pid_t tid)
{
	char name[PROC_SELF_NAME_BYTES], row[96];

	if (our_thread_has(tid))
		return residence_row(s->owners->table, RESIDENCE_OURS, "stacks of its threads", 0);
	proc_self_name(tid, name);
	snprintf(row, sizeof(row), "%s (%d)", name, (int)tid);
	return residence_row(s->owners->table, RESIDENCE_STACKS, row, 0);
}

static void
on_thread(void *stacks, pid_t tid)
{
	struct stacks              *s = stacks;
	const struct smaps         *smaps = s->owners->smaps;
	const struct smaps_mapping *m;
	uintptr_t                   head = 0, start, limit, page = (uintptr_t)sysconf(_SC_PAGESIZE);
	size_t                      size;
	int                         row;

	s->owners->threads += !our_thread_has(tid);
	if (syscall(SYS_get_robust_list, tid, &head, &size) || !head)
		return;
	m = smaps_find(smaps, head);
	if (!m || !owners_is_anonymous(m))
		return;
	limit = (head + page - 1) & ~(page - 1);
	start = m->start;
	if (tid == getpid() && ((limit - start != s->usual && m->limit - start != s->usual) || !guard_below(smaps, m)))
		return; /* it is [stack] */
	limit = limit + RECORD_MAX < m->limit ? limit : m->limit;
	if (limit - start > s->usual && !guard_below(smaps, m))
		start = limit - s->usual;
	row = row_of(s, tid);
	if (!s->error)
		s->error = row < 0 ? row : ranges_add(s->to, start, limit, row);
}

int
owners_kept_stacks(struct owners *o, struct ranges *ret)
{
	int r = residence_row(o->table, RESIDENCE_STACKS, "kept of threads that have ended", 0), row = r;

	for (size_t i = 0; i < o->smaps->count && r >= 0; i++) {
		const struct smaps_mapping *m = &o->smaps->all[i];

		if (owners_is_anonymous(m) && m->limit - m->start == usual_bytes() && guard_below(o->smaps, m))
			r = ranges_add(ret, m->start, m->limit, row);
	}
	return r < 0 ? r : 0;
}

int
owners_stacks(struct owners *o, struct ranges *ret)
{
	struct stacks s = { .owners = o, .to = ret, .usual = usual_bytes() };

	if (seccomp_thread(thread_id_self())) { /* which may end the process for a call that glibc does not make */
		residence_note(o->table, o->table->notes, "stacks are not told by thread: this process is under a seccomp "
			"filter of its own, and the call for that may not be on its list");
		return 0;
	}
	proc_self_threads(on_thread, &s);
	return s.error;
}
