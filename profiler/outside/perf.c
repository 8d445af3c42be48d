/*
 * perf.c - samples of another process' CPU time, by the kernel's perf_event_open(2).
 *
 *     thread 1 ── event on processor 0 ──┐
 *              └─ event on processor 1 ──│─┐
 *     thread 2 ── event on processor 0 ──┴─│──▶ ring 0: registers and 32 KiB of stack a sample
 *              └─ event on processor 1 ────┴──▶ ring 1
 *
 * What a stranger would get wrong:
 * - An event of a thread on all processors could not share a ring with another thread's, and a
 *   ring for each of a thousand threads is more locked memory than anybody may have.
 * - A ring belongs to an event that counts nothing, so that it stays when threads end.
 * - Events are not inherited: a child process would be sampled, too, and a thread that is made
 *   between a look at the list and the event of its maker would be sampled twice or never.  New threads
 *   are looked for instead, as within a process.
 * - The clock is PERF_COUNT_SW_CPU_CLOCK, which counts by a timer of high resolution: it depends on no
 *   tick, and is there in virtual machines, where there are no counters.
 * - A record may wrap around at the ring's end, so it is put together first.
 *
 * Tests: tests/componentctl/outside.t.
 */
#include <config.h>

#include "perf.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "process.h"
#include "unwind.h"
#include "verdict.h"

#define RING_PAGES_MOST  512 /* powers of two: 2 MiB, 63 samples ... */
#define RING_PAGES_LEAST 16  /* ... and 1 */
#define PROCESSORS_MAX   1024
#define RECORD_MAX       65536
#define THREADS_FIRST    64
#define WALKS            8 /* each may meet other code that nobody has judged */

struct perf_ring {
	int                          fd; /* -1: the processor is off, or nothing is open */
	struct perf_event_mmap_page *page;
	unsigned char               *data;
	size_t                       size; /* of data */
	uint64_t                     head; /* at the last look */
};

struct perf_thread {
	pid_t tid;
	bool  is_seen; /* by the look that is under way */
	int  *fds;     /* by processor; -1: none */
};

