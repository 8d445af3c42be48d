/*
 * operators.h - which operators new are counted by themselves.
 */
#ifndef COLLECT_HEAP_OPERATORS_H
#define COLLECT_HEAP_OPERATORS_H

#include "abi.h"

/* While heap_state is HOOKS_ON and begin() adds to the thread's `unused` and passes: calls
 * each operator of the next allocator that was taken to count by itself, and has those that
 * come through another hook of ours pass.  Allocates a few bytes and gives them back. */
void heap_operators_probe(struct hooks_thread *t);

#endif
