/*
 * cpu_timers.c - a CPU timer for every thread of the process.
 *
 * The kernel lets a process arm a timer on the CPU clock of any of its threads,
 * by the thread's id: the thread takes no part in it and need not be ours.  Which
 * threads there are is cpu_scan.c's subject.
 *
 *     clock   (~tid << 3) | 6            that thread's CPU time, by the scheduler
 *     signal  SIGEV_THREAD_ID, tid       to that thread and no other
 *     value   COOKIE << 32 | slot        so that a handler knows whose it is
 *
 * Each thread has a grid of moments on its own clock, first_due + n * period.
 * First phases follow the golden ratio, which spreads any number of threads
 * evenly; with equal phases short threads would never be seen at all.  How many
 * moments have passed is known at any time, so what the signals have not told
 * (yet) can be told by arithmetic: at a thread's end, and for threads that block
 * the signal.
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
 * Tests: tests/test_cpu.c.
 */
#include <config.h>

#include "cpu_timers.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "cpu_proc.h"
#include "cpu_timers_parts.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

#define COOKIE        0x63707563UL
#define CHUNK_SLOTS   1024 /* 64 KiB */
#define CHUNKS_MAX    64   /* 65536 threads: beyond, a timer each is no way to look */
#define BUCKETS       4096
#define NONE          0    /* slot 0 is never given out */
#define GOLDEN_RATIO  0.6180339887498949

static struct {
	_Atomic(struct cpu_slot *) chunks[CHUNKS_MAX];
	uint32_t  *buckets;
	uint32_t   used;      /* slots ever given out, and slot 0 */
	uint32_t   free_list;
	uint32_t   armed;     /* timers that exist */
	long       room;      /* more timers that may be created ... */
	uint32_t   room_scan; /* ... as counted in this scan */
	int64_t    ended_ns;  /* what threads that are gone were charged for */
	int        signal_number;
	int64_t    period_ns; /* below a second */
	double     phase;
} timers;

/* BEGIN SIGNAL CONTEXT */

struct cpu_slot *
cpu_slot_at(uint32_t i)
{
	struct cpu_slot *chunk;

	if (i == NONE || i >= CHUNK_SLOTS * CHUNKS_MAX)
		return NULL;
	chunk = atomic_load_explicit(&timers.chunks[i / CHUNK_SLOTS], memory_order_acquire);
	return chunk ? &chunk[i % CHUNK_SLOTS] : NULL;
}

bool
cpu_timers_expired(const siginfo_t *info, uint32_t *ret_slot, uint32_t *ret_weight)
{
	uint64_t     value = (uintptr_t)info->si_value.sival_ptr;
	struct cpu_slot *s;
	uint32_t     weight;

	if (info->si_code != SI_TIMER || value >> 32 != COOKIE)
		return false;
	s = cpu_slot_at((uint32_t)value);
	if (!s || atomic_load_explicit(&s->timer, memory_order_acquire) != info->si_timerid)
		return false;
	weight = 1 + (info->si_overrun > 0 ? (uint32_t)info->si_overrun : 0);
	weight += atomic_exchange_explicit(&s->owed, 0, memory_order_relaxed);
	atomic_fetch_add_explicit(&s->delivered, weight, memory_order_relaxed);
	*ret_slot = (uint32_t)value;
	*ret_weight = weight;
	return true;
}

/* END SIGNAL CONTEXT */

static clockid_t
thread_clock(pid_t tid)
{
	return (clockid_t)(~(unsigned)tid << 3 | 6); /* CPUCLOCK_PERTHREAD_MASK | CPUCLOCK_SCHED */
}

