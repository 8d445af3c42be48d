/*
 * perf.c - context switches by perf_event_open(2), while a trace is open.
 *
 *     for each thread, for each processor: an event ──┐  all of one processor
 *     thread's event is inherited by what it creates ─┴─> ring of the processor
 *
 * A software event of the kind DUMMY counts nothing; what is wanted are the records
 * that come with it: SWITCH, FORK, EXIT, COMM.  They are about user space alone, so that
 * kernel.perf_event_paranoid up to 2 allows them to everybody.
 *
 * What a stranger would get wrong:
 * - One event for the whole process does not exist for a process that has threads
 *   already; one for a thread on all processors (cpu -1) can be inherited or mapped, but
 *   not both.  Hence threads times processors, which a daemon of many threads on a
 *   machine of many processors has no descriptors for: then hooks are the source.  Why
 *   not opened early, by the main thread alone: while no trace is asked for nothing is
 *   open, and each open event makes each switch a little slower.
 * - A thread that is made while we look at the list is inherited from its creator or
 *   found in the next look, perhaps both: the second report of a switch is dropped later
 *   (trace/finish.c).
 * - A forked child inherits as well: told by its pid; from Linux 5.13 on it does not.
 * - Memory of a perf ring is not there in a forked child, and its descriptors are closed
 *   there by number, under our_fd_hold() from their birth on.
 * - A daemon that closes all descriptors closes ours, and opens its own under those
 *   numbers: each is asked for its id before it is closed.
 * - The kernel writes no last OUT of a thread that exits.
 * - A seccomp filter may end the process for a call that it does not know, and nobody can ask
 *   it first: systemd's SystemCallFilter=@system-service does so for perf_event_open().
 *   Hooks are the source under any filter; the few that allow the call are not worth a daemon.
 *
 * Tests: tests/trace/test_tracer.c, tests/trace/measured_waits.t.
 */
#include <config.h>

#include "perf.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "dump/threads.h"
#include "our_fd.h"
#include "our_table.h"
#include "pages.h"
#include "proc_self.h"
#include "fd.h"
#include "seccomp.h"

#define AT_ONCE        64         /* events that are opened or closed without a pause: about a millisecond */
#define PAUSE_NS       50000L
#define LOOKS_MAX      8          /* at the list of threads, until it has no new one */
#define INHERIT_THREAD (1ULL << 35) /* of struct perf_event_attr's bits: not in older headers */
#define RING_BYTES_MIN   (32 << 10)
#define RECORD_BYTES_MAX 256

/* ---- a ring of the kernel's records, read empty ---- */

/* A record may lie across the end of the ring, and only its head is sure to be in one piece.  Records
 * of a forked child that has inherited an event come here as well, and are told by their pid. */
struct trace_perf_sink {
	trace_perf_fn      *fn;
	trace_perf_name_fn *name;
	void               *arg;
	int32_t             pid;  /* whose records are told */
	uint64_t            lost; /* records the kernel had no room for; added to */
};

/* What ends each record, by sample_type. */
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
record_task(struct trace_perf_sink *to, const struct task_record *t, bool born)
{
	struct trace_record r = { .time_ns = t->time_ns, .tid = (int32_t)t->tid, .other = (int32_t)t->ptid,
		.type = born ? TRACE_CREATE : TRACE_EXIT, .cpu = TRACE_CPU_NONE };

	if ((int32_t)t->pid == to->pid && (!born || t->ppid == t->pid))
		to->fn(to->arg, &r);
}

static void
record(struct trace_perf_sink *to, const char *bytes)
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
		record_task(to, (const struct task_record *)bytes, head->type == PERF_RECORD_FORK);
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

/* mapped: the page of the head, and behind it so many bytes of ring. */
static void
read_ring(void *mapped, size_t ring_bytes, struct trace_perf_sink *to)
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
			record(to, bytes);
		}
		tail += size;
	}
	__atomic_store_n(&page->data_tail, head, __ATOMIC_RELEASE);
}

/* ---- processors, and room for their events among the daemon's descriptors ---- */

