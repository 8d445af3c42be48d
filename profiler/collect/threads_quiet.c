/*
 * threads_quiet.c - a blocked thread's stack, read without waking it.
 *
 *     TID/schedstat  how often it has run
 *     TID/syscall    where it is blocked: "281 0x5 ... SP PC"
 *     its stack      copied with process_vm_readv() on our own process
 *     TID/syscall    the same still?
 *     TID/schedstat  and has it not run?   Then the copy is one moment's; walk it.
 *
 * What a stranger would get wrong:
 * - The copy is not read from the stack itself: its thread may end, and the load would
 *   end the process, where process_vm_readv() says EFAULT.
 * - The same line twice does not prove that it did not move: a loop around poll() is
 *   in the same call most of the time.  The run count tells.
 * - Most stacks are short, and reading a whole page costs more than all the rest, so
 *   the copy grows only when the walk has run out of it.
 * - After setuid() inside a process the files of its threads are root's, and cannot
 *   be opened; nothing here changes "dumpable" for that.
 * - The frame pointer is not in that line.  Where a walk needs it and cannot prove what
 *   it was (unwind_copy()), the result is QUIET_UNKNOWN.
 *
 * Tests: tests/threads.t.
 */
#include <config.h>

#include "threads_quiet.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "file.h"
#include "own_fd.h"
#include "unwind.h"

#define LINE_BYTES   256 /* of TID/syscall and TID/schedstat */
#define STAT_BYTES   512
#define COPY_FIRST   ((size_t)4096) /* from sp on, then to the end of that page */
#define COPY_GROWTH  8
#define PF_EXITING   0x4 /* flags of TID/stat */

struct where {
	long      syscall;
	uintptr_t sp, pc;
};

static int
thread_open(const struct quiet *q, int32_t tid, const char *file)
{
	char     path[32], *p = path + sizeof(path);
	size_t   n = strlen(file) + 1;
	uint32_t number = (uint32_t)tid;

	/* From its end: this is called three times for each of thousands of threads. */
	p -= n;
	memcpy(p, file, n);
	*--p = '/';
	do {
		*--p = (char)('0' + number % 10);
	} while (number /= 10);
	return own_fd_openat(q->task, p, O_RDONLY, 0);
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

/* "NUMBER ARGUMENTS SP PC", or "-1 SP PC" outside of a call; false: "running". */
static bool
where_parse(const char *line, struct where *ret)
{
	const char *last = NULL, *before = NULL, *p = line;
	bool        negative = *p == '-';

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
		}
	if (!before)
		return false;
	ret->sp = hex_number(before);
	ret->pc = hex_number(last);
	return ret->sp && ret->pc;
}

/* Bytes from address on that could be copied; page by page, so that what is unmapped
 * beyond the stack costs nothing but itself. */
static size_t
stack_copy(const struct quiet *q, uintptr_t address, size_t size)
{
	struct iovec local = { q->stack, size }, remote = { (void *)address, size };
	ssize_t      n = process_vm_readv((pid_t)syscall(SYS_getpid), &local, 1, &remote, 1, 0);

	return n > 0 ? (size_t)n : 0;
}

/* Walks copies of growing size until the root is reached or there is no more. */
static bool
stack_walk(const struct quiet *q, const struct where *w, struct dump_thread *t, uintptr_t *pcs, unsigned max,
	   bool *ret_denied)
{
	struct unwind_regs regs = { .pc = w->pc, .sp = w->sp, .exact = 1, .fp_unknown = 1 };
	size_t             size = COPY_FIRST * 2 - w->sp % COPY_FIRST, got;
	int                truncated = 1;

	for (;; size *= COPY_GROWTH) {
		if (size > THREADS_STACK_MAX)
			size = THREADS_STACK_MAX;
		got = stack_copy(q, w->sp, size);
		*ret_denied = got == 0;
		if (got == 0)
			return false;
		t->count = unwind_copy(&regs, q->stack, got, w->sp, pcs, max, &truncated);
		t->truncated = truncated;
		if (!truncated)
			return true;
		/* Too deep a stack is complete as far as it can be. */
		if (t->count == max)
			return true;
		if (got < size || size == THREADS_STACK_MAX)
			return false;
	}
}

static enum quiet_result
open_failed(int error)
{
	return error == -ENOENT || error == -ESRCH ? QUIET_GONE : QUIET_DENIED;
}

enum quiet_result
quiet_read(struct quiet *q, struct dump_thread *t, uintptr_t *pcs, unsigned max)
{
	char              line[LINE_BYTES], again[LINE_BYTES], runs[LINE_BYTES];
	enum quiet_result result = QUIET_DENIED;
	struct where      w;
	int               call, sched = -1;
	bool              whole, denied;

	call = thread_open(q, t->tid, "syscall");
	if (call < 0)
		return open_failed(call);
	sched = thread_open(q, t->tid, "schedstat");
	if (sched < 0) {
		result = open_failed(sched);
		goto out;
	}
	if (!line_read(sched, runs, sizeof(runs)) || !line_read(call, line, sizeof(line))) {
		result = errno == ESRCH ? QUIET_GONE : QUIET_DENIED;
		goto out;
	}
	result = QUIET_RUNNING;
	if (!where_parse(line, &w))
		goto out;
	whole = stack_walk(q, &w, t, pcs, max, &denied);
	if (!line_read(call, again, sizeof(again)) || strcmp(line, again) != 0 ||
	    !line_read(sched, again, sizeof(again)) || strcmp(runs, again) != 0)
		goto out;
	t->syscall = (int32_t)w.syscall;
	result = whole ? QUIET_READ : denied ? QUIET_DENIED : QUIET_UNKNOWN;
out:
	file_close(sched);
	file_close(call);
	return result;
}

bool
quiet_name(struct quiet *q, struct dump_thread *t)
{
	int     fd = thread_open(q, t->tid, "comm");
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, t->name, sizeof(t->name));
	file_close(fd);
	if (n <= 0)
		return false;
	t->name[n - 1] = '\0'; /* in place of the newline */
	return true;
}

char
quiet_state(struct quiet *q, int32_t tid)
{
	char        buf[STAT_BYTES];
	const char *p, *f;
	int         fd = thread_open(q, tid, "stat");
	unsigned    flags = 0;
	bool        ok;

	if (fd < 0)
		return 0;
	ok = line_read(fd, buf, sizeof(buf));
	file_close(fd);
	p = ok ? strrchr(buf, ')') : NULL;
	if (!p || !p[1] || !p[2])
		return 0;
	/* ") S ppid pgrp session tty tpgid flags" */
	p += 2;
	if (*p == 'Z' || *p == 'X')
		return 0;
	f = p;
	for (int spaces = 0; *f && spaces < 6; f++)
		spaces += *f == ' ';
	for (; *f >= '0' && *f <= '9'; f++)
		flags = flags * 10 + (unsigned)(*f - '0');
	return flags & PF_EXITING ? 0 : *p;
}

int
quiet_open(struct quiet *q)
{
	q->stack = mmap(NULL, THREADS_STACK_MAX, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (q->stack == MAP_FAILED)
		return -ENOMEM;
	q->task = own_fd_open("/proc/self/task", O_RDONLY | O_DIRECTORY, 0);
	if (q->task < 0)
		munmap(q->stack, THREADS_STACK_MAX);
	return q->task < 0 ? q->task : 0;
}

void
quiet_close(struct quiet *q)
{
	file_close(q->task);
	munmap(q->stack, THREADS_STACK_MAX);
}
