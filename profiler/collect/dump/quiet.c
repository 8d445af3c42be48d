/*
 * quiet.c - a blocked thread's stack, read without waking it.
 *
 *     its clock      how long it has run; as long as when it was read last, and the same
 *                    words on its stack?  Done.
 *     TID/syscall    where it is blocked: "281 0x5 ... SP PC"
 *     its stack      copied with process_vm_readv() on our own process, or, where that is refused,
 *                    as memory.c has it
 *     its clock      has it not run?   Then the copy is one moment's.
 *
 * What a stranger would get wrong:
 * - The copy is not read from the stack itself: its thread may end, and the load would
 *   end the process, where process_vm_readv() says EFAULT.
 * - The same line of TID/syscall twice does not prove that it did not move: a loop around
 *   poll() is in the same call most of the time.  Its CPU clock does, and alone: the
 *   kernel writes that line of a thread that is off its processor, and accounts for all
 *   the time that one spends on it, in nanoseconds; what changes a stack takes hundreds.
 * - Not the run count of TID/schedstat, which says the same: that file is half the price
 *   of a dump.  And not on a machine whose clocks go by ticks (blind): nobody is read
 *   quietly there.
 * - Memory is read by the id of the thread that reads, never the process': when the first
 *   thread has ended by pthread_exit(3) there is no memory under that one.
 * - Most stacks are short, and each page of a copy has its price, so it grows only when
 *   the walk has run out of it.
 * - Without /proc, or with another namespace's, nobody can be read; only whether somebody runs is seen.
 * - After setuid() inside a process the files of its threads are root's, and cannot
 *   be opened; nothing here changes "dumpable" for that.
 * - The kernel makes threads in a process that never leave it (io_uring's, vhost's): their
 *   registers in that line are zero.  While one runs there is no line; then its flag and
 *   its name together tell, as that flag was another's before Linux 5.12.
 * - The frame pointer is not in that line.  Where a walk needs it and cannot prove what
 *   it was (unwind_copy()), the result is QUIET_UNKNOWN.
 *
 * Tests: tests/threads/thousand_blocked.t.
 */
#include <config.h>

#include "quiet.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "clock.h"
#include "our_fd.h"
#include "pages.h"
#include "proc_self.h"
#include "process.h"
#include "unwind.h"

#define LINE_BYTES   256 /* of TID/syscall */
#define STAT_BYTES   512
#define COPY_PAGE    ((size_t)4096)
#define COPY_FIRST   ((size_t)1024) /* from sp on at least, and then to the end of that page */
#define COPY_USUAL_MAX ((size_t)16384)
#define COPY_LESS    16             /* a part so large less than what was enough before */
#define TOP_BYTES    ((size_t)512)  /* of a stack, that tell it from others */
#define CLOCK_LOOKS  16
#define PF_EXITING   0x4 /* flags of TID/stat */
#define PF_IO_WORKER 0x10
#define IO_WORKER    "(iou-" /* what their names begin with there */

#define FUTEX_ARGUMENTS 4 /* the word, what to do, the value that it is to have, until when */

struct where {
	long      syscall;
	uintptr_t sp, pc;
	struct dump_futex futex;
};

static int
thread_open(const struct quiet *q, int32_t tid, const char *file)
{
	char     path[32], *p = path + sizeof(path);
	size_t   n = strlen(file) + 1;
	uint32_t number = (uint32_t)tid;

	/* From its end: this is called for each of thousands of threads. */
	p -= n;
	memcpy(p, file, n);
	*--p = '/';
	do {
		*--p = (char)('0' + number % 10);
	} while (number /= 10);
	return our_fd_swift_open(q->task, p);
}

/* From the file's begin, NUL-terminated; false: nothing could be read. */
static bool
line_read(int fd, char *buf, size_t size)
{
	ssize_t n = pread(fd, buf, size - 1, 0);

	if (n <= 0)
		return false;
	buf[n] = '\0';
	return true;
}

/* ---- marks ---- */

/* As thread_clock_ns(), which cannot be asked of another process' threads.  A kernel that keeps no such figures has
 * no file, or "0 0 0" in it. */
