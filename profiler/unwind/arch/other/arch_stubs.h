/*
 * arch_stubs.h - any other architecture: the stubs through which an object calls others.  None is
 * known, so those are "object+0x1234" like other unnamed code.
 */
#ifndef ARCH_STUBS_H
#define ARCH_STUBS_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>

#include "plt.h"

/* Relocations of the slots that stubs jump through, of other slots, and of none by name; R_*. */
#define ARCH_RELOC_SLOT     0
#define ARCH_RELOC_DATA     0
#define ARCH_RELOC_RELATIVE 0

/* The next stub of the section s, whose bytes are code, from *at on, which goes behind it; false:
 * there is no more. */
static inline bool
arch_stub_next(const ElfW(Shdr) *s, const unsigned char *code, size_t *at, struct plt_stub *ret)
{
	(void)s;
	(void)code;
	(void)at;
	(void)ret;
	return false;
}

#endif
