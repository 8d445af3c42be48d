/*
 * demangle.h - C++ names as people write them.
 */
#ifndef SYMBOLS_DEMANGLE_H
#define SYMBOLS_DEMANGLE_H

#include "arena.h"

/* A copy in the arena, or NULL: not a C++ name, nobody in this process can
 * demangle, or the name is unreasonable.  Calls malloc (the C++ library does). */
const char *demangle(const char *name, struct arena *a);

#endif
