/*
 * memory.c - reading memory of this process that may not be there.
 *
 * An object may be unloaded while its headers are read, so they are read by the
 * kernel, which says EFAULT: through /proc/self/mem, or by process_vm_readv(2).
 *
 * What a stranger would get wrong: neither is always there.  A daemon that has become
 * another user finds /proc/self/mem to be root's; a container's seccomp rules may
 * refuse the call.  Both together leave no way.  And both ask by the calling thread: once
 * main has ended by pthread_exit(3), the process' own files and id have no memory.
 *
 * Tests: tests/confined.t, tests/test_unwind_tables.c.
 */
#include <config.h>

#include "memory.h"

#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

#include "file.h"
#include "thread_id.h"

#define BY_CALL (-1) /* instead of a descriptor */

static bool
read_by_call(uintptr_t address, void *buf, size_t size)
{
	struct iovec here = { buf, size }, there = { (void *)address, size };

	return process_vm_readv(thread_id_self(), &here, 1, &there, 1, 0) == (ssize_t)size;
}

int
memory_open(int *ret_mem)
{
	int mem = file_open("/proc/thread-self/mem"), to;

	if (mem < 0) {
		if (!read_by_call((uintptr_t)&mem, &to, sizeof(to)))
			return mem;
		mem = BY_CALL;
	}
	*ret_mem = mem;
	return 0;
}

void
memory_close(int mem)
{
	if (mem != BY_CALL)
		file_close(mem);
}

bool
memory_read(int mem, uintptr_t address, void *buf, size_t size)
{
	size_t  done = 0;
	ssize_t n;

	if (mem == BY_CALL)
		return read_by_call(address, buf, size);
	while (done < size) {
		n = pread(mem, (char *)buf + done, size - done, (off_t)(address + done));
		if (n <= 0)
			return false;
		done += (size_t)n;
	}
	return true;
}
