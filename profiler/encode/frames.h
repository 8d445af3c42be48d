/*
 * frames.h - what the encoders write for one address of a stack.
 */
#ifndef ENCODE_FRAMES_H
#define ENCODE_FRAMES_H

#include <stdbool.h>

#include "arena.h"
#include "dump.h"
#include "profile.h"
#include "stack_table.h"
#include "symbols.h"
#include "table.h"

#define ENCODE_MEMORY_MAX ((size_t)64 << 20) /* bytes of one encoder's tables: a million addresses */

struct frames {
	struct symbol_frame frame[SYMBOLS_FRAMES_MAX];
	unsigned            count;   /* at least 1, each with a name */
	int                 mapping; /* -1: none */
	uintptr_t           address; /* as it is shown: see symbols_address() */
	bool                pseudo;  /* one of our own words, not an address */
	char                text[24]; /* holds the name when it is but an address */
};

/* Addresses in order of appearance. */
struct frames_list {
	struct arena_budget *budget;
	uintptr_t           *pcs;
	size_t               count, room;
};

/* 0 or -ENOMEM. */
int  frames_list_add(struct frames_list *l, uintptr_t pc);
/* Those of a stack that are not in seen yet. */
int  frames_list_add_stack(struct frames_list *l, struct table *seen, uint32_t stack);
void frames_list_release(struct frames_list *l);

/* Never fails.  Code outside all mappings (made at run time, or unloaded since) is
 * named by its address, "0x7f0012345678", as Go's text formats do. */
void frames_of(struct symbols *s, uintptr_t pc, struct frames *ret);
/* Looks up the lines of all addresses of a profile, before the first frames_of().  For
 * want of memory some may have none. */
void frames_resolve(const struct profile *p, struct symbols *s);
/* The same for a dump, creators among them. */
void frames_resolve_dump(const struct dump *d, struct symbols *s, struct arena_budget *budget);
/* The stack of a sample, never empty; at most STACK_FRAMES_MAX. */
const uintptr_t *frames_stack(uint32_t stack, unsigned *ret_count);
/* The type that is shown where one alone is: the default one, or the last. */
unsigned frames_type(const struct profile *p);
/* Samples that found no room, as one more sample under [lost samples]: counts get
 * the number, types in the period's unit that number of periods; what is "in use"
 * cannot be known and stays 0.  False if nothing is lost or the profile's maker has added that sample. */
bool frames_lost(const struct profile *p, struct profile_sample *ret);
extern const uintptr_t frames_lost_stack[1];

#endif
