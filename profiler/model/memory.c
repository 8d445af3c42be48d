/*
 * memory.c - reading memory of the process that is looked at (process.h), which may not be there.
 *
 * An object may be unloaded while its headers are read, so they are read by the
 * kernel, which says EFAULT: through /proc/self/mem, by process_vm_readv(2), or by sending
 * them to ourselves.
 *
 * What a stranger would get wrong: none of the first two is always there.  A daemon that has
 * become another user finds /proc/self/mem to be root's, one that changed its root finds
 * no /proc at all; a container's seccomp rules may refuse the call.  Where both are
 * gone a pair of sockets is left, which everybody may have.  And both ask by the calling
 * thread: once main has ended by pthread_exit(3), the process' own files and id have no memory.
 *
 * Tests: tests/whole/restricted_process.t, tests/threads/test_without_proc.c.
 */
#include <config.h>

#include "memory.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "file.h"
#include "our_fd.h"
#include "process.h"

#define PIECE_BYTES ((size_t)4096) /* sent at once: no page is larger that is smaller, so it is there or not */

static atomic_bool refused;

void
memory_refuse(bool refuse)
{
	atomic_store(&refused, refuse);
}

static ssize_t
read_by_call(uintptr_t address, void *buf, size_t size)
{
	struct iovec here = { buf, size }, there = { (void *)address, size };

	if (atomic_load_explicit(&refused, memory_order_relaxed)) {
		errno = EPERM;
		return -1;
	}
	return process_vm_readv(process_memory_id(), &here, 1, &there, 1, 0);
}

bool
memory_call_refused(void)
{
	char from = 0, to;

	return read_by_call((uintptr_t)&from, &to, 1) != 1;
}

int
memory_open(struct memory *ret)
{
	char        path[PROCESS_PATH_MAX];
	const char *name = process_other() ? process_path("mem", path) : "/proc/thread-self/mem";
	int         mem = atomic_load(&refused) ? -EACCES : file_open(name), pair[2], r;

	*ret = (struct memory){ { .fd = mem < 0 ? -1 : mem }, { .fd = -1 } };
	if (process_other())
		return mem < 0 ? mem : 0;
	if (mem >= 0 || !memory_call_refused())
		return 0;
	r = our_fd_socketpair(pair);
	if (!r) {
		our_fd_keep_listed(&ret->from, pair[0]);
		our_fd_keep_listed(&ret->to, pair[1]);
	}
	return r;
}

void
memory_close(struct memory *m)
{
	if (m->to.fd < 0) {
		our_fd_close(m->from.fd);
		return;
	}
	our_fd_kept_close(&m->from);
	our_fd_kept_close(&m->to);
}

/* What was sent is there to be read; nobody waits, and nobody is cancelled in there: send(3) might be,
 * and sanitizers look at what it reads.  A daemon may close all descriptors there
 * are and open its own: nothing is sent to a number that is not ours any more, nor taken from one. */
static ssize_t
read_by_sending(const struct memory *m, uintptr_t address, void *buf, size_t size)
{
	size_t  rest = PIECE_BYTES - address % PIECE_BYTES, got = 0;
	ssize_t sent, n;

	if (!our_fd_is_kept(&m->to, NULL) || !our_fd_is_kept(&m->from, NULL))
		return -1;
	sent = syscall(SYS_sendto, m->to.fd, address, size < rest ? size : rest, MSG_NOSIGNAL | MSG_DONTWAIT, NULL, 0);
	while (sent > 0 && got < (size_t)sent) {
		n = syscall(SYS_recvfrom, m->from.fd, (char *)buf + got, (size_t)sent - got, MSG_DONTWAIT, NULL, NULL);
		if (n <= 0)
			return -1;
		got += (size_t)n;
	}
	return sent;
}

static ssize_t
read_piece(const struct memory *m, uintptr_t address, void *buf, size_t size)
{
	if (m->to.fd >= 0)
		return read_by_sending(m, address, buf, size);
	return m->from.fd >= 0 ? pread(m->from.fd, buf, size, (off_t)address) : read_by_call(address, buf, size);
}

size_t
memory_read_some(const struct memory *m, uintptr_t address, void *buf, size_t size)
{
	size_t  done = 0;
	ssize_t n;

	while (done < size) {
		n = read_piece(m, address + done, (char *)buf + done, size - done);
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	return done;
}

bool
memory_read(const struct memory *m, uintptr_t address, void *buf, size_t size)
{
	return memory_read_some(m, address, buf, size) == size;
}
