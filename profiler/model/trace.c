/*
 * trace.c - struct trace: records, threads and texts in arrays that grow by mremap.
 *
 * A collector adds what its sources have seen, in any order, sorts once, and hands the
 * trace to an encoder.  Every record and every thread owns one reference of its stack,
 * from the call that adds it until trace_release().
 *
 * What a stranger would get wrong: the sort must keep records of one time in the order
 * they were added, for a source that sees two things within a nanosecond tells them in
 * their order; so it merges.  qsort() is not used because glibc's takes memory from
 * malloc.  The sources come nearly sorted, each of them is in itself, so most merges
 * find little out of place and touch few pages of the second buffer.
 *
 * Tests: tests/model/test_trace.c.
 */
#include <config.h>

#include "trace.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "pages.h"
#include "stack_table.h"
#include "utf8.h"

/* The first mapping of each array; it doubles from there. */
#define TRACE_RECORDS_FIRST 256  /* records; 14 KiB */
#define TRACE_THREADS_FIRST 64   /* threads; 4 KiB */
#define TRACE_TEXTS_FIRST   4096 /* bytes */

void
trace_init(struct trace *t)
{
	memset(t, 0, sizeof(*t));
}

int
trace_add(struct trace *t, const struct trace_record *r)
{
	if (t->count == t->capacity) {
		void *more = pages_grow(t->records, &t->capacity, TRACE_RECORDS_FIRST, sizeof(*r));

		if (!more) {
			stack_table_unref(r->stack);
			return -ENOMEM;
		}
		t->records = more;
	}
	t->records[t->count++] = *r;
	return 0;
}

int
trace_add_thread(struct trace *t, const struct trace_thread *thread)
{
	if (t->thread_count == t->thread_capacity) {
		void *more = pages_grow(t->threads, &t->thread_capacity, TRACE_THREADS_FIRST, sizeof(*thread));

		if (!more) {
			stack_table_unref(thread->stack);
			return -ENOMEM;
		}
		t->threads = more;
	}
	t->threads[t->thread_count++] = *thread;
	return 0;
}

uint32_t
trace_text(struct trace *t, const char *text, size_t max)
{
	size_t n = text ? utf8_cut(text, max) : 0, at, last;

	if (!n)
		return 0;
	if (t->text_bytes > 1) {
		const char *before = memrchr(t->texts, 0, t->text_bytes - 1);

		last = (size_t)(before + 1 - t->texts);
		if (t->text_bytes - 1 - last == n && !memcmp(t->texts + last, text, n))
			return (uint32_t)last;
	}
	if (n > UINT32_MAX / 2 || t->text_bytes > UINT32_MAX / 2)
		return 0;
	at = t->text_bytes ? t->text_bytes : 1; /* texts[0] is "" */
	while (t->text_capacity < at + n + 1) {
		void *more = pages_grow(t->texts, &t->text_capacity, TRACE_TEXTS_FIRST, 1);

		if (!more)
			return 0;
		t->texts = more;
	}
	memcpy(t->texts + at, text, n);
	t->texts[at + n] = '\0';
	t->text_bytes = at + n + 1;
	return (uint32_t)at;
}

const char *
trace_string(const struct trace *t, uint32_t offset)
{
	return offset < t->text_bytes ? t->texts + offset : "";
}

void
trace_comment(struct trace *t, const char *format, ...)
{
	size_t  used = strlen(t->comments), room = sizeof(t->comments) - used;
	char   *at = t->comments + used;
	va_list args;
	int     len;

	if (used > 0) {
		if (room < 2)
			return;
		*at++ = '\n';
		room--;
	}
	va_start(args, format);
	len = vsnprintf(at, room, format, args);
	va_end(args);
	/* A comment that does not fit whole is left out: half a number misleads. */
	if (len < 0 || (size_t)len >= room)
		t->comments[used] = '\0';
}

