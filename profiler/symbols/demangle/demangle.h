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
/* The same without arguments, those of templates, what is returned and what is behind a name, as go tool pprof shows it:
 * "main()::{lambda(int)#1}::operator()". */
const char *demangle_short(const char *name, struct demangle_room **room, struct arena *a);

#endif
