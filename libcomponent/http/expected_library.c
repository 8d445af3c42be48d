/*
 * expected_library.c - proves that what we call is what we were built for: asks in which object it lies.
 *
 * What a stranger would get wrong: a main program that defines the name is not an
 * excuse.  Only when our own code lies in the same object (everything linked
 * statically, or into the program) has the linker settled the matter.
 *
 * Under MemorySanitizer each library must have been built for it: it takes what others
 * write for uninitialised, and ends the program at the first request.
 *
 * Why not dladdr(): it looks through all of the object's symbols for a name that nobody asks for.
 *
 * Tests: tests/serve/replaced_library.t, tests/whole/sanitizers.t.
 */
#include <config.h>

#include "expected_library.h"

#include <errno.h>
#include <link.h>
#include <string.h>

#include <event2/buffer.h>
#include <event2/event.h>

#define MAJOR_AND_MINOR 0xffff0000u

#if defined(__has_feature)
#if __has_feature(memory_sanitizer)
#define BUILT_FOR_MSAN 1
#endif
#endif
#ifndef BUILT_FOR_MSAN
#define BUILT_FOR_MSAN 0
#endif

/* A reference, as a dlsym() that finds nothing allocates, and in the daemon's name. */
void __msan_init(void) __attribute__((weak));

struct object {
	uintptr_t   address;
	const char *name; /* "": the program; NULL: none has the address */
	const ElfW(Phdr) *headers; /* tells one from another */
};

static int
object_look(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct object *o = arg;

	(void)size;
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];

		if (h->p_type != PT_LOAD || o->address - (info->dlpi_addr + h->p_vaddr) >= h->p_memsz)
			continue;
		o->name = info->dlpi_name;
		o->headers = info->dlpi_phdr;
		return 1;
	}
	return 0;
}

int
expected_library_check(const void *address, const char *name, const char *const *library, struct component_error *err)
{
	struct object theirs = { .address = (uintptr_t)address }, ours = { .address = (uintptr_t)expected_library_check };

	if (!dl_iterate_phdr(object_look, &theirs) || !dl_iterate_phdr(object_look, &ours))
		return 0; /* nobody knows */
	if (theirs.headers == ours.headers)
		return 0;
	for (; *library; library++)
		if (!strncmp(basename(theirs.name), *library, strlen(*library)))
			return 0;
	component_error_set(err, "the HTTP server is refused: '%s' has taken over %s(), which it needs; "
		"hide that symbol there (link with -Wl,--exclude-libs,ALL or a version script)",
		*theirs.name ? theirs.name : program_invocation_name, name);
	return -ENOTSUP;
}

int
expected_library_libevent(struct component_error *err)
{
	static const char *const library[] = { "libevent_core", "libevent-", "libevent.", NULL };
	static const struct {
		const char *name;
		void      (*address)(void);
	} used[] = {
		{ "event_base_new", (void (*)(void))event_base_new },
		{ "event_base_new_with_config", (void (*)(void))event_base_new_with_config },
		{ "event_base_loop", (void (*)(void))event_base_loop },
		{ "event_new", (void (*)(void))event_new },
		{ "event_add", (void (*)(void))event_add },
		{ "evbuffer_new", (void (*)(void))evbuffer_new },
		{ "evbuffer_add", (void (*)(void))evbuffer_add },
	};

	if (!BUILT_FOR_MSAN && __msan_init) {
		component_error_set(err, "the HTTP server is refused: the program is built with -fsanitize=memory, which "
			"takes what libevent and zlib write for uninitialised; build it with -fsanitize=address, or use valgrind");
		return -ENOTSUP;
	}
	for (size_t i = 0; i < sizeof(used) / sizeof(used[0]); i++) {
		int r = expected_library_check((const void *)(uintptr_t)used[i].address, used[i].name, library, err);

		if (r)
			return r;
	}
	if ((event_get_version_number() & MAJOR_AND_MINOR) == (LIBEVENT_VERSION_NUMBER & MAJOR_AND_MINOR))
		return 0;
	component_error_set(err, "the HTTP server is refused: libevent %s is loaded, %s is needed",
		event_get_version(), LIBEVENT_VERSION);
	return -ENOTSUP;
}
