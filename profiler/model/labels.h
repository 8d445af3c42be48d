/*
 * labels.h - label sets: some keys with a value each, which say on whose behalf
 * something was done.
 *
 * A set is immutable, there is one of each content, and its references are counted: it
 * lies in the stack table.  0 is the empty set.  The thread's own are in
 * collect/labels/thread.h.
 */
#ifndef MODEL_LABELS_H
#define MODEL_LABELS_H

#include <stddef.h>
#include <stdint.h>

#include "stack_table.h"

#define LABELS_MAX       16  /* labels of one set */
#define LABELS_KEY_MAX   64  /* bytes of a key */
#define LABELS_VALUE_MAX 255 /* bytes of a value */
#define LABELS_BYTES_MAX (STACK_FRAMES_MAX * sizeof(uintptr_t)) /* of a set, a zero after each key and value */
#define LABELS_PART      4   /* all sets together take a quarter of --profiling-memory at most */
/* Of labels_text(): what is escaped takes six bytes; quotes, colon, comma, blank. */
#define LABELS_TEXT_MAX  (LABELS_BYTES_MAX * 6 + (size_t)LABELS_MAX * 7 + 3)

struct label {
	const char *key, *value;
};

/* A set that is being put together, on the stack: key, 0, value, 0, ... by ascending key. */
struct labels_draft {
	size_t size;
	union {
		uintptr_t words[STACK_FRAMES_MAX];
		char      text[LABELS_BYTES_MAX];
	};
};

/*
 * labels_draft - the labels of a set with one more, or one less
 *
 * A value of NULL or "" takes the key out.
 *
 *   returns  0; -EINVAL: no key, or a key or value that is too long; -E2BIG: too many,
 *            or too long together
 *   threads  any, while a reference of the set is held; signal-safe
 */
int      labels_draft(uint32_t set, const char *key, const char *value, struct labels_draft *ret);
unsigned labels_draft_words(const struct labels_draft *d);
/* Takes one reference.  0: without memory, or the draft is empty.  LABELS_BUSY: the table
 * could not be had, see stack_table_add_labels().  Neither from handlers nor within malloc. */
#define LABELS_BUSY ((uint32_t)STACK_PSEUDO_LOST)
uint32_t labels_intern(const struct labels_draft *d);
void     labels_ref(uint32_t set);
void     labels_unref(uint32_t set);
/* By ascending key; how many.  Borrowed while a reference is held. */
unsigned labels_read(uint32_t set, struct label ret[LABELS_MAX]);
/* {"key":"value", "other":"value"} as Go prints them, in JSON's way of escaping; "" of the
 * empty set.  A label that has no room is left out with all after it.  The length. */
size_t   labels_text(uint32_t set, char *buf, size_t size);
/* key=value other=value, for people; control characters are question marks.  The rest as
 * labels_text(), and LABELS_BYTES_MAX are always enough. */
size_t   labels_plain(uint32_t set, char *buf, size_t size);

#endif