static int64_t
clock_of(const struct quiet *q, int32_t tid)
{
	char    line[LINE_BYTES];
	int64_t ns = 0;
	int     fd;

	if (!process_other())
		return thread_clock_ns(tid);
	fd = thread_open(q, tid, "schedstat");
	if (fd >= 0 && line_read(fd, line, sizeof(line)))
		ns = strtoll(line, NULL, 10);
	if (fd >= 0)
		our_fd_swift_close(fd, false);
	if (ns > 0)
		return ns;
	errno = quiet_state((struct quiet *)q, tid) ? ENOTSUP : EINVAL; /* EINVAL: it is gone */
	return -1;
}

/* Of the first words in room. */
static uint64_t
top_hash(const struct quiet *q, uint32_t bytes)
{
	uint64_t h = bytes, word;

	for (uint32_t i = 0; i + sizeof(word) <= bytes; i += sizeof(word)) {
		memcpy(&word, q->room->stack + i, sizeof(word));
		h = (h ^ word) * 0x9e3779b97f4a7c15ULL;
		h ^= h >> 32;
	}
	return h;
}

bool
quiet_same(const struct dump_mark *a, const struct dump_mark *b)
{
	return a->top_bytes > 0 && a->cpu_ns == b->cpu_ns && a->sp == b->sp && a->top_bytes == b->top_bytes &&
	       a->top == b->top;
}

/* Two steps one after the other: a clock that goes by ticks takes one now and then. */
static bool
clock_is_fine(void)
{
	pid_t   tid = (pid_t)syscall(SYS_gettid);
	int64_t before = thread_clock_ns(tid);

	for (int i = 0, steps = 0; i < CLOCK_LOOKS && before >= 0; i++) {
		int64_t now = thread_clock_ns(tid);

		steps = now > before ? steps + 1 : 0;
		if (steps == 2)
			return true;
		before = now;
	}
	return false;
}

/* ---- lines ---- */

static uintptr_t
hex_number(const char *s)
{
	uintptr_t v = 0;

	if (s[0] == '0' && s[1] == 'x')
		s += 2;
	for (;; s++) {
		unsigned d;

		if (*s >= '0' && *s <= '9')
			d = (unsigned)(*s - '0');
		else if (*s >= 'a' && *s <= 'f')
			d = (unsigned)(*s - 'a') + 10;
		else
			return v;
		v = v << 4 | d;
	}
}

/* "NUMBER ARGUMENTS SP PC", or "-1 SP PC" outside of a call; false: "running".  Both are 0
 * of a thread that the kernel has for itself. */
static bool
where_parse(const char *line, struct where *ret)
{
	const char *last = NULL, *before = NULL, *p = line, *arguments[FUTEX_ARGUMENTS];
	bool        negative = *p == '-';
	unsigned    n = 0;

	if (!negative && (*p < '0' || *p > '9'))
		return false;
	ret->syscall = 0;
	for (p += negative; *p >= '0' && *p <= '9'; p++)
		ret->syscall = ret->syscall * 10 + (*p - '0');
	if (negative)
		ret->syscall = DUMP_NO_SYSCALL;
	for (; *p && *p != '\n'; p++)
		if (*p == ' ') {
			before = last;
			last = p + 1;
			if (n < FUTEX_ARGUMENTS)
				arguments[n++] = last;
		}
	if (!before)
		return false;
	ret->futex = (struct dump_futex){ 0 };
	if (ret->syscall == SYS_futex && n == FUTEX_ARGUMENTS)
		ret->futex = (struct dump_futex){ .word = hex_number(arguments[0]),
			.call = (uint32_t)hex_number(arguments[1]) & (uint32_t)FUTEX_CMD_MASK,
			.value = (uint32_t)hex_number(arguments[2]), .timed = hex_number(arguments[3]) != 0 };
	ret->sp = hex_number(before);
	ret->pc = hex_number(last);
	return true;
}

/* Bytes from address on that could be copied behind those that were; page by page, so that
 * what is unmapped beyond the stack costs nothing but itself. */
static size_t
stack_copy(const struct quiet *q, size_t have, uintptr_t address, size_t size)
{
	struct iovec local = { q->room->stack + have, size }, remote = { (void *)address, size };
	ssize_t      n;

	if (!q->by_call)
		return memory_read_some(&q->memory, address, q->room->stack + have, size);
	n = process_vm_readv(process_memory_id(), &local, 1, &remote, 1, 0);
	return n > 0 ? (size_t)n : 0;
}

/* Threads of a pool are alike: the first copy is to be the last, as often as not. */
static void
usual_note(struct quiet *q, size_t have, bool grown)
{
	if (grown)
		q->usual = have < COPY_USUAL_MAX ? have : COPY_USUAL_MAX;
	else if (q->usual > COPY_FIRST)
		q->usual -= q->usual / COPY_LESS;
}

