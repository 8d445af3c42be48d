/*
 * heap_bind.h - may we sample: are malloc, calloc, realloc and free really ours?
 */
#ifndef COLLECT_HEAP_BIND_H
#define COLLECT_HEAP_BIND_H

enum heap_mode {
	HEAP_NONE,  /* nothing can be sampled */
	HEAP_RANGE, /* sampled blocks in a range of their own */
	HEAP_SET,   /* sampled blocks are the next allocator's, known by address */
};

/* The mode for this process, with the memory for it in place.  Decides once. */
enum heap_mode heap_bind(void);
enum heap_mode heap_mode(void); /* as decided, HEAP_NONE before */
const char    *heap_bind_status(void);

#endif
