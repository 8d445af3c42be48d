/*
 * timers.c - a CPU timer for every thread of the process.
 *
 * The kernel lets a process arm a timer on the CPU clock of any of its threads,
 * by the thread's id: the thread takes no part in it and need not be ours.  Which
 * threads there are is cpu/scan.c's subject, what is kept of each and when it is to be
 * sampled cpu/slots.c's.
 *
 *     clock   (~tid << 3) | 6            that thread's CPU time, by the scheduler
 *     signal  SIGEV_THREAD_ID, tid       to that thread and no other
 *     value   COOKIE << 32 | slot        so that a handler knows whose it is
 *
 * What a stranger would get wrong:
 * - timer_create(3) of glibc would do for most of this, but keeps a list in malloc
 *   memory and may start a helper thread; the system call does neither.
 * - A timer takes a place in the signal queue of the *user*, shared by all its
 *   processes (RLIMIT_SIGPENDING).  At most half of what is left is used, counted
 *   anew whenever more is wanted.
 * - A first expiry in the past would fire at once, into a thread that may be asleep
 *   in epoll_wait(2), which then returns EINTR.  So the first one always lies ahead,
 *   and periods used before it are added to the first sample.
 * - A thread id may be used again.  The new thread's clock stands below where the
 *   old one was armed: that is how a look tells.
 * - A thread that has told its end lives on for a while, in destructors and in the
 *   kernel.  Its slot stays until it is gone, or it would be taken for a new one and
 *   its whole life be counted again.
 * - With another signal the grids stay, only the timers are made anew.
 *
 * Why not one process timer (setitimer): the kernel picks the thread that is hit,
 * which is unfair and, above some processors, loses samples.
 *
 * Tests: tests/cpu/test_cpu.c.
 */
#include <config.h>

#include "timers.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "proc_self.h"
#include "slots.h"
#include "thread_id.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

static struct {
	uint32_t armed;     /* timers that exist */
	long     room;      /* more timers that may be created ... */
	uint32_t room_walk; /* ... as counted in this walk */
	int64_t  ended_ns;  /* what threads that are gone were charged for */
	int64_t  begun_ns;  /* that there are timers, CLOCK_MONOTONIC */
	int      signal_number;
} timers;

/* Its signals are nobody's from now on. */
static void
timer_drop(struct cpu_slot *s, int instead)
{
	int timer = atomic_exchange(&s->timer, instead);

	if (timer < 0)
		return;
	syscall(SYS_timer_delete, timer);
	timers.armed--;
	timers.room++;
}

static void
slot_free(uint32_t i)
{
	timer_drop(cpu_slot_at(i), CPU_SLOT_IDLE);
	cpu_slot_give_back(i);
}

void
cpu_timers_retire(uint32_t i)
{
	const struct cpu_slot *s = cpu_slot_at(i);

	timers.ended_ns += s->told_ns;
	if (!cpu_slot_ended(s))
		timers.ended_ns += (int64_t)(atomic_load(&s->delivered) + s->charged) * cpu_slots_period_ns();
	slot_free(i);
}

int
cpu_timers_signal_number(void)
{
	return timers.signal_number;
}

unsigned
cpu_timers_armed(void)
{
	return timers.armed;
}

int64_t
cpu_timers_ended_ns(void)
{
	return timers.ended_ns;
}

/* ---- what the signal queue has room for ---- */

/* At most half of what RLIMIT_SIGPENDING leaves for this user, ours counted in. */
static int
room_count(void)
{
	unsigned long queued, limit;
	long          others;

	timers.room = 0;
	timers.room_walk = cpu_slots_walk();
	if (proc_self_signals(&queued, &limit) < 0)
		return -ENOENT;
	others = queued > timers.armed ? (long)(queued - timers.armed) : 0;
	if (limit > 1UL << 30)
		limit = 1UL << 30; /* unlimited */
	timers.room = ((long)limit - others) / 2 - (long)timers.armed;
	return 0;
}

int
cpu_timers_room(void)
{
	int err = room_count();

	return err < 0 || timers.room > 0 || timers.armed > 0 ? err : -EAGAIN;
}

/* ---- arming ---- */

static int
timer_make(pid_t tid, uint32_t i)
{
	struct sigevent ev;
	int             id;

	memset(&ev, 0, sizeof(ev));
	ev.sigev_notify = SIGEV_THREAD_ID;
	ev.sigev_signo = timers.signal_number;
	ev.sigev_notify_thread_id = tid;
	ev.sigev_value.sival_ptr = (void *)(uintptr_t)((uint64_t)CPU_SLOT_COOKIE << 32 | i);
	if (syscall(SYS_timer_create, thread_clock_id(tid), &ev, &id) < 0)
		return -errno;
	return id;
}

