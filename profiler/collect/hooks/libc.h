/*
 * libc.h - glibc's own names of its allocator, all of them in this one file.
 *
 * They are exported but in no header.  Two uses: next[] holds them from the
 * first instruction on, before anything can be looked up, and comparing with them
 * tells whether the next allocator is glibc's.  Weak: another libc has none.
 */
#ifndef HOOKS_LIBC_H
#define HOOKS_LIBC_H

#include <stddef.h>

extern void *__libc_malloc(size_t size) __attribute__((weak));
extern void *__libc_calloc(size_t count, size_t size) __attribute__((weak));
extern void *__libc_realloc(void *block, size_t size) __attribute__((weak));
extern void  __libc_free(void *block) __attribute__((weak));
extern void *__libc_memalign(size_t align, size_t size) __attribute__((weak));

#endif
