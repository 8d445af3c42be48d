/*
 * demangle.h - C++ and Rust names as people write them.
 */
#ifndef SYMBOLS_DEMANGLE_H
#define SYMBOLS_DEMANGLE_H

#include "arena.h"

struct demangle_room;

/*
 * demangle - a mangled name in words
 *
 *   room     where a name is taken apart, made in the arena by the first call; lives as long
 *   returns  the name, cleaned, in the arena; NULL: it is not mangled, or unreasonable
 *   threads  one of them for one room; needs up to 24 KiB of stack; no malloc, no library
 *   signals  not from a handler
 */
const char *demangle(const char *name, struct demangle_room **room, struct arena *a);

#endif
