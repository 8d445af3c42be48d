/*
 * product.h - what a collector makes and a format writes: a profile, a dump, a trace or a
 * table of resident memory.
 */
#ifndef MODEL_PRODUCT_H
#define MODEL_PRODUCT_H

#include "dump.h"
#include "profile.h"
#include "residence.h"
#include "trace.h"

#define PRODUCT_NOTE_BYTES    128
#define PRODUCT_COMMENT_BYTES 256 /* of one comment, with its NUL */

enum product_type { PRODUCT_PROFILE = 1, PRODUCT_DUMP = 2, PRODUCT_TRACE = 4, PRODUCT_RESIDENCE = 8 };

/* Go has four texts for debug=1: block, mutex, heap and allocs, and all others. */
enum product_text { PRODUCT_TEXT_COUNTS, PRODUCT_TEXT_DELAYS, PRODUCT_TEXT_CONTENTIONS, PRODUCT_TEXT_HEAP };

struct product {
	enum product_type type;
	char              note[PRODUCT_NOTE_BYTES]; /* how it was collected, in a line; "": nothing to say */
	union {
		struct profile profile;
		struct dump    dump;
		struct trace   trace;
		struct residence residence;
	};
};

/* From the beginning to the end of what was measured over a time, in nanoseconds; else 0. */
int64_t product_duration_ns(const struct product *p);
/* A line of what it says of itself, if it is a profile or a trace. */
void product_comment(struct product *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Drops references and memory. */
void product_release(struct product *p);

#endif
