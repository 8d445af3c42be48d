/*
 * rate.h - the mathematics of sampling by bytes.
 *
 * Samples are points of a Poisson process over the bytes a thread allocates, one
 * in `rate` on average.  An allocation of n bytes is a sample if a point falls
 * into it, which has the probability 1 - exp(-n/rate); counted 1/that much, it
 * stands for those that were not.  That holds for each allocation with the rate
 * its own gap was drawn with: sums stay unbiased when the rate changes.
 */
#ifndef COLLECT_HEAP_RATE_H
#define COLLECT_HEAP_RATE_H

#include <stddef.h>
#include <stdint.h>

#define HEAP_RATE_MAX  ((uint64_t)1 << 40) /* bytes; with the weight's 16 bits below it fits 64 */
#define HEAP_WEIGHT_ONE 65536              /* weights are multiples of 1/65536 */

/* Bytes until the next sample; -1 with a rate of 1: every allocation.  random is
 * the state of the generator, not 0. */
int64_t heap_gap(uint64_t rate, uint64_t *random);
/* How many allocations of this size one sample stands for. */
uint64_t heap_weight(size_t size, uint64_t rate);
/* The bytes they stand for. */
uint64_t heap_weight_bytes(size_t size, uint64_t weight);

#endif
