/*
 * fixture.h - what test programs with the hooks linked in share: call sites
 * with known names, and what the profile says about them.
 */
#ifndef TESTS_HEAP_FIXTURE_H
#define TESTS_HEAP_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "heap/heap.h"
#include "heap/bind.h"
#include "heap/set.h"
#include "abi.h"
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

	if (heap_snapshot(&p, false) < 0)
		abort();
	for (size_t i = 0; i < p.count; i++) {
		bool in;

		pcs = stack_table_pcs(p.samples[i].stack, &n);
		in = n > 0 && pcs[0] - (uintptr_t)function < SITE_BYTES;
		sum.leaves += in;
		for (int v = 0; in && v < 4; v++) {
			sum.values[v] += p.samples[i].values[v];
			sum.raw[v] += p.samples[i].counted_values[v];
		}
	}
	profile_release(&p);
	return sum;
}

/* With a sanitizer failing calls may fail. */
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

/* Is this block a sample? */
static inline bool
is_sample(const void *block)
{
	return heap_set_has(block);
}

/* Before the tests: the hooks are in charge of malloc. */
static int
set_up(void **state)
{
	(void)state;
#ifdef HOOKS_OF_BEFORE
	component_hooks.size = offsetof(struct component_hooks, filter);
#endif
	return heap_bind() ? 0 : -1;
}

#endif
