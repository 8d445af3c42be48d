/*
 * facts.h - what a profile says about how it came to be.
 */
#ifndef COLLECT_HEAP_FACTS_H
#define COLLECT_HEAP_FACTS_H

#include <stdint.h>

struct heap_facts {
	int64_t  since_ns;  /* UTC; 0: never on */
	uint64_t rate;      /* now, or when it was last on, or the default */
	uint64_t truncated; /* stacks that end early */
};

void heap_facts(struct heap_facts *ret);

#endif
