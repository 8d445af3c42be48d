/*
 * hooks_threads.h - a thread's making, beginning and end, told to whoever fills a slot.
 *
 *     HOOKS_THREADS_SLOT(HOOKS_THREADS_CPU, .begin = cpu_thread_started, .end_from = cpu_thread_ending_from);
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
#ifndef COLLECT_HOOKS_THREADS_H
#define COLLECT_HOOKS_THREADS_H

#include <stdbool.h>
#include <stdint.h>

struct unwind_regs;

enum hooks_threads_rank {
	HOOKS_THREADS_CREATE,
	HOOKS_THREADS_TRACE,
	HOOKS_THREADS_LABELS,
	HOOKS_THREADS_NOTES, /* those above may note something when a thread is made */
	HOOKS_THREADS_KNOWN = HOOKS_THREADS_NOTES,
	HOOKS_THREADS_SIGNALS,
	HOOKS_THREADS_CPU, /* with its signal let through, and its labels from beginning to end */
	HOOKS_THREADS_RANKS
};

/* Of one thread, for one slot; all 0 without made(). */
struct hooks_threads_note {
	uint64_t time_ns;
	uint32_t id; /* with a reference, which is started()'s or failed()'s */
	int32_t  tid;
};

struct hooks_threads_slot {
	enum hooks_threads_rank rank;
	void (*made)(struct hooks_threads_note *ret, const struct unwind_regs *from);
	void (*failed)(uint32_t id); /* gives a reference back */
	void (*started)(const struct hooks_threads_note *note, const void *routine);
	void (*begin)(void); /* the same for those without a note */
	void (*end)(void);
	void (*end_from)(const void *routine); /* the same, for those who want to know what it was made for */
};

#define HOOKS_THREADS_SLOT(slot_rank, ...) \
	static const struct hooks_threads_slot hooks_threads_slot = { .rank = slot_rank, __VA_ARGS__ }; \
	static const struct hooks_threads_slot *const hooks_threads_slot_listed \
		__attribute__((used, section("component_threads"))) = &hooks_threads_slot

/*
 * hooks_threads_watch - a reader wants threads to be told of from now on, or no more
 *
 * Without hooks in the process nothing happens: /proc/self/task is looked at anyway.
 * Any thread, also in fork handlers.
 */
void hooks_threads_watch(enum hooks_threads_rank reader, bool on);
/* "" or why threads are not seen; constant. */
const char *hooks_threads_status(void);
/* Threads that were left alone because too many were being made at once. */
unsigned long hooks_threads_missed(void);

#endif
