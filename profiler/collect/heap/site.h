/*
 * site.h - what each call site has allocated and freed, as far as sampled.
 *
 * A site is a stack, a label set and a size, as a bucket of Go's is: all three stay what they
 * are, and so does the sample that is written of it.  The first HEAP_SITE_SIZES sizes of a
 * stack and label set have a site each; further ones share one for each power of two,
 * so that a stack that asks for a new size each time has some fifty.
 *
 * A site keeps one reference of its stack and its labels for ever: profiles are cumulative.
 * So stacks may take half of --profiling-memory, and label sets half of the memory for these: other
 * profiles need the rest.  A stack beyond that is counted as [stack table full], and a sample whose
 * label set is beyond it without labels.  Sites with labels are also limited in number: a label may
 * have a new value for each request, for ever.
 */
#ifndef COLLECT_HEAP_SITE_H
#define COLLECT_HEAP_SITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One sampled block, as it was counted: freeing takes the same off again. */
struct heap_block {
	uint64_t size;   /* as asked for */
	uint64_t weight; /* heap_weight() */
	uint32_t site;   /* 0: not looked up yet */
	uint32_t stack;  /* until then, a reference of the caller's ... */
	uint32_t labels; /* ... each; 0: none */
};

#define HEAP_SITES_LABELLED 16384 /* 3 MiB, and at most so many label sets are kept */
#define HEAP_SITE_SIZES     8     /* told apart exactly */
#define HEAP_SITES_PART     2     /* of the memory for stacks, and of that for label sets */

/* Everything since the start; 1/65536 allocations and bytes in scaled ones. */
struct heap_counts {
	uint64_t alloc_objects, alloc_bytes, free_objects, free_bytes;
	uint64_t alloc_weight, alloc_scaled, free_weight, free_scaled;
};

/* What a site is, beside its counts. */
struct heap_site_key {
	uint32_t stack, labels;
	uint64_t bytes; /* of each block, or the power of two that is at least that */
};

/* Under heap_lock(). */

/* Takes over one reference of the stack and one of the labels; 0 without memory, and then
 * not.  Beyond the limits: the site of [stack table full], or the one without labels. */
uint32_t heap_site_of(uint32_t stack, uint32_t labels, uint64_t size);
/* The same for a block whose site is 0; false without memory. */
bool     heap_site_resolve(struct heap_block *b);
void     heap_site_allocated(const struct heap_block *b);
void     heap_site_freed(const struct heap_block *b);
/* i from 0 on.  1; 0 behind the last; -EBUSY: a thread is counting there just now, try
 * again, or have it as it is with `anyway`, perhaps with half of that thread's block. */
int      heap_site_read(size_t i, bool anyway, struct heap_site_key *ret_key, struct heap_counts *ret);

/* Any time, in any thread, interrupted anywhere. */

/* The site of a stack as a walk has found it, of labels that somebody holds, and of a size;
 * 0: not known here.  No reference needed. */
uint32_t heap_site_find(const uintptr_t *pcs, unsigned n, uint32_t labels, uint64_t size);
/* Makes heap_site_find() find this block's site, if what its addresses mean can never change.
 * 0 is no site and does nothing. */
void     heap_site_remember(const struct heap_block *b);
/* False: somebody else is counting there; then under heap_lock(). */
bool     heap_site_try_allocated(const struct heap_block *b);
bool     heap_site_try_freed(const struct heap_block *b);
/* Takes back one freed and one allocated block, where neither has happened.  Does nothing while another
 * thread counts there. */
void     heap_site_uncount(const struct heap_block *b);
size_t   heap_site_count(void);
/* Samples that are counted without their labels, or their stack, for want of room. */
uint64_t heap_site_unlabelled(void);
uint64_t heap_site_stackless(void);

#endif
