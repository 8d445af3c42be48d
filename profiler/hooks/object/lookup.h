/*
 * lookup.h - finds functions by name in the objects of this process, without the loader.
 *
 * Nothing here takes a lock, allocates, keeps a message for dlerror(), translates one or
 * runs a constructor, so it may be called from the first instruction on, whatever the
 * caller's caller holds.  No function of another object is called either, but the
 * resolver of an indirect function that is found.
 */
#ifndef HOOKS_OBJECT_LOOKUP_H
#define HOOKS_OBJECT_LOOKUP_H

#include <link.h>
#include <stddef.h>
#include <stdint.h>

#include "object.h"

/* A name that is looked for, and what was found. */
struct lookup {
	const char            *name;
	const char            *version; /* NULL: the one that programs are linked with today */
	uint32_t               hash;    /* lookup.c's own */
	void                  *address; /* NULL: not found.  What is not NULL is not looked for. */
	const struct link_map *object;  /* that it is in */
};

/* In the objects behind ours, in the order in which calls are bound, as dlsym(RTLD_NEXT)
 * does; one that has another copy of the hooks is passed over.  Returns how many were. */
int lookup_behind(struct lookup *names, size_t count) HIDDEN;

/* In all objects, the program first, as dlsym(RTLD_DEFAULT) does. */
void lookup_first(struct lookup *names, size_t count) HIDDEN;

/* In one object, by its load address and its dynamic section; for what comes after main()
 * has begun, as an object may then be taken away: the caller keeps it.  NULL: not there. */
void *lookup_in(uintptr_t base, const ElfW(Dyn) *dynamic, const char *name) HIDDEN;

#endif
