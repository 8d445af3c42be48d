/*
 * order.h - sorting numbers by what they stand for: in place, or those below a count.
 */
#ifndef ENCODE_ORDER_H
#define ENCODE_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena.h"

/* Whether a comes before b. */
typedef bool order_before_fn(const void *arg, uint32_t a, uint32_t b);

void order_sort(uint32_t *items, size_t count, order_before_fn *before, const void *arg);
/* The numbers below count, sorted; NULL without memory. */
uint32_t *order_of(struct arena *a, size_t count, order_before_fn *before, const void *arg);

#endif
