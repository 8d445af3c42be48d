/*
 * annotations.c - what threads say of themselves: tasks, regions, logs, labels, samples.
 *
 * Such a record counts only while its thread is on a CPU; elsewhere it has no place in
 * the story.  By hooks a thread that says something has its wait behind it.
 *
 * What a stranger would get wrong: a region's end that does not match the innermost one
 * makes a file unreadable.  So the inner ones are ended first, whose ends were lost.
 *
 * Tests: tests/encode/test_gotrace.c
 */
#include <config.h>

#include "annotations.h"

#include <errno.h>
#include <string.h>

#include "scheduling.h"

#define REGIONS_MAX 256 /* open regions of one thread; more are left out */
#define SAMPLE_MAX  100 /* times that one sample is told */

/* Whoever does something else is over with its wait. */
static struct story_thread *
acts(struct story *s, const struct trace_record *r)
{
	struct story_thread *t = story_thread_of(s, r, story_by_hooks(s));

	if (t && story_by_hooks(s) && t->state != STORY_RUNNING)
		story_in(s, t, t->own_cpu);
	if (!t || t->state != STORY_RUNNING) {
		s->dropped++;
		return NULL;
	}
	t->waits = false;
	return t;
}

void
story_region_end(struct story *s, struct story_thread *t, uint32_t stack)
{
	struct story_region *region = t->regions;

	story_emit(s, (struct story_event){ .type = STORY_REGION_END, .on = t, .cpu = t->cpu, .stack = stack,
		.value = region->task, .name = region->name });
	t->regions = region->around;
	t->region_count--;
	region->around = s->free_regions;
	s->free_regions = region;
}

void
story_on_sample(struct story *s, const struct trace_record *r)
{
	struct story_thread *t = story_thread_of(s, r, story_by_hooks(s));

	/* A wait that was told has an end that will be told; in it a signal handler may run. */
	if (t && t->state != STORY_RUNNING && !t->waits && story_by_hooks(s))
		story_in(s, t, t->own_cpu);
	if (!t || t->state == STORY_UNBORN) {
		s->dropped++;
		return;
	}
	/* No format knows of weights. */
	for (uint64_t i = 0; i < SAMPLE_MAX && (i < r->value || !i); i++)
		story_emit(s, (struct story_event){ .type = STORY_SAMPLE, .on = t, .cpu = t->cpu, .stack = r->stack });
}

void
story_on_labels(struct story *s, const struct trace_record *r)
{
	struct story_thread *t = story_thread_of(s, r, false);

	if (!t)
		return;
	t->label = trace_string(s->trace, r->text);
	if (t->state == STORY_RUNNING)
		story_emit(s, (struct story_event){ .type = STORY_LABEL, .on = t, .cpu = t->cpu });
}

/* A number, which needs a processor: of somebody who runs, or the first for a moment. */
void
story_on_heap(struct story *s, const struct trace_record *r)
{
	struct story_event e = { .type = STORY_HEAP, .on = s->main, .value = r->value };

	for (size_t i = 0; i < s->cpu_count; i++)
		if (s->cpus[i]) {
			e.on = s->cpus[i];
			e.cpu = (uint32_t)i;
			story_emit(s, e);
			return;
		}
	if (!s->main || !s->cpu_count)
		return;
	story_emit(s, (struct story_event){ .type = STORY_CPU_START, .on = s->main });
	story_emit(s, e);
	story_emit(s, (struct story_event){ .type = STORY_CPU_STOP, .on = s->main });
}

struct task {
	bool open;
};

void
story_on_task(struct story *s, const struct trace_record *r)
{
	bool                 begins = r->type == TRACE_TASK_BEGIN;
	struct task         *task = (struct task *)(uintptr_t)table_get(&s->tasks, r->value);
	struct story_thread *t;

	if (!r->value || (begins && task && task->open)) {
		s->dropped++;
		return;
	}
	t = acts(s, r);
	if (!t)
		return;
	if (begins && !task) {
		task = arena_alloc(&s->arena, sizeof(*task));
		if (!task || table_put(&s->tasks, r->value, (uintptr_t)task) < 0) {
			s->error = -ENOMEM;
			return;
		}
	}
	if (task)
		task->open = begins;
	story_emit(s, (struct story_event){ .type = begins ? STORY_TASK_BEGIN : STORY_TASK_END, .on = t,
		.cpu = t->cpu, .value = r->value, .parent = begins ? r->parent : 0, .stack = r->stack,
		.name = trace_string(s->trace, r->name) });
}

void
story_on_region_begin(struct story *s, const struct trace_record *r)
{
	struct story_thread *t = acts(s, r);
	struct story_region *region = s->free_regions;

	if (!t)
		return;
	if (t->region_count == REGIONS_MAX) {
		s->dropped++;
		return;
	}
	if (region)
		s->free_regions = region->around;
	else
		region = arena_alloc(&s->arena, sizeof(*region));
	if (!region) {
		s->error = -ENOMEM;
		return;
	}
	*region = (struct story_region){ .around = t->regions, .task = r->value,
		.name = trace_string(s->trace, r->name) };
	t->regions = region;
	t->region_count++;
	story_emit(s, (struct story_event){ .type = STORY_REGION_BEGIN, .on = t, .cpu = t->cpu, .value = r->value,
		.stack = r->stack, .name = region->name });
}

void
story_on_region_end(struct story *s, const struct trace_record *r)
{
	struct story_thread *t = acts(s, r);
	const char          *name = trace_string(s->trace, r->name);
	struct story_region *match;

	if (!t)
		return;
	for (match = t->regions; match; match = match->around)
		if (match->task == r->value && !strcmp(match->name, name))
			break;
	if (match) {
		while (t->regions != match) { /* their ends are missing */
			s->repaired++;
			story_region_end(s, t, 0);
		}
		story_region_end(s, t, r->stack);
	} else if (t->regions) {
		s->dropped++;
	} else { /* it began before the trace: readers of Go's formats take it for one since the start */
		story_emit(s, (struct story_event){ .type = STORY_REGION_END, .on = t, .cpu = t->cpu,
			.value = r->value, .stack = r->stack, .name = name });
	}
}

void
story_on_log(struct story *s, const struct trace_record *r)
{
	struct story_thread *t = acts(s, r);

	if (t)
		story_emit(s, (struct story_event){ .type = STORY_LOG, .on = t, .cpu = t->cpu, .value = r->value,
			.stack = r->stack, .name = trace_string(s->trace, r->name),
			.text = trace_string(s->trace, r->text) });
}
