/*
 * under_valgrind.c - does valgrind run this process, and what to do there instead.
 *
 * arch_valgrind_request() makes valgrind's documented client requests, written out so that its
 * headers are not needed: instructions that change nothing on a processor.  memcheck alone answers
 * MEMCHECK_GET_VBITS.  Where arch/ has no such instructions valgrind is not noticed.
 *
 * Tests: tests/whole/sanitizers.t, tests/whole/short_resources.t.
 */
#include <config.h>

#include "under_valgrind.h"

#include <errno.h>
#include <sys/uio.h>

#include "arch.h"
#include "thread_id.h"

#define RUNNING_ON_VALGRIND 0x1001
#define MEMCHECK_GET_VBITS  0x4d430008 /* of, to, bytes */

bool under_valgrind, under_memcheck;

/* 0 where nobody answers. */
static uint64_t
request(uint64_t what, uintptr_t a, uintptr_t b, uintptr_t c)
{
	volatile uint64_t words[6] = { what, a, b, c };

	return arch_valgrind_request(words);
}

__attribute__((constructor)) static void
ask(void)
{
	uint64_t of = 0, to = 0;

	under_valgrind = request(RUNNING_ON_VALGRIND, 0, 0, 0) != 0;
	under_memcheck = under_valgrind && request(MEMCHECK_GET_VBITS, (uintptr_t)&of, (uintptr_t)&to, sizeof(of)) == 1;
}

bool
under_memcheck_copy(void *to, uintptr_t from, size_t size)
{
	struct iovec here = { to, size }, there = { (void *)from, size };
	int          saved = errno;
	bool         all = process_vm_readv(thread_id_self(), &here, 1, &there, 1, 0) == (ssize_t)size;

	errno = saved;
	return all;
}
