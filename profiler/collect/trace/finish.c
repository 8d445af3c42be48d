/*
 * finish.c - what was seen becomes a trace from its start to its end.
 *
 * One walk over the sorted records, with the thread that each is about:
 *
 *     the first one     how the thread stood at the start, unless the dump knows better
 *     CREATE, EXIT      a thread comes, a thread goes; the same told twice is told once
 *     names             into the thread
 *     all else          moves up into what was taken out
 *
 * What a stranger would get wrong:
 * - The dump of the threads is not of one moment, and comes after the start: of a thread
 *   that has done anything meanwhile the first record says how it stood.
 * - A wait that began before the start and is told of later is such a record.
 * - A thread that two events watch tells each switch twice, some microseconds apart: a
 *   thread that is on a processor cannot come onto it again.  But a record may have been
 *   lost in between, so it must be close.
 *
 * Tests: tests/trace/test_tracer.c.
 */
#include <config.h>

#include "finish.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "our_thread.h"
#include "proc_self.h"
#include "stack_table.h"
#include "table.h"

#define TWICE_NS 100000 /* two tellings of one switch */

#define OWN_NAME "component-"

/* What is known of a tid now. */
struct known {
	int32_t  tid;
	bool     alive, gone; /* gone: until it is made anew nothing of it counts */
	uint8_t  last;   /* TRACE_IN or TRACE_OUT; else neither yet */
	uint16_t cpu;
	uint32_t thread; /* index of t->threads */
	uint64_t last_ns;
	bool     seen; /* something was told of it, or it came later */
};

struct finish {
	struct trace *trace;
	uint64_t      settled_ns;
	struct table  known; /* by tid */
	struct arena  arena; /* has them */
	int           err;
};

/* ---- tids ---- */

static struct known *
known_find(const struct finish *f, int32_t tid)
{
	return (struct known *)(uintptr_t)table_get(&f->known, (uint32_t)tid);
}

/* NULL: no memory. */
static struct known *
known_of(struct finish *f, int32_t tid)
{
	struct known *k = known_find(f, tid);

	if (k)
		return k;
	k = arena_alloc(&f->arena, sizeof(*k));
	if (!k || table_put(&f->known, (uint32_t)tid, (uintptr_t)k) < 0) {
		f->err = -ENOMEM;
		return NULL;
	}
	k->tid = tid;
	k->last = TRACE_TYPE_COUNT;
	return k;
}

/* ---- threads ---- */

_Static_assert(PROC_SELF_NAME_BYTES == TRACE_NAME_MAX, "a thread's name");

static void
name_read(struct trace_thread *thread)
{
	char name[PROC_SELF_NAME_BYTES];

	proc_self_name((pid_t)thread->tid, name);
	if (*name)
		memcpy(thread->name, name, sizeof(name));
}

static void
thread_born(struct finish *f, struct known *k, uint64_t born_ns, const struct known *creator, uintptr_t routine)
{
	struct trace_thread thread = { .tid = k->tid, .born_ns = born_ns, .routine = routine };

	if (creator && creator->alive)
		memcpy(thread.name, f->trace->threads[creator->thread].name, sizeof(thread.name));
	f->err = trace_add_thread(f->trace, &thread);
	if (f->err < 0)
		return;
	*k = (struct known){ .tid = k->tid, .alive = true, .seen = true, .last = TRACE_TYPE_COUNT,
		.thread = (uint32_t)(f->trace->thread_count - 1) };
}

static struct trace_thread *
thread_of(struct finish *f, const struct known *k)
{
	return &f->trace->threads[k->thread];
}

static void
state_set(struct trace_thread *thread, enum trace_state state, uint8_t reason, uint32_t stack)
{
	stack_table_ref(stack);
	stack_table_unref(thread->stack);
	thread->state = (uint8_t)state;
	thread->reason = reason;
	thread->stack = stack;
}

/* ---- records ---- */

/* The first that is told of a thread which was there at the start. */
static void
begin(struct finish *f, struct known *k, const struct trace_record *r)
{
	struct trace_thread *thread = thread_of(f, k);

	k->seen = true;
	if (r->type == TRACE_WAIT && r->time_ns <= f->trace->start_ns)
		state_set(thread, TRACE_STATE_WAITING, r->reason, r->stack);
	else if (r->time_ns > f->settled_ns)
		return; /* the dump has seen it before */
	else if (r->type == TRACE_IN)
		state_set(thread, TRACE_STATE_WAITING, TRACE_OTHER, 0);
	else
		state_set(thread, TRACE_STATE_RUNNING, 0, 0);
}