int
trace_copy_begin(const struct trace *from, struct trace *to)
{
	int r = 0;

	*to = *from;
	to->records = NULL;
	to->threads = NULL;
	to->texts = NULL;
	to->count = to->capacity = to->thread_count = to->thread_capacity = to->text_bytes = to->text_capacity = 0;
	for (size_t i = 0; i < from->thread_count && r == 0; i++) {
		stack_table_ref(from->threads[i].stack);
		r = trace_add_thread(to, &from->threads[i]);
	}
	if (r < 0)
		trace_release(to);
	return r;
}

static size_t
least(size_t a, size_t b)
{
	return a < b ? a : b;
}

int
trace_copy_some(const struct trace *from, size_t records, size_t text_bytes, struct trace *to)
{
	size_t end = least(records, to->copied + TRACE_COPY_RECORDS), size = least(text_bytes - to->text_bytes, TRACE_COPY_TEXTS);

	if (text_bytes > to->text_capacity) {
		to->texts = pages_map_sparse(text_bytes);
		to->text_capacity = to->texts ? text_bytes : 0;
	}
	if (text_bytes > 0 && !to->texts)
		return -ENOMEM;
	if (size > 0)
		memcpy(to->texts + to->text_bytes, from->texts + to->text_bytes, size);
	to->text_bytes += size;
	for (; to->copied < end; to->copied++) {
		stack_table_ref(from->records[to->copied].stack);
		if (trace_add(to, &from->records[to->copied]) < 0)
			return -ENOMEM;
	}
	return to->copied < records || to->text_bytes < text_bytes;
}

/*
 * Merges two sorted neighbours, r[0..middle) and r[middle..count).  What is in its
 * place already at both ends stays; spare takes what is left of the first.
 */
static void
runs_merge(struct trace_record *r, size_t middle, size_t count, struct trace_record *spare)
{
	size_t begin = 0, left, i, to;

	for (size_t end = middle; begin < end;) { /* the first of r that is later than r[middle] */
		size_t half = begin + (end - begin) / 2;

		if (r[half].time_ns <= r[middle].time_ns)
			begin = half + 1;
		else
			end = half;
	}
	left = middle - begin;
	memcpy(spare, r + begin, left * sizeof(*r));
	for (i = 0, to = begin; i < left && middle < count; to++) {
		if (r[middle].time_ns < spare[i].time_ns)
			r[to] = r[middle++];
		else
			r[to] = spare[i++];
	}
	memcpy(r + to, spare + i, (left - i) * sizeof(*r));
}

static void
records_sort(struct trace_record *r, size_t count, struct trace_record *spare)
{
	size_t middle = count / 2; /* halves: 64 levels at most */

	if (count < 2)
		return;
	records_sort(r, middle, spare);
	records_sort(r + middle, count - middle, spare);
	if (r[middle].time_ns < r[middle - 1].time_ns)
		runs_merge(r, middle, count, spare);
}

int
trace_sort(struct trace *t)
{
	size_t bytes = (t->count / 2) * sizeof(*t->records), i;
	void  *spare;

	for (i = 1; i < t->count && t->records[i - 1].time_ns <= t->records[i].time_ns;)
		i++;
	if (i >= t->count)
		return 0;
	spare = pages_map_sparse(bytes);
	if (!spare)
		return -ENOMEM;
	records_sort(t->records, t->count, spare);
	pages_unmap(spare, bytes);
	return 0;
}

static void
unmap(struct trace *t)
{
	pages_unmap(t->records, t->capacity * sizeof(*t->records));
	pages_unmap(t->threads, t->thread_capacity * sizeof(*t->threads));
	pages_unmap(t->texts, t->text_capacity);
	memset(t, 0, sizeof(*t));
}

void
trace_release(struct trace *t)
{
	for (size_t i = 0; i < t->count; i++)
		stack_table_unref(t->records[i].stack);
	for (size_t i = 0; i < t->thread_count; i++)
		stack_table_unref(t->threads[i].stack);
	unmap(t);
}

void
trace_forget(struct trace *t)
{
	if (t->count > TRACE_FEW)
		unmap(t);
	else
		trace_release(t);
}
