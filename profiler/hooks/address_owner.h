/*
 * address_owner.h - whose is an address: which object's, and is it a PLT entry?
 *
 * What a stranger would get wrong:
 * - dladdr() looks for a name, too, and reads every symbol of the object for it: 80,000
 *   instructions an address in glibc, at the start of every program.  _dl_find_object()
 *   (glibc 2.35) only looks for the object.
 * - A program that is not position independent may know a function of another object by
 *   an entry of its own, which dlsym() finds first.  It leads to whoever defines the
 *   function, so the address alone tells nothing about the owner.
 *
 * Tests: tests/hooks/interposition.t.
 */
#ifndef HOOKS_ADDRESS_OWNER_H
#define HOOKS_ADDRESS_OWNER_H

#include <dlfcn.h>
#include <link.h>
#include <stddef.h>

/* The object that an address is in; NULL: none.  A message for dlerror() may be left. */
static inline const struct link_map *
address_owner(const void *address)
{
	struct link_map *map = NULL;
	Dl_info          info;
#ifdef DLFO_STRUCT_HAS_EH_DBASE
	static int (*find)(void *, struct dl_find_object *);
	struct dl_find_object found;

	if (!find)
		find = (int (*)(void *, struct dl_find_object *))dlsym(RTLD_DEFAULT, "_dl_find_object");
	if (find)
		return address && find((void *)address, &found) == 0 ? found.dlfo_link_map : NULL;
#endif
	return address && dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) ? map : NULL;
}

static inline int
hooks_is_plt_entry(void *symbol)
{
	const struct link_map *object = address_owner(symbol);
	const ElfW(Sym)       *entry = NULL;
	Dl_info                info;

	return object && !object->l_prev && object->l_addr == 0 && /* the program, at fixed addresses */
	       dladdr1(symbol, &info, (void **)&entry, RTLD_DL_SYMENT) && entry && entry->st_shndx == SHN_UNDEF;
}

#endif