/* From "0-3,6,8-9"; *ret_count: the highest number + 1.  0 or a negative errno; -E2BIG: one is above TRACE_PERF_CPUS_MAX - 1. */
static int
cpus_online(bool *cpus, unsigned *ret_count)
{
	char     text[1024], *at = text;
	unsigned n = 0;
	int      fd = our_fd_open("/sys/devices/system/cpu/online", O_RDONLY, 0);
	ssize_t  got;

	if (fd < 0)
		return -ENXIO; /* in a container, perhaps: not the kernel's refusal */
	got = read(fd, text, sizeof(text) - 1);
	our_fd_close(fd);
	text[got > 0 ? got : 0] = '\0';
	while (*at >= '0' && *at <= '9') {
		unsigned long first = strtoul(at, &at, 10), last = first;

		if (*at == '-')
			last = strtoul(at + 1, &at, 10);
		for (; first <= last && first < TRACE_PERF_CPUS_MAX; first++) {
			cpus[first] = true;
			if (n <= first)
				n = (unsigned)first + 1;
		}
		if (last >= TRACE_PERF_CPUS_MAX)
			return -E2BIG;
		at += *at == ',';
	}
	*ret_count = n;
	return n > 0 ? 0 : -ENOENT;
}

/* Descriptors of the process, by their names in /proc. */
static unsigned
descriptors_used(void)
{
	_Alignas(8) char buf[4096];
	unsigned         n = 0;
	long             got, at;
	int              fd = our_fd_open("/proc/thread-self/fd", O_RDONLY | O_DIRECTORY, 0);

	if (fd < 0)
		return 0;
	while ((got = syscall(SYS_getdents64, fd, buf, sizeof(buf))) > 0)
		for (at = 0; at < got; at += *(uint16_t *)(buf + at + 16)) /* d_reclen */
			n++;
	our_fd_close(fd);
	return n;
}

/* Half of the descriptors that are left may be ours.  0, or -EMFILE and a reason for people. */
static int
is_room(const bool *cpus, unsigned cpu_count, char *why, unsigned size)
{
	struct rlimit limit;
	unsigned      threads = (unsigned)threads_count(), count = 0, used = descriptors_used();
	unsigned long room, wanted;

	for (unsigned i = 0; i < cpu_count; i++)
		count += cpus[i];
	wanted = (unsigned long)threads * count;
	getrlimit(RLIMIT_NOFILE, &limit);
	room = limit.rlim_cur > used ? (limit.rlim_cur - used) / 2 : 0;
	if (wanted <= room && wanted <= TRACE_PERF_EVENTS_MAX)
		return 0;
	snprintf(why, size, "%u threads on %u processors take %lu descriptors, and %lu may be used (RLIMIT_NOFILE, "
		"at most %d)", threads, count, wanted, room < TRACE_PERF_EVENTS_MAX ? room : TRACE_PERF_EVENTS_MAX,
		TRACE_PERF_EVENTS_MAX);
	return -EMFILE;
}

/* ---- events ---- */

struct event {
	int      fd;
	uint64_t id;
};

struct ring {
	unsigned cpu;
	int      fd; /* of the event that is mapped */
	void    *page;
};

static struct {
	struct event *events; /* [TRACE_PERF_EVENTS_MAX], then the threads that have some */
	unsigned      event_count;
	int32_t      *threads;
	unsigned      thread_count;
	struct ring   rings[TRACE_PERF_CPUS_MAX];
	unsigned      ring_count;
	size_t        ring_bytes;
	unsigned      cpus;
	bool          inherits_thread;
	int32_t       pid;
	uint64_t      lost;
	int           err;
	bool          unmappable; /* a ring of that size was refused */
} perf;

#define EVENTS_BYTES (TRACE_PERF_EVENTS_MAX * sizeof(struct event) + TRACE_PERF_EVENTS_MAX * sizeof(int32_t))

/* ---- descriptors ---- */

static int
event_open(int32_t tid, unsigned cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE, .size = sizeof(attr), .config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU, .sample_id_all = 1,
		.context_switch = 1, .task = 1, .comm = 1, .inherit = 1, .exclude_kernel = 1, .exclude_hv = 1,
		.use_clockid = 1, .clockid = 1 /* CLOCK_MONOTONIC */,
	};
	uint64_t bits;
	int      fd;

	_Static_assert(offsetof(struct perf_event_attr, read_format) + 8 == 40, "the bits come behind read_format");
	if (perf.inherits_thread) {
		memcpy(&bits, (char *)&attr + 40, sizeof(bits));
		bits |= INHERIT_THREAD;
		memcpy((char *)&attr + 40, &bits, sizeof(bits));
	}
	fd = (int)syscall(SYS_perf_event_open, &attr, tid, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);
	return fd_keep(fd);
}