static int
event_open(struct perf_event_attr *a, pid_t tid, int processor)
{
	int fd = (int)syscall(SYS_perf_event_open, a, tid, processor, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* ---- rings ---- */

static int
ring_open(struct perf_ring *ring, int processor, size_t pages)
{
	struct perf_event_attr a = { .size = sizeof(a), .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY,
				     .exclude_kernel = 1, .exclude_hv = 1 };
	size_t                 page = (size_t)sysconf(_SC_PAGESIZE);
	int                    fd = event_open(&a, 0, processor);
	void                  *map;

	*ring = (struct perf_ring){ .fd = fd < 0 ? -1 : fd, .size = pages * page };
	if (fd < 0)
		return fd == -ENODEV ? 0 : fd;
	map = mmap(NULL, page + ring->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return errno == EPERM ? -ENOBUFS : -errno;
	ring->page = map;
	ring->data = (unsigned char *)map + page;
	return 0;
}

static void
ring_close(struct perf_ring *ring)
{
	if (ring->page)
		munmap(ring->page, (size_t)(ring->data - (unsigned char *)ring->page) + ring->size);
	if (ring->fd >= 0)
		close(ring->fd);
}

static void
rings_close(struct perf *p)
{
	while (p->ring_count > 0)
		ring_close(&p->rings[--p->ring_count]);
}

static int
rings_open(struct perf *p, int processors, size_t pages)
{
	int err = 0;

	while (p->ring_count < processors && !err) {
		err = ring_open(&p->rings[p->ring_count], p->ring_count, pages);
		p->ring_count++;
	}
	if (err)
		rings_close(p);
	return err;
}

int
perf_open(struct perf *ret, pid_t pid, int64_t period_ns)
{
	long processors = sysconf(_SC_NPROCESSORS_CONF);
	int  err = -ENOBUFS;

	*ret = (struct perf){ .pid = pid, .period_ns = period_ns };
	if (!ARCH_PERF_REGS)
		return -ENOSYS;
	if (processors < 1 || processors > PROCESSORS_MAX)
		processors = PROCESSORS_MAX;
	ret->rings = calloc((size_t)processors, sizeof(*ret->rings));
	if (!ret->rings)
		return -ENOMEM;
	/* All share what a user may lock (kernel.perf_event_mlock_kb): if it is too much, all anew of half the size. */
	for (size_t pages = RING_PAGES_MOST; (err == -ENOBUFS || err == -ENOMEM) && pages >= RING_PAGES_LEAST; pages /= 2)
		err = rings_open(ret, (int)processors, pages);
	if (err)
		perf_close(ret);
	return err;
}

/* ---- threads ---- */

/* Time in the kernel belongs to the function that called it.  To see it needs more rights. */
static int
sampler_open(struct perf *p, pid_t tid, int processor)
{
	struct perf_event_attr a = {
		.size = sizeof(a), .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = (uint64_t)p->period_ns,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
		.sample_regs_user = ARCH_PERF_REGS, .sample_stack_user = PERF_STACK_BYTES,
		.exclude_kernel = p->no_kernel, .exclude_hv = 1,
		.comm = 1, .comm_exec = 1, /* tells of another program */
	};
	int fd = event_open(&a, tid, processor);

	if ((fd == -EACCES || fd == -EPERM) && !p->no_kernel) {
		a.exclude_kernel = 1;
		fd = event_open(&a, tid, processor);
		p->no_kernel = fd >= 0;
	}
	if (fd >= 0 && ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, p->rings[processor].fd) < 0) {
		int err = -errno;

		close(fd);
		return err;
	}
	return fd;
}

static void
thread_close(const struct perf *p, struct perf_thread *t)
{
	for (int i = 0; i < p->ring_count; i++)
		if (t->fds[i] >= 0)
			close(t->fds[i]);
	free(t->fds);
}

/* 0, also where it has just ended. */
static int
thread_add(struct perf *p, pid_t tid)
{
	struct perf_thread t = { tid, true, NULL }, *more;
	size_t             room = p->room ? 2 * p->room : THREADS_FIRST;
	int                err = 0;

	if (p->count == p->room) {
		more = reallocarray(p->threads, room, sizeof(*more));
		if (!more)
			return -ENOMEM;
		p->threads = more;
		p->room = room;
	}
	t.fds = malloc((size_t)p->ring_count * sizeof(*t.fds));
	if (!t.fds)
		return -ENOMEM;
	for (int i = 0; i < p->ring_count; i++) {
		int fd = !err && p->rings[i].fd >= 0 ? sampler_open(p, tid, i) : 0;

		err = fd < 0 ? fd : err;
		t.fds[i] = fd > 0 ? fd : -1;
	}
	if (err)
		thread_close(p, &t);
	else
		p->threads[p->count++] = t;
	return err == -ESRCH ? 0 : err;
}

static struct perf_thread *
thread_find(struct perf *p, pid_t tid)
{
	for (size_t n = 0; n < p->count; n++) {
		size_t i = (p->next + n) % p->count;

		if (p->threads[i].tid == tid) {
			p->next = i + 1;
			return &p->threads[i];
		}
	}
	return NULL;
}

int
perf_follow(struct perf *p)
{
	char           path[PROCESS_PATH_MAX];
	DIR           *dir;
	struct dirent *e;
	int            err = 0;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)p->pid);
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? -ESRCH : -errno;
	/* To its end, also after an error: what ended threads had is what new ones need. */
	while ((e = readdir(dir))) {
		pid_t               tid = (pid_t)atoi(e->d_name);
		struct perf_thread *t = tid > 0 ? thread_find(p, tid) : NULL;

		if (t)
			t->is_seen = true;
		else if (tid > 0 && !err)
			err = thread_add(p, tid);
	}
	closedir(dir);
	for (size_t i = p->count; i-- > 0;) {
		if (!p->threads[i].is_seen) {
			thread_close(p, &p->threads[i]);
			p->threads[i] = p->threads[--p->count];
		} else {
			p->threads[i].is_seen = false;
		}
	}
	return err ? err : (int)p->count;
}

/* ---- samples ---- */

static bool
take(const unsigned char **at, const unsigned char *end, void *to, size_t size)
{
	if ((size_t)(end - *at) < size)
		return false;
	memcpy(to, *at, size);
	*at += size;
	return true;
}

/* A record of the form that sampler_open() has asked for. */
static bool
sample_read(const unsigned char *at, const unsigned char *end, pid_t *ret_pid, struct perf_sample *ret)
{
	uint32_t ids[2];
	uint64_t abi, size, used = 0;

	*ret = (struct perf_sample){ .stack = NULL };
	if (!take(&at, end, ids, sizeof(ids)) || !take(&at, end, &abi, sizeof(abi)))
		return false;
	*ret_pid = (pid_t)ids[0];
	ret->tid = (pid_t)ids[1];
	ret->has_registers = abi == PERF_SAMPLE_REGS_ABI_64;
	if (abi != PERF_SAMPLE_REGS_ABI_NONE && !take(&at, end, ret->registers, sizeof(ret->registers)))
		return false;
	if (!take(&at, end, &size, sizeof(size)) || size > (size_t)(end - at))
		return false;
	ret->stack = at;
	at += size;
	if (size && (!take(&at, end, &used, sizeof(used)) || used > size))
		return false;
	ret->stack_bytes = used;
	return true;
}

