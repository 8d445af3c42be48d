/*
 * generations.h - which object lay at an address, and when.
 *
 * A plugin that is unloaded leaves its addresses to the next one.  So that both keep
 * their names, an address in a stack says whose it is: the stack table puts a tag into
 * the 16 bits that no address of a program uses.  Tag 0 is the first object that was
 * ever seen there, which is all there is in nearly every process.
 *
 *     tagged pc = tag << 48 | pc
 *
 * Hooks ask generations_tag(); all else is for threads of our own and for requests.
 */
#ifndef MODEL_GENERATIONS_H
#define MODEL_GENERATIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena.h"
#include "build_id.h"

#define GENERATIONS_PC_BITS 48
#define GENERATIONS_PC_MASK (((uintptr_t)1 << GENERATIONS_PC_BITS) - 1)
#define GENERATIONS_TAG_MAX 0x7ffe              /* of all that comes when tags are used up */
#define GENERATIONS_MAX     4096                /* objects remembered, those that are gone among them */
#define GENERATIONS_BYTES   ((size_t)4 << 20)   /* what all of them may take, paths included */

/* One object in one place. */
struct generation {
	uintptr_t   start, limit;  /* its executable mapping */
	uint64_t    offset;        /* in the file */
	uint64_t    device, inode;
	const char *path;          /* "": code made at run time, where an object was or came */
	char        build_id[BUILD_ID_MAX];
	uint16_t    tag;
	bool        loaded, deleted; /* deleted: the file had no name any more when it was seen */
	bool        seen;            /* for generations_look() alone */
	uintptr_t   mark;            /* where four bytes of it tell it from others; 0: none */
	uint32_t    mark_is;
};

/*
 * generations_follow - who is told when a stack meets what the last look has not seen
 *
 * Both are called in hooks, under the stack table's lock: they wake whoever looks again.
 */
struct generations_follower {
	void (*unknown)(uintptr_t pc); /* no object that is known has it, and none ever had */
	void (*moved)(void);           /* an object has come, gone, or taken another's place */
};
void generations_follow(const struct generations_follower *f);

/*
 * generations_start, _stop - whether objects are remembered at all
 *
 * Stopped while a stack still lives, what is known is kept: the stack may be written.
 */
void generations_start(void);
void generations_stop(void);
/*
 * generations_look - compare what is mapped now with what is known, and publish it
 *
 *   returns  1 when objects have come or gone; 0, also when it is not started; or a
 *            negative errno
 *   threads  any, not from a handler or a hook; no loader lock; reads /proc/self
 */
int  generations_look(void);
/* Is any object not what the last look has seen?  One system call for each, and one more where it has no build
 * id.  True as well where the kernel does not answer the latter. */
bool generations_moved(void);
/* Code made at run time, found since the last look.  -EEXIST: an object is or was there, so
 * a look is needed; -ENOSPC: likewise. */
int  generations_note(uintptr_t start, uintptr_t limit);
/* Copies of all that are known, into an arena; 0 of them while no object has ever gone
 * or taken another's place.  0 or -ENOMEM. */
int  generations_copy(struct arena *a, struct generation **ret, size_t *ret_count);
/* Whose a tagged pc is; NULL: nobody's that is known. */
const struct generation *generations_find(const struct generation *all, size_t count, uintptr_t tagged);
/* Objects that could not be remembered: beyond the limits above. */
unsigned generations_forgotten(void);
/* In a forked child. */
void generations_forked(void);

/* ---- under the stack table's lock ---- */

struct generations_published;
/* The tags of these pcs; false: all are 0 and tags were not written.  No lock, no
 * allocation, no load from an address in question; one system call for each object
 * that could have been unloaded. */
bool generations_tag(const uintptr_t *pcs, unsigned count, uint16_t *tags);
/* Will these, as they came out of the table, never have other tags than the 0 they have?
 * So it is where all of them are in objects that cannot be unloaded. */
bool generations_settled(const uintptr_t *pcs, unsigned count);

#endif