/* Who takes our_fd_hold() again at once leaves it to nobody, and a fork waits for it. */
static void
pause_for_forks(void)
{
	const struct timespec pause = { 0, PAUSE_NS };

	nanosleep(&pause, NULL);
}

/* Noted before any other thread can fork.  The number of the event, or a negative errno. */
static int
event_add(int32_t tid, unsigned cpu)
{
	sigset_t mask;
	uint64_t id = 0;
	int      fd, r = -EMFILE;

	our_fd_hold(&mask);
	if (perf.event_count < TRACE_PERF_EVENTS_MAX) {
		r = fd = event_open(tid, cpu);
		if (fd >= 0) {
			ioctl(fd, PERF_EVENT_IOC_ID, &id);
			r = (int)perf.event_count;
			perf.events[perf.event_count++] = (struct event){ fd, id };
		}
	}
	our_fd_release(&mask);
	if (r >= 0 && perf.event_count % AT_ONCE == 0)
		pause_for_forks();
	return r;
}

static void
event_close(const struct event *e)
{
	uint64_t id = 0;

	if (ioctl(e->fd, PERF_EVENT_IOC_ID, &id) == 0 && id == e->id)
		syscall(SYS_close, e->fd);
}

/* In a child, which a filter may end for ioctl(): such a descriptor is of no type, as few others are. */
static void
event_close_filtered(const struct event *e)
{
	struct stat st;

	if (fstat(e->fd, &st) == 0 && (st.st_mode & S_IFMT) == 0)
		syscall(SYS_close, e->fd);
}

/* ---- rings ---- */

static struct ring *
ring_of(unsigned cpu)
{
	for (unsigned i = 0; i < perf.ring_count; i++)
		if (perf.rings[i].cpu == cpu)
			return &perf.rings[i];
	return NULL;
}

static int
ring_new(unsigned cpu, int fd)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void  *mem = mmap(NULL, page + perf.ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (mem == MAP_FAILED) {
		perf.unmappable = true;
		return -errno;
	}
	perf.rings[perf.ring_count++] = (struct ring){ cpu, fd, mem };
	return 0;
}

/* 0, also when the thread is gone. */
static int
thread_cover(int32_t tid, unsigned cpu)
{
	struct ring *ring = ring_of(cpu);
	int          n = event_add(tid, cpu);

	if (n == -ESRCH)
		return 0;
	if (n < 0)
		return n;
	if (!ring)
		return ring_new(cpu, perf.events[n].fd);
	return ioctl(perf.events[n].fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd) < 0 ? -errno : 0;
}

/* ---- processors and threads ---- */

struct look {
	const bool *cpus;
	unsigned    found;
};

static void
on_thread(void *arg, pid_t tid)
{
	struct look *l = arg;

	for (unsigned i = 0; i < perf.thread_count; i++)
		if (perf.threads[i] == tid)
			return;
	if (perf.err < 0)
		return;
	if (perf.thread_count == TRACE_PERF_EVENTS_MAX) {
		perf.err = -EMFILE;
		return;
	}
	perf.threads[perf.thread_count++] = tid;
	l->found++;
	for (unsigned cpu = 0; cpu < perf.cpus && perf.err == 0; cpu++)
		if (l->cpus[cpu])
			perf.err = thread_cover(tid, cpu);
}

static int
cover_all(const bool *cpus)
{
	struct look look = { .cpus = cpus, .found = 1 };

	for (int i = 0; i < LOOKS_MAX && look.found && perf.err == 0; i++) {
		int r;

		look.found = 0;
		r = proc_self_threads(on_thread, &look);
		if (r < 0)
			return r;
	}
	return perf.err;
}

static const char *
reason_of(int err)
{
	switch (-err) {
	case EACCES:
	case EPERM:
		return "perf_event_open() is refused (kernel.perf_event_paranoid above 2, seccomp, or "
		       "kernel.perf_event_mlock_kb is used up)";
	case ENOSYS:
		return "the kernel has no perf_event_open(), or seccomp refuses it";
	case EMFILE:
	case ENFILE:
		return "too few descriptors are left";
	case ENXIO:
		return "the processors cannot be listed: /sys is not mounted or not readable";
	default:
		return "perf_event_open() fails on this kernel";
	}
}

