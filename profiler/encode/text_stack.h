/*
 * text_stack.h - a stack in the text forms: its addresses, and a line for each frame.
 */
#ifndef ENCODE_TEXT_STACK_H
#define ENCODE_TEXT_STACK_H

#include <stdint.h>

#include "frames.h"
#include "lines.h"

/* " 0x6925c9 0x692e38" and a newline: return addresses. */
void text_addresses(struct lines *l, const uintptr_t *pcs, unsigned n, const struct symbols *s);
/* "# labels: {"tenant":"acme"}" and a newline; nothing where there are none. */
void text_labels(struct lines *l, uint32_t labels);
/* "#\t0x6925c8\tleaky+0x28\t/src/daemon.c:23" for each, and an empty line. */
void text_frames(struct lines *l, const uintptr_t *pcs, unsigned n, struct symbols *s, struct frames *frames);

#endif
