/*
 * heap_hooked.h - what test programs with the hooks linked in share: call sites
 * with known names, what the profile says about them, and both modes.
 */
#ifndef TESTS_HEAP_HOOKED_H
#define TESTS_HEAP_HOOKED_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "heap.h"
#include "heap_bind.h"
#include "heap_range.h"
#include "heap_set.h"
#include "hooks.h"
#include "stack_table.h"

/* A function that begins 512 bytes; no other site is in them. */
#define SITE_BYTES 512
#ifdef __clang__
#define SITE __attribute__((noinline, aligned(SITE_BYTES)))
#else
#define SITE __attribute__((noinline, noclone, aligned(SITE_BYTES)))
#endif

struct site_sum {
	int64_t values[4], raw[4];
	int     leaves; /* samples with the site as their leaf */
};

static inline struct site_sum
site_sum(const void *function)
{
	struct site_sum  sum = { { 0 }, { 0 }, 0 };
	struct profile   p;
	const uintptr_t *pcs;
	unsigned         n;

	if (heap_snapshot_heap(&p) < 0)
		abort();
	for (size_t i = 0; i < p.count; i++) {
		bool in;

		pcs = stack_table_pcs(p.samples[i].stack, &n);
		in = n > 0 && pcs[0] - (uintptr_t)function < SITE_BYTES;
		sum.leaves += in;
		for (int v = 0; in && v < 4; v++) {
			sum.values[v] += p.samples[i].values[v];
			sum.raw[v] += p.samples[i].raw_values[v];
		}
	}
	profile_release(&p);
	return sum;
}

/* With a sanitizer it is always the set, and failing calls may fail. */
#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifdef SANITIZED
const char *__asan_default_options(void) __attribute__((visibility("default")));

const char *
__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}
#endif

/* The test runs as two programs: with the range, and (FORCE_SET) with the address
 * set, into which scarce address space at the start drives it. */
static inline int
choose_mode(void)
{
#ifdef SANITIZED
	heap_bind();
	return heap_mode() == HEAP_SET ? 0 : -1;
#elif defined(FORCE_SET)
	struct rlimit before, scarce;

	if (getrlimit(RLIMIT_AS, &before) < 0)
		return -1;
	scarce = before;
	for (rlim_t mb = 16; mb < 1 << 20 && heap_mode() == HEAP_NONE; mb *= 2) {
		void *p;

		scarce.rlim_cur = mb << 20;
		if (setrlimit(RLIMIT_AS, &scarce) < 0)
			return -1;
		p = malloc(1 << 20); /* is there any at all? */
		free(p);
		if (!p)
			continue;
		heap_bind();
	}
	if (setrlimit(RLIMIT_AS, &before) < 0)
		return -1;
	return heap_mode() == HEAP_SET ? 0 : -1;
#else
	heap_bind();
	return heap_mode() == HEAP_RANGE ? 0 : -1;
#endif
}

/* Is this block a sample? */
static inline bool
is_sample(const void *block)
{
	uintptr_t start;
	size_t    size;

	if (heap_mode() == HEAP_SET) {
		return heap_set_has(block);
	}
	heap_range_bounds(&start, &size);
	return (uintptr_t)block - start < size;
}

#endif
