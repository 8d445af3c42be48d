/*
 * our_object.c - the object that the library's code is in, which must stay.
 *
 * libcomponent.so is linked with -z nodelete.  But libcomponent.a may be part of a plugin, and
 * whoever unloads that would leave threads, signal handlers and hooks that run on in what is
 * no longer there.  So the plugin is kept as soon as there is one of these.
 *
 * What a stranger would get wrong: the program itself is not asked about, as no name finds it;
 * and a lookup that fails leaves a message for dlerror(), which the daemon would find.
 *
 * Tests: tests/hooks/interposition.t.
 */
#include <config.h>

#include "our_object.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

void
our_object_keep(void)
{
	static _Atomic bool done;
	struct link_map    *map = NULL;
	Dl_info             info;
	void               *handle;

	if (atomic_load(&done) || atomic_exchange(&done, true))
		return;
	if (!dladdr1((void *)our_object_keep, &info, (void **)&map, RTLD_DL_LINKMAP) || !map || !map->l_name ||
		!*map->l_name)
		return;
	handle = dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
	if (handle) {
		dlclose(handle);
	} else {
		dlerror();
		dlerror();
	}
}