int64_t
cpu_slot_clock(pid_t tid)
{
	struct timespec ts;

	if (syscall(SYS_clock_gettime, thread_clock(tid), &ts) < 0)
		return -1;
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

/* Periods that have passed on the thread's grid, before it was armed included. */
static uint64_t
slot_due(const struct cpu_slot *s, int64_t cpu_ns)
{
	uint64_t due = s->before;

	if (cpu_ns >= s->first_due_ns)
		due += (uint64_t)((cpu_ns - s->first_due_ns) / timers.period_ns) + 1;
	return due;
}

uint64_t
cpu_slot_missing(const struct cpu_slot *s, int64_t cpu_ns)
{
	uint64_t due = slot_due(s, cpu_ns), told = atomic_load(&s->delivered) + s->charged;

	return due > told ? due - told : 0;
}

static uint32_t *
bucket_of(pid_t tid)
{
	return &timers.buckets[(unsigned)tid % BUCKETS];
}

uint32_t
cpu_slot_find(pid_t tid)
{
	uint32_t i = *bucket_of(tid);

	while (i && cpu_slot_at(i)->tid != tid)
		i = cpu_slot_at(i)->next;
	return i;
}

static void *
map(size_t size)
{
	void *mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return mem == MAP_FAILED ? NULL : mem;
}

static uint32_t
slot_take(void)
{
	uint32_t i = timers.free_list;
	void    *chunk;

	if (i) {
		timers.free_list = cpu_slot_at(i)->next;
		return i;
	}
	i = timers.used;
	if (i >= CHUNK_SLOTS * CHUNKS_MAX)
		return NONE;
	if (!atomic_load(&timers.chunks[i / CHUNK_SLOTS])) {
		chunk = map(CHUNK_SLOTS * sizeof(struct cpu_slot));
		if (!chunk)
			return NONE;
		atomic_store_explicit(&timers.chunks[i / CHUNK_SLOTS], chunk, memory_order_release);
	}
	timers.used++;
	return i;
}

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
	struct cpu_slot *s = cpu_slot_at(i);
	uint32_t        *link = bucket_of(s->tid);

	timer_drop(s, CPU_SLOT_IDLE);
	while (*link != i)
		link = &cpu_slot_at(*link)->next;
	*link = s->next;
	s->tid = 0;
	s->next = timers.free_list;
	timers.free_list = i;
}

void
cpu_slot_retire(uint32_t i)
{
	const struct cpu_slot *s = cpu_slot_at(i);

	timers.ended_ns += s->told_ns;
	if (!cpu_slot_ended(s))
		timers.ended_ns += (int64_t)(atomic_load(&s->delivered) + s->charged) * timers.period_ns;
	slot_free(i);
}

uint32_t
cpu_slots_end(void)
{
	return timers.used;
}

int
cpu_slots_signal(void)
{
	return timers.signal_number;
}

int64_t
cpu_slots_period_ns(void)
{
	return timers.period_ns;
}

int64_t
cpu_slots_ended_ns(void)
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
	timers.room_scan = cpu_scan_number();
	if (cpu_proc_signals(&queued, &limit) < 0)
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
	ev.sigev_value.sival_ptr = (void *)(uintptr_t)((uint64_t)COOKIE << 32 | i);
	if (syscall(SYS_timer_create, thread_clock(tid), &ev, &id) < 0)
		return -errno;
	return id;
}

/* Lays the thread's grid; born: it has lived inside the window only. */
static void
slot_grid(struct cpu_slot *s, int64_t cpu_ns, bool born)
{
	int64_t phase;

	timers.phase += GOLDEN_RATIO;
	timers.phase -= (double)(int64_t)timers.phase;
	phase = 1 + (int64_t)(timers.phase * (double)(timers.period_ns - 1));
	s->armed_ns = cpu_ns;
	s->told_ns = born ? 0 : cpu_ns;
	s->before = 0;
	s->first_due_ns = phase + (born ? 0 : cpu_ns);
	if (s->first_due_ns <= cpu_ns) {
		s->before = (uint32_t)((cpu_ns - s->first_due_ns) / timers.period_ns) + 1;
		s->first_due_ns += (int64_t)s->before * timers.period_ns;
	}
	atomic_store(&s->owed, s->before);
	atomic_store(&s->delivered, 0);
	s->charged = 0;
}

/* The next moment of the grid at or after cpu_ns is when it first fires. */
static int
timer_arm(uint32_t i, int64_t cpu_ns)
{
	struct cpu_slot  *s = cpu_slot_at(i);
	int64_t           due = s->first_due_ns;
	struct itimerspec when;
	int               id = timer_make(s->tid, i);

	if (id < 0)
		return id == -EINVAL ? -ESRCH : id;
	timers.armed++;
	timers.room--;
	if (due <= cpu_ns)
		due += ((cpu_ns - due) / timers.period_ns + 1) * timers.period_ns;
	atomic_store_explicit(&s->timer, id, memory_order_release);
	when.it_value.tv_sec = due / 1000000000LL;
	when.it_value.tv_nsec = due % 1000000000LL;
	when.it_interval.tv_sec = 0;
	when.it_interval.tv_nsec = timers.period_ns;
	return syscall(SYS_timer_settime, id, TIMER_ABSTIME, &when, NULL) < 0 ? -ESRCH : 0;
}

