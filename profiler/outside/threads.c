/*
 * threads.c - where each thread of another process stands.
 *
 *     /proc/PID/task ──▶ quiet_read(): line of TID/syscall, copy of the stack, its clock before and behind
 *                   └──▶ who runs: by a sample of perf's
 *
 * What a stranger would get wrong: nobody is signalled here.  A thread that runs, or moves each time it is looked
 * at, is given a moment of perf's clock; one that is still unknown then has no stack, and its state says why.
 *
 * Tests: tests/componentctl/outside.t.
 */
#include <config.h>

#include "outside.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "dump/quiet.h"
#include "pages.h"
#include "perf.h"
#include "process.h"
#include "refused.h"
#include "stack_table.h"
#include "tables.h"
#include "unwind.h"

#define TRIES           5         /* to read one that is on its way from wait to wait */
#define RUNNING_NS      1000000L  /* of CPU time, between two samples of those that run */
#define RUNNING_WAIT_NS 200000000L
#define RUNNING_STEP_MS 5
#define FIRST           256

struct reading {
	struct quiet *quiet;
	struct dump  *dump;
};

static int
dump_room(struct dump *d)
{
	void *p;

	if (d->count == d->room) {
		p = pages_grow(d->threads, &d->room, FIRST, sizeof(*d->threads));
		if (!p)
			return -ENOMEM;
		d->threads = p;
	}
	while (d->pc_room - d->pc_count < STACK_FRAMES_MAX) {
		p = pages_grow(d->pcs, &d->pc_room, FIRST * STACK_FRAMES_MAX, sizeof(*d->pcs));
		if (!p)
			return -ENOMEM;
		d->pcs = p;
	}
	return 0;
}

/* 0, also where it has just ended; or -ENOMEM. */
static int
thread_read(struct reading *r, pid_t tid)
{
	struct dump        *d = r->dump;
	struct dump_thread *t;
	enum quiet_result   q = QUIET_MOVED;
	char                state;

	if (dump_room(d) < 0)
		return -ENOMEM;
	t = &d->threads[d->count];
	*t = (struct dump_thread){ .tid = tid, .syscall = DUMP_NO_SYSCALL, .first = (uint32_t)d->pc_count };
	for (int i = 0; i < TRIES && q == QUIET_MOVED; i++)
		q = quiet_read(r->quiet, t, NULL, d->pcs + d->pc_count, STACK_FRAMES_MAX);
	state = quiet_state(r->quiet, tid);
	if (q == QUIET_GONE || q == QUIET_KERNEL || !state || !quiet_name(r->quiet, t))
		return 0;
	t->how = q == QUIET_READ || (q == QUIET_UNKNOWN && t->count > 0) ? DUMP_QUIET : DUMP_SILENT;
	t->state = state;
	if (t->how == DUMP_SILENT)
		t->count = 0;
	d->quiet += t->how == DUMP_QUIET;
	d->silent += t->how == DUMP_SILENT;
	d->pc_count += t->count;
	d->count++;
	return 0;
}

static int
threads_read(struct reading *r)
{
	char           path[PROCESS_PATH_MAX];
	DIR           *dir = opendir(process_path("task", path));
	struct dirent *e;
	int            err = dir ? 0 : -errno;

	while (!err && (e = readdir(dir)))
		if (atoi(e->d_name) > 0)
			err = thread_read(r, (pid_t)atoi(e->d_name));
	if (dir)
		closedir(dir);
	return err;
}

/* ---- those that run ---- */

static void
running_take(void *arg, const struct perf_sample *s)
{
	struct dump        *d = arg;
	struct dump_thread *t = NULL;
	int                 truncated = 1;

	if (!s->has_registers || dump_room(d) < 0) /* which may move them all */
		return;
	for (size_t i = 0; i < d->count && !t; i++)
		if (d->threads[i].tid == s->tid && d->threads[i].how == DUMP_SILENT)
			t = &d->threads[i];
	if (!t)
		return;
	t->first = (uint32_t)d->pc_count;
	t->count = perf_walk(s, d->pcs + d->pc_count, STACK_FRAMES_MAX, &truncated);
	t->truncated = truncated != 0;
	d->pc_count += t->count;
	t->how = DUMP_SIGNALLED; /* what it was doing, at once, and no call that it waits in */
	d->silent--;
	d->signalled++;
}

static void
running_read(struct dump *d)
{
	struct perf perf;
	int64_t     until = clock_ns(CLOCK_MONOTONIC) + RUNNING_WAIT_NS;

	if (perf_open(&perf, process_other(), RUNNING_NS) < 0)
		return;
	if (perf_follow(&perf) > 0)
		while (d->silent > 0 && clock_ns(CLOCK_MONOTONIC) < until) {
			poll(NULL, 0, RUNNING_STEP_MS);
			perf_look(&perf);
			perf_drain(&perf, running_take, d);
		}
	perf_close(&perf);
}

int
outside_dump(struct dump *ret, struct component_error *err)
{
	struct quiet   quiet = { .task = -1 };
	struct dump    d = { .threads = NULL };
	struct reading reading = { &quiet, &d };
	int            r = quiet_open(&quiet);

	if (r == 0) {
		r = threads_read(&reading);
		quiet_close(&quiet);
	}
	if (r < 0) {
		dump_release(&d);
		return refused_process(process_other(), r, err);
	}
	if (d.silent > 0)
		running_read(&d);
	*ret = d;
	return 0;
}