static void
ring_copy(const struct perf_ring *r, uint64_t from, void *to, size_t size)
{
	size_t at = from % r->size, first = r->size - at < size ? r->size - at : size;

	memcpy(to, r->data + at, first);
	memcpy((unsigned char *)to + first, r->data, size - first);
}

static void
record_take(struct perf *p, const struct perf_event_header *h, const unsigned char *body, perf_sample_fn *fn, void *arg)
{
	const unsigned char *end = body + (h->size - sizeof(*h));
	struct perf_sample   s;
	uint64_t             lost[2]; /* id, count */
	pid_t                pid;

	if (h->type == PERF_RECORD_SAMPLE && sample_read(body, end, &pid, &s) && pid == p->pid)
		fn(arg, &s);
	else if (h->type == PERF_RECORD_LOST && take(&body, end, lost, sizeof(lost)))
		p->lost += lost[1];
}

static void
ring_drain(struct perf *p, struct perf_ring *r, perf_sample_fn *fn, void *arg)
{
	static unsigned char     body[RECORD_MAX];
	uint64_t                 tail = r->page->data_tail;
	struct perf_event_header h;

	while (tail + sizeof(h) <= r->head) {
		ring_copy(r, tail, &h, sizeof(h));
		if (h.size < sizeof(h) || tail + h.size > r->head)
			break;
		ring_copy(r, tail + sizeof(h), body, h.size - sizeof(h));
		record_take(p, &h, body, fn, arg);
		tail += h.size;
		__atomic_store_n(&r->page->data_tail, tail, __ATOMIC_RELEASE);
	}
}

static bool
ring_tells_exec(const struct perf *p, const struct perf_ring *r)
{
	uint64_t tail = r->page->data_tail;
	struct {
		struct perf_event_header h;
		uint32_t                 pid;
	} record;

	for (; tail + sizeof(record) <= r->head; tail += record.h.size) {
		ring_copy(r, tail, &record, sizeof(record));
		if (record.h.type == PERF_RECORD_COMM && record.h.misc & PERF_RECORD_MISC_COMM_EXEC &&
		    record.pid == (uint32_t)p->pid)
			return true;
		if (record.h.size < sizeof(record.h))
			break;
	}
	return false;
}

/* All at once: the walks of what one ring has would be time for another program to begin. */
bool
perf_look(struct perf *p)
{
	for (int i = 0; i < p->ring_count; i++)
		if (p->rings[i].page)
			p->rings[i].head = __atomic_load_n(&p->rings[i].page->data_head, __ATOMIC_ACQUIRE);
	for (int i = 0; i < p->ring_count; i++)
		if (p->rings[i].page && ring_tells_exec(p, &p->rings[i]))
			return true;
	return false;
}

void
perf_drain(struct perf *p, perf_sample_fn *fn, void *arg)
{
	for (int i = 0; i < p->ring_count; i++)
		if (p->rings[i].page)
			ring_drain(p, &p->rings[i], fn, arg);
}

unsigned
perf_walk(const struct perf_sample *s, uintptr_t *pcs, unsigned max, int *ret_truncated)
{
	struct unwind_regs regs;
	ucontext_t         context;
	unsigned           n = 0;

	arch_perf_context(s->registers, &context);
	unwind_regs_from_ucontext(&regs, &context);
	*ret_truncated = 1;
	/* Code that no table describes is judged when a walk has met it: then once more. */
	for (int turn = 0; turn < WALKS && (turn == 0 || unwind_verdicts_wanted()); turn++) {
		if (turn > 0)
			unwind_verdicts_settle(UNWIND_VERDICTS_WANTED);
		n = unwind_copy(&regs, s->stack, s->stack_bytes, regs.sp, pcs, max, ret_truncated);
	}
	if (n == 0)
		pcs[n++] = regs.pc;
	return n;
}

void
perf_close(struct perf *p)
{
	for (size_t i = 0; i < p->count; i++)
		thread_close(p, &p->threads[i]);
	free(p->threads);
	rings_close(p);
	free(p->rings);
	*p = (struct perf){ .pid = 0 };
}