/* The next moment of the grid at or after cpu_ns is when it first fires. */
static int
timer_arm(uint32_t i, int64_t cpu_ns)
{
	struct cpu_slot  *s = cpu_slot_at(i);
	int64_t           due = s->first_due_ns, period_ns = cpu_slots_period_ns();
	struct itimerspec when;
	int               id = timer_make(s->tid, i);

	if (id < 0)
		return id == -EINVAL ? -ESRCH : id;
	timers.armed++;
	timers.room--;
	if (due <= cpu_ns)
		due += ((cpu_ns - due) / period_ns + 1) * period_ns;
	atomic_store_explicit(&s->timer, id, memory_order_release);
	when.it_value = clock_timespec(due);
	when.it_interval = clock_timespec(period_ns);
	return syscall(SYS_timer_settime, id, TIMER_ABSTIME, &when, NULL) < 0 ? -ESRCH : 0;
}

int
cpu_timers_arm(pid_t tid, bool born)
{
	int64_t  cpu_ns;
	uint32_t i;
	int      err;

	if (timers.room_walk != cpu_slots_walk())
		room_count();
	if (timers.room <= 0)
		return -EAGAIN;
	i = cpu_slot_take(tid);
	if (!i)
		return -EAGAIN;
	cpu_ns = thread_clock_ns(tid);
	err = -ESRCH;
	if (cpu_ns >= 0) {
		born = born && cpu_ns <= clock_ns(CLOCK_MONOTONIC) - timers.begun_ns;
		cpu_slot_grid(cpu_slot_at(i), cpu_ns, born);
		err = timer_arm(i, cpu_ns);
	}
	if (err < 0)
		slot_free(i);
	else
		timers.ended_ns -= cpu_slot_at(i)->told_ns; /* its whole clock is known from now on, and its past was not */
	return err;
}

/* ---- the calling thread ---- */

void
cpu_timers_self_add(void)
{
	pid_t tid = thread_id_self();

	uint32_t i = cpu_slot_find(tid);

	if (i && cpu_slot_ended(cpu_slot_at(i))) {
		cpu_timers_retire(i); /* another thread's, that had this id */
		i = 0;
	}
	if (!i)
		cpu_timers_arm(tid, true);
}

uint32_t
cpu_timers_self_remove(uint32_t *ret_slot)
{
	pid_t            tid = thread_id_self();
	uint32_t         i = cpu_slot_find(tid);
	struct cpu_slot *s = cpu_slot_at(i);
	uint64_t         missing;

	if (!i || cpu_slot_ended(s))
		return 0;
	timer_drop(s, CPU_SLOT_ENDED);
	s->told_ns = thread_clock_ns(tid);
	missing = cpu_slot_missing(s, s->told_ns);
	*ret_slot = i;
	return (uint32_t)missing;
}

/* ---- life ---- */

int
cpu_timers_open(int signal_number, int64_t period_ns)
{
	timers.signal_number = signal_number;
	timers.armed = 0;
	timers.ended_ns = 0;
	timers.begun_ns = clock_ns(CLOCK_MONOTONIC);
	return cpu_slots_open(period_ns);
}

void
cpu_timers_silence(void)
{
	uint32_t i;

	for (i = 1; i < cpu_slots_end(); i++)
		if (cpu_slot_at(i)->tid && !cpu_slot_ended(cpu_slot_at(i)))
			timer_drop(cpu_slot_at(i), CPU_SLOT_IDLE);
}

void
cpu_timers_signal(int signal_number)
{
	struct cpu_slot *s;
	int64_t          cpu_ns;
	uint32_t         i;

	cpu_timers_silence();
	timers.signal_number = signal_number;
	for (i = 1; i < cpu_slots_end(); i++) {
		s = cpu_slot_at(i);
		if (!s->tid || cpu_slot_ended(s))
			continue;
		cpu_ns = thread_clock_ns(s->tid);
		/* What was charged stays so: no signal of the old timer comes any more. */
		atomic_fetch_add(&s->delivered, s->charged);
		s->charged = 0;
		if (cpu_ns >= s->armed_ns)
			atomic_store(&s->owed, (uint32_t)cpu_slot_missing(s, cpu_ns));
		if (cpu_ns < s->armed_ns || timer_arm(i, cpu_ns) < 0)
			cpu_timers_retire(i);
	}
}

void
cpu_timers_close(void)
{
	uint32_t i;

	for (i = 1; i < cpu_slots_end(); i++)
		if (cpu_slot_at(i)->tid)
			slot_free(i);
}

void
cpu_timers_free(void)
{
	cpu_slots_free();
	timers.armed = 0;
}