static void
close_all(void)
{
	size_t   page = (size_t)sysconf(_SC_PAGESIZE);
	sigset_t mask;

	while (perf.ring_count > 0) /* counted down first, as in forget() */
		munmap(perf.rings[--perf.ring_count].page, page + perf.ring_bytes);
	while (perf.event_count > 0) {
		our_fd_hold(&mask);
		for (int n = 0; n < AT_ONCE && perf.event_count > 0; n++)
			event_close(&perf.events[--perf.event_count]);
		our_fd_release(&mask);
		pause_for_forks();
	}
	perf.ring_count = perf.thread_count = 0;
	perf.err = 0;
	perf.unmappable = false;
}

/* All of a user's rings share kernel.perf_event_mlock_kb: if it is too much, all anew of
 * half the size, down to what holds a burst.  inherit_thread is there since Linux 5.13. */
static int
cover_as_allowed(const bool *cpus)
{
	int r;

	perf.inherits_thread = true;
	perf.ring_bytes = TRACE_PERF_RING_BYTES;
	for (;;) {
		r = cover_all(cpus);
		if (r == -EINVAL && perf.inherits_thread && perf.event_count == 0)
			perf.inherits_thread = false;
		else if (r == -EPERM && perf.unmappable && perf.ring_bytes > RING_BYTES_MIN)
			perf.ring_bytes /= 2;
		else
			return r;
		close_all();
	}
}

static void
forget(void)
{
	void *events = perf.events;

	perf.events = NULL; /* first: a child may be forked in the midst of munmap() */
	perf.event_count = perf.ring_count = perf.thread_count = 0;
	pages_unmap(events, EVENTS_BYTES);
}

int
trace_perf_open(char *why, unsigned size)
{
	bool  cpus[TRACE_PERF_CPUS_MAX] = { false };
	void *mem;
	int   r;

	memset(&perf, 0, sizeof(perf));
	*why = '\0';
	if (prctl(PR_GET_SECCOMP) == SECCOMP_MODE_FILTER) { /* this thread's, who would make the call */
		snprintf(why, size, "a seccomp filter is in force, which may end a program that calls perf_event_open()");
		return -EPERM;
	}
	perf.pid = (int32_t)syscall(SYS_getpid);
	mem = pages_map(EVENTS_BYTES);
	if (!mem) {
		snprintf(why, size, "out of memory");
		return -ENOMEM;
	}
	perf.events = mem;
	perf.threads = (int32_t *)(perf.events + TRACE_PERF_EVENTS_MAX);
	r = cpus_online(cpus, &perf.cpus);
	if (r == -E2BIG)
		snprintf(why, size, "a processor's number is above %d", TRACE_PERF_CPUS_MAX - 1);
	if (r == 0)
		r = is_room(cpus, perf.cpus, why, size);
	if (r == 0) {
		fd_raise();
		r = cover_as_allowed(cpus);
		fd_lower();
	}
	if (r < 0) {
		if (!*why)
			snprintf(why, size, "%s", reason_of(r));
		close_all();
		forget();
	}
	return r;
}

void
trace_perf_close(void)
{
	close_all();
	forget();
}

void
trace_perf_forked(void)
{
	fd_lower(); /* it may have been forked in the midst of trace_perf_open() */
	for (unsigned i = 0; i < perf.event_count && !our_table_is_apart(); i++) {
		if (seccomp_on())
			event_close_filtered(&perf.events[i]);
		else
			event_close(&perf.events[i]);
	}
	forget();
}

void
trace_perf_drain(trace_perf_fn *fn, trace_perf_name_fn *name, void *arg)
{
	struct trace_perf_sink to = { .fn = fn, .name = name, .arg = arg, .pid = perf.pid };

	for (unsigned i = 0; i < perf.ring_count; i++)
		read_ring(perf.rings[i].page, perf.ring_bytes, &to);
	perf.lost += to.lost;
}

uint64_t
trace_perf_lost(void)
{
	return perf.lost;
}

unsigned
trace_perf_cpus(void)
{
	return perf.cpus;
}

unsigned
trace_perf_events(void)
{
	return perf.event_count;
}