static bool
is_twice(struct known *k, const struct trace_record *r)
{
	bool twice;

	if (r->type != TRACE_IN && r->type != TRACE_OUT)
		return false;
	twice = k->last == r->type && k->cpu == r->cpu && r->time_ns - k->last_ns < TWICE_NS;
	k->last = r->type;
	k->cpu = r->cpu;
	k->last_ns = r->time_ns;
	return twice;
}

/* Does the record stay? */
static bool
look_create(struct finish *f, struct known *k, const struct trace_record *r)
{
	const struct known *maker;
	struct known        creator = { .tid = 0 };
	bool                before = r->time_ns <= f->trace->start_ns;

	if (k->alive) { /* seen by hook and kernel; the first to tell knows more */
		if (r->value && !thread_of(f, k)->routine)
			thread_of(f, k)->routine = (uintptr_t)r->value;
		return false;
	}
	maker = r->other ? known_find(f, r->other) : NULL;
	if (maker)
		creator = *maker;
	thread_born(f, k, before ? 0 : r->time_ns, creator.tid ? &creator : NULL, (uintptr_t)r->value);
	return !before;
}

static bool
look(struct finish *f, const struct trace_record *r)
{
	struct trace *t = f->trace;
	struct known *k;

	if (r->time_ns > t->end_ns)
		return false;
	if (r->type == TRACE_HEAP || r->tid == 0)
		return r->time_ns >= t->start_ns;
	k = known_of(f, r->tid);
	if (!k)
		return false;
	if (r->type == TRACE_CREATE)
		return look_create(f, k, r);
	if (k->gone || (!k->alive && r->type == TRACE_EXIT))
		return false;
	if (!k->alive)
		thread_born(f, k, r->time_ns > t->start_ns ? r->time_ns : 0, NULL, 0);
	if (f->err < 0)
		return false;
	if (r->type == TRACE_EXIT) {
		k->alive = false;
		k->gone = true;
		return r->time_ns >= t->start_ns;
	}
	if (r->type == TRACE_RECORD_NAME) {
		snprintf(thread_of(f, k)->name, TRACE_NAME_MAX, "%s", t->texts + r->text);
		return false;
	}
	if (is_twice(k, r))
		return false;
	if (!k->seen && (r->type != TRACE_LABELS || r->time_ns > t->start_ns)) /* those are the dump's */
		begin(f, k, r);
	return r->time_ns >= t->start_ns;
}

/* Those that stay move to the front, in their order; the others behind, to be dropped. */
static void
walk(struct finish *f)
{
	struct trace *t = f->trace;
	size_t        to = 0, i;

	for (i = 0; i < t->count && f->err == 0; i++) {
		struct trace_record r = t->records[i];

		if (!look(f, &r))
			continue;
		t->records[i] = t->records[to];
		t->records[to++] = r;
	}
	if (f->err < 0)
		return;
	for (i = to; i < t->count; i++)
		stack_table_unref(t->records[i].stack);
	t->count = to;
}

static void
threads_tidy(struct finish *f)
{
	struct trace *t = f->trace;

	for (size_t i = 0; i < f->known.size; i++) {
		const struct known *k = (const struct known *)(uintptr_t)f->known.slots[i].value;

		if (k && k->alive)
			name_read(thread_of(f, k));
	}
	for (size_t i = 0; i < t->thread_count; i++) {
		struct trace_thread *thread = &t->threads[i];

		/* Its id may have been one of ours before, and a program may call itself as we do. */
		if (our_thread_has(thread->tid) ||
			(our_thread_had(thread->tid) && strncmp(thread->name, OWN_NAME, strlen(OWN_NAME)) == 0))
			thread->own = true;
	}
}

int
trace_finish(struct trace *t, uint64_t settled_ns)
{
	struct finish f = { .trace = t, .settled_ns = settled_ns };

	f.err = trace_sort(t);
	for (size_t i = 0; i < t->thread_count && f.err == 0; i++) {
		struct known *k = known_of(&f, t->threads[i].tid);

		if (!k)
			break;
		k->alive = true;
		k->thread = (uint32_t)i;
	}
	walk(&f);
	if (f.err == 0)
		threads_tidy(&f);
	table_release(&f.known);
	arena_release(&f.arena);
	return f.err;
}
