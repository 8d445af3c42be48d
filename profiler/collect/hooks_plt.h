/*
 * hooks_plt.h - is an address a program's own PLT entry?
 *
 * A program that is not position independent may know a function of another object
 * by an entry of its own, which dlsym() finds first.  It leads to whoever defines the
 * function, so the address alone tells nothing about the owner.
 *
 * Tests: tests/hooks.t.
 */
#ifndef COLLECT_HOOKS_PLT_H
#define COLLECT_HOOKS_PLT_H

#include <dlfcn.h>
#include <link.h>

static inline int
hooks_is_plt_entry(void *symbol)
{
	const ElfW(Sym) *entry = NULL;
	Dl_info          info;

	return symbol && dladdr1(symbol, &info, (void **)&entry, RTLD_DL_SYMENT) && entry &&
	       entry->st_shndx == SHN_UNDEF;
}

#endif