/* Walks a copy that grows until the root is reached or there is no more. */
static bool
stack_walk(struct quiet *q, const struct where *w, struct dump_thread *t, uintptr_t *pcs, unsigned max,
	   bool *ret_denied)
{
	struct unwind_regs regs = { .pc = w->pc, .sp = w->sp, .exact = 1, .fp_unknown = 1, .code = &q->room->code };
	size_t             rest = COPY_PAGE - w->sp % COPY_PAGE, want = rest, have = 0, first;
	int                truncated = 1;

	q->walked.size = 0;
	if (want < q->usual)
		want = rest + (q->usual - rest + COPY_PAGE - 1) / COPY_PAGE * COPY_PAGE;
	first = want;
	for (;; want = have + (want < COPY_PAGE ? COPY_PAGE : (want + COPY_PAGE - 1) / COPY_PAGE * COPY_PAGE)) {
		if (want > THREADS_STACK_MAX)
			want = THREADS_STACK_MAX;
		have += stack_copy(q, have, w->sp + have, want - have);
		*ret_denied = have == 0;
		if (have == 0)
			return false;
		t->count = unwind_copy(&regs, q->room->stack, have, w->sp, pcs, max, &truncated);
		t->truncated = truncated;
		q->walked.pc = w->pc;
		q->walked.sp = w->sp;
		q->walked.fp = q->room->code.fp;
		q->walked.size = have;
		if (!truncated) {
			usual_note(q, have, have > first);
			return true;
		}
		/* Too deep a stack is complete as far as it can be. */
		if (t->count == max)
			return true;
		if (have < want || want == THREADS_STACK_MAX)
			return !UNWIND_AT_ONCE; /* then a signal would tell less than this copy */
	}
}

static enum quiet_result
open_failed(int error)
{
	return error == -ENOENT || error == -ESRCH ? QUIET_GONE : QUIET_DENIED;
}

/* Without /proc: the clock of a thread that runs moves whenever it is read; 0: it is gone. */
static char
state_by_clock(int32_t tid)
{
	int64_t before = thread_clock_ns(tid), after = thread_clock_ns(tid);

	return before < 0 || after < 0 ? 0 : after > before ? 'R' : 'S';
}

/* Where it is blocked, or why that cannot be said. */
static enum quiet_result
where_read(const struct quiet *q, int32_t tid, struct where *ret)
{
	char line[LINE_BYTES];
	int  fd, error;
	bool ok, blocked;

	if (q->task < 0)
		return state_by_clock(tid) == 'R' ? QUIET_RUNNING : QUIET_DENIED;
	fd = thread_open(q, tid, "syscall");
	if (fd < 0)
		return open_failed(fd);
	ok = line_read(fd, line, sizeof(line));
	error = -errno;
	blocked = ok && where_parse(line, ret);
	our_fd_swift_close(fd, blocked);
	if (!ok)
		return error == -ESRCH ? QUIET_GONE : QUIET_DENIED;
	return !blocked ? QUIET_RUNNING : ret->sp && ret->pc ? QUIET_READ : QUIET_KERNEL;
}

/* It has run for as long as it had then, and its stack begins as it did. */
static bool
stands_still(const struct quiet *q, const struct dump_mark *known, int64_t cpu_ns)
{
	return known->top_bytes > 0 && known->cpu_ns == cpu_ns &&
	       stack_copy(q, 0, known->sp, known->top_bytes) == known->top_bytes &&
	       top_hash(q, known->top_bytes) == known->top;
}

enum quiet_result
quiet_read(struct quiet *q, struct dump_thread *t, const struct dump_mark *known, uintptr_t *pcs, unsigned max)
{
	struct where      w;
	enum quiet_result r;
	bool              whole, denied;

	t->syscall = DUMP_NO_SYSCALL; /* it may have been blocked at an earlier look */
	t->futex = (struct dump_futex){ 0 };
	t->mark = (struct dump_mark){ .cpu_ns = clock_of(q, t->tid) };
	if (t->mark.cpu_ns < 0)
		return errno == EINVAL ? QUIET_GONE : QUIET_DENIED;
	if (q->blind)
		return QUIET_DENIED;
	if (known && stands_still(q, known, t->mark.cpu_ns)) {
		t->mark = *known;
		return QUIET_UNMOVED;
	}
	r = where_read(q, t->tid, &w);
	if (r != QUIET_READ)
		return r;
	whole = stack_walk(q, &w, t, pcs, max, &denied);
	if (clock_of(q, t->tid) != t->mark.cpu_ns)
		return QUIET_MOVED;
	t->mark.sp = w.sp;
	t->mark.top_bytes = (uint32_t)(q->walked.size < TOP_BYTES ? q->walked.size : TOP_BYTES);
	t->mark.top = top_hash(q, t->mark.top_bytes);
	t->syscall = (int32_t)w.syscall;
	t->futex = w.futex;
	return whole ? QUIET_READ : denied ? QUIET_DENIED : QUIET_UNKNOWN;
}

