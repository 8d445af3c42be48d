/*
 * perf_read.c - a ring of the kernel's records, read empty.
 *
 * What a stranger would get wrong: a record may lie across the end of the ring, and only
 * its head is sure to be in one piece; records of a forked child that has inherited an
 * event come here as well, and are told by their pid.
 *
 * Tests: tests/test_tracer.c, tests/trace.t.
 */
#include <config.h>

#include "perf_read.h"

#include <linux/perf_event.h>
#include <string.h>
#include <unistd.h>

#define RECORD_BYTES_MAX 256

/* What ends each record, by sample_type above. */
struct sample_id {
	uint32_t pid, tid;
	uint64_t time_ns;
	uint32_t cpu, unused;
};

struct task_record { /* FORK and EXIT */
	struct perf_event_header head;
	uint32_t                 pid, ppid, tid, ptid;
	uint64_t                 time_ns;
};

struct comm_record {
	struct perf_event_header head;
	uint32_t                 pid, tid;
	char                     name[TRACE_NAME_MAX];
};

struct lost_record {
	struct perf_event_header head;
	uint64_t                 id, lost;
};

static void
tell_task(struct trace_perf_sink *to, const struct task_record *t, bool born)
{
	struct trace_record r = { .time_ns = t->time_ns, .tid = (int32_t)t->tid, .other = (int32_t)t->ptid,
		.type = born ? TRACE_CREATE : TRACE_EXIT, .cpu = TRACE_CPU_NONE };

	if ((int32_t)t->pid == to->pid && (!born || t->ppid == t->pid))
		to->fn(to->arg, &r);
}

static void
tell(struct trace_perf_sink *to, const char *bytes)
{
	const struct perf_event_header *head = (const struct perf_event_header *)bytes;
	struct trace_record             r = { .cpu = TRACE_CPU_NONE };
	struct sample_id                id;

	if (head->size < sizeof(*head) + sizeof(id))
		return;
	memcpy(&id, bytes + head->size - sizeof(id), sizeof(id));
	switch (head->type) {
	case PERF_RECORD_SWITCH:
		if ((int32_t)id.pid != to->pid)
			return;
		r.type = head->misc & PERF_RECORD_MISC_SWITCH_OUT ? TRACE_OUT : TRACE_IN;
		r.flags = head->misc & (1 << 14) ? TRACE_PREEMPTED : 0; /* PERF_RECORD_MISC_SWITCH_OUT_PREEMPT */
		r.time_ns = id.time_ns;
		r.tid = (int32_t)id.tid;
		r.cpu = (uint16_t)id.cpu;
		to->fn(to->arg, &r);
		return;
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		tell_task(to, (const struct task_record *)bytes, head->type == PERF_RECORD_FORK);
		return;
	case PERF_RECORD_COMM:
		if ((int32_t)id.pid == to->pid && head->size >= sizeof(*head) + 8 + 8 + sizeof(id))
			to->name(to->arg, (int32_t)((const struct comm_record *)bytes)->tid, id.time_ns,
				((const struct comm_record *)bytes)->name);
		return;
	case PERF_RECORD_LOST:
		to->lost += ((const struct lost_record *)bytes)->lost;
		return;
	default:
		return;
	}
}

void
trace_perf_read(void *mapped, size_t ring_bytes, struct trace_perf_sink *to)
{
	struct perf_event_mmap_page *page = mapped;
	const char                  *data = (const char *)mapped + sysconf(_SC_PAGESIZE);
	uint64_t                     head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE), tail = page->data_tail;
	_Alignas(8) char             bytes[RECORD_BYTES_MAX];

	while (tail < head) {
		size_t   at = tail % ring_bytes, left = ring_bytes - at;
		uint16_t size = ((const struct perf_event_header *)(data + at))->size;

		if (size == 0)
			break;
		if (size <= sizeof(bytes)) {
			memset(bytes, 0, sizeof(bytes));
			memcpy(bytes, data + at, size < left ? size : left);
			if (size > left)
				memcpy(bytes + left, data, size - left);
			tell(to, bytes);
		}
		tail += size;
	}
	__atomic_store_n(&page->data_tail, head, __ATOMIC_RELEASE);
}
