/*
 * thread_events.h - a thread's making, beginning and end, told to whoever fills a slot.
 *
 *     THREAD_EVENTS_SLOT(THREAD_EVENTS_CPU, .begin = cpu_thread_started, .end_from = cpu_thread_ending_from);
 *
 * A thread is told of in the order of the ranks when it is made and when it begins, and in the
 * reverse order when it ends.  One slot for each rank; a function may be NULL.
 *
 * A static link takes a slot with the rest of its file: fill it in one that the collector
 * cannot do without.
 *
 * All slots are called while any reader watches, and the end also after that: each
 * decides for itself whether it is on.
 *
 *   made, failed  on the thread that calls pthread_create(), in the program's own time
 *   the others    on the thread itself, before and after the program's routine; signals are as
 *                 the program has them, and no cancellation point may be reached
 */
#ifndef HOOKS_THREAD_EVENTS_H
#define HOOKS_THREAD_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

struct unwind_regs;

enum thread_events_rank {
	THREAD_EVENTS_CREATE,
	THREAD_EVENTS_TRACE,
	THREAD_EVENTS_LABELS,
	THREAD_EVENTS_NOTES, /* those above may note something when a thread is made */
	THREAD_EVENTS_KNOWN = THREAD_EVENTS_NOTES,
	THREAD_EVENTS_SIGNALS,
	THREAD_EVENTS_CPU, /* with its signal let through, and its labels from beginning to end */
	THREAD_EVENTS_RANKS
};

/* Of one thread, for one slot; all 0 without made(). */
struct thread_events_note {
	uint64_t time_ns;
	uint32_t id; /* with a reference, which is started()'s or failed()'s */
	int32_t  tid;
};

struct thread_events_slot {
	enum thread_events_rank rank;
	void (*made)(struct thread_events_note *ret, const struct unwind_regs *from);
	void (*failed)(uint32_t id); /* gives a reference back */
	void (*started)(const struct thread_events_note *note, const void *routine);
	void (*begin)(void); /* the same for those without a note */
	void (*end)(void);
	void (*end_from)(const void *routine); /* the same, for those who want to know what it was made for */
};

#define THREAD_EVENTS_SLOT(slot_rank, ...) \
	static const struct thread_events_slot thread_events_slot = { .rank = slot_rank, __VA_ARGS__ }; \
	static const struct thread_events_slot *const thread_events_slot_listed \
		__attribute__((used, section("component_threads"))) = &thread_events_slot

/*
 * thread_events_watch - a reader wants threads to be told of from now on, or no more
 *
 * Without hooks in the process nothing happens: /proc/self/task is looked at anyway.
 * Any thread, also in fork handlers.
 */
void thread_events_watch(enum thread_events_rank reader, bool on);
/* "" or why threads are not seen; constant. */
const char *thread_events_status(void);
/* Threads that were left alone because too many were being made at once. */
unsigned long thread_events_missed(void);

#endif