bool
quiet_futex(struct quiet *q, int32_t tid, struct dump_futex *ret)
{
	struct where w;

	if (where_read(q, tid, &w) != QUIET_READ)
		return false;
	*ret = w.futex;
	return true;
}

bool
quiet_name(struct quiet *q, struct dump_thread *t)
{
	int     fd;
	ssize_t n;

	if (q->task < 0) {
		memcpy(t->name, "?", 2);
		return true;
	}
	fd = thread_open(q, t->tid, "comm");
	if (fd < 0)
		return false;
	n = pread(fd, t->name, sizeof(t->name), 0);
	our_fd_swift_close(fd, false);
	if (n <= 0)
		return false;
	t->name[n - 1] = '\0'; /* in place of the newline */
	return true;
}

/* TID/stat from the state on: "S ppid pgrp session tty tpgid flags"; *ret_name begins at "(". */
static const char *
stat_read(const struct quiet *q, int32_t tid, char buf[STAT_BYTES], const char **ret_name)
{
	int   fd = thread_open(q, tid, "stat");
	char *p;
	bool  ok;

	if (fd < 0)
		return NULL;
	ok = line_read(fd, buf, STAT_BYTES);
	our_fd_swift_close(fd, false);
	p = ok ? strrchr(buf, ')') : NULL;
	*ret_name = p ? strchr(buf, '(') : NULL;
	return p && *ret_name && p[1] && p[2] ? p + 2 : NULL;
}

char
quiet_state(struct quiet *q, int32_t tid)
{
	char        buf[STAT_BYTES];
	const char *p, *f, *name;
	unsigned    flags = 0;

	if (q->task < 0)
		return state_by_clock(tid);
	p = stat_read(q, tid, buf, &name);
	if (!p || *p == 'Z' || *p == 'X')
		return 0;
	f = p;
	for (int spaces = 0; *f && spaces < 6; f++)
		spaces += *f == ' ';
	for (; *f >= '0' && *f <= '9'; f++)
		flags = flags * 10 + (unsigned)(*f - '0');
	if (flags & PF_IO_WORKER && strncmp(name, IO_WORKER, strlen(IO_WORKER)) == 0)
		return 0;
	return flags & PF_EXITING ? 0 : *p;
}

bool
quiet_is_zombie(struct quiet *q, int32_t tid)
{
	char        buf[STAT_BYTES];
	const char *name, *p = q->task < 0 ? NULL : stat_read(q, tid, buf, &name);

	return p && (*p == 'Z' || *p == 'X');
}

int
quiet_open(struct quiet *q)
{
	char path[PROCESS_PATH_MAX];

	q->room = pages_map(sizeof(*q->room));
	if (!q->room)
		return -ENOMEM;
	q->task = process_other() ? our_fd_open(process_path("task", path), O_RDONLY | O_DIRECTORY, 0) : proc_self_tasks();
	if (q->task == -EMFILE || q->task == -ENFILE || q->task == -ENOMEM) {
		pages_unmap(q->room, sizeof(*q->room));
		return q->task;
	}
	q->by_call = !process_other() && !memory_call_refused();
	if (!q->by_call && (q->task < 0 || memory_open(&q->memory) < 0))
		q->by_call = true; /* it fails, then */
	q->room->code.memory = q->by_call ? NULL : &q->memory;
	q->usual = COPY_FIRST;
	q->swift = our_fd_swift_begin();
	q->blind = !process_other() && !clock_is_fine();
	return 0;
}

void
quiet_close(struct quiet *q)
{
	if (!q->by_call)
		memory_close(&q->memory);
	our_fd_swift_end(q->swift);
	our_fd_close(q->task);
	pages_unmap(q->room, sizeof(*q->room));
}