int
cpu_slot_arm(pid_t tid, bool born)
{
	struct cpu_slot *s;
	int64_t          cpu_ns;
	uint32_t         i;
	int              err;

	if (timers.room_scan != cpu_scan_number())
		room_count();
	if (timers.room <= 0)
		return -EAGAIN;
	i = slot_take();
	if (!i)
		return -EAGAIN;
	s = cpu_slot_at(i);
	s->tid = tid;
	s->seen = cpu_scan_number();
	atomic_store(&s->timer, CPU_SLOT_IDLE);
	s->next = *bucket_of(tid);
	*bucket_of(tid) = i;
	cpu_ns = cpu_slot_clock(tid);
	err = -ESRCH;
	if (cpu_ns >= 0) {
		slot_grid(s, cpu_ns, born);
		err = timer_arm(i, cpu_ns);
	}
	if (err < 0)
		slot_free(i);
	return err;
}

uint32_t
cpu_timers_uncharge(uint32_t i, uint32_t weight)
{
	struct cpu_slot *s = cpu_slot_at(i);
	uint64_t     told;

	if (!s || s->charged == 0)
		return weight;
	told = s->charged < weight ? s->charged : weight;
	s->charged -= told;
	return weight - (uint32_t)told;
}

pid_t
cpu_timers_tid(uint32_t i)
{
	const struct cpu_slot *s = cpu_slot_at(i);

	return s ? s->tid : 0;
}

/* ---- the calling thread ---- */

void
cpu_timers_self_add(void)
{
	pid_t tid = (pid_t)syscall(SYS_gettid);

	uint32_t i = cpu_slot_find(tid);

	if (i && cpu_slot_ended(cpu_slot_at(i))) {
		cpu_slot_retire(i); /* another thread's, that had this id */
		i = 0;
	}
	if (!i)
		cpu_slot_arm(tid, true);
}

uint32_t
cpu_timers_self_remove(uint32_t *ret_slot)
{
	pid_t            tid = (pid_t)syscall(SYS_gettid);
	uint32_t         i = cpu_slot_find(tid);
	struct cpu_slot *s = cpu_slot_at(i);
	uint64_t         missing;

	if (!i || cpu_slot_ended(s))
		return 0;
	timer_drop(s, CPU_SLOT_ENDED);
	s->told_ns = cpu_slot_clock(tid);
	missing = cpu_slot_missing(s, s->told_ns);
	*ret_slot = i;
	return (uint32_t)missing;
}

/* ---- life ---- */

int
cpu_timers_open(int signal_number, int64_t period_ns)
{
	timers.signal_number = signal_number;
	timers.period_ns = period_ns;
	if (timers.buckets)
		return 0; /* kept for a handler that did not end in time */
	timers.buckets = map(BUCKETS * sizeof(*timers.buckets));
	if (!timers.buckets)
		return -ENOMEM;
	timers.used = 1;
	timers.free_list = NONE;
	timers.armed = 0;
	timers.ended_ns = 0;
	return 0;
}

void
cpu_timers_silence(void)
{
	uint32_t i;

	for (i = 1; i < timers.used; i++)
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
	for (i = 1; i < timers.used; i++) {
		s = cpu_slot_at(i);
		if (!s->tid || cpu_slot_ended(s))
			continue;
		cpu_ns = cpu_slot_clock(s->tid);
		if (cpu_ns >= s->armed_ns)
			atomic_store(&s->owed, (uint32_t)cpu_slot_missing(s, cpu_ns));
		if (cpu_ns < s->armed_ns || timer_arm(i, cpu_ns) < 0)
			cpu_slot_retire(i);
	}
}

void
cpu_timers_close(void)
{
	uint32_t i;

	for (i = 1; i < timers.used; i++)
		if (cpu_slot_at(i)->tid)
			slot_free(i);
	cpu_scan_close();
}

void
cpu_timers_free(void)
{
	unsigned i;
	void    *chunk;

	for (i = 0; i < CHUNKS_MAX; i++) {
		chunk = atomic_exchange(&timers.chunks[i], NULL);
		if (chunk)
			munmap(chunk, CHUNK_SLOTS * sizeof(struct cpu_slot));
	}
	if (timers.buckets)
		munmap(timers.buckets, BUCKETS * sizeof(*timers.buckets));
	timers.buckets = NULL;
	timers.used = 0;
	timers.armed = 0;
}

void
cpu_timers_forked(void)
{
	cpu_scan_forked();
	cpu_timers_free();
}
