/*
 * debugdata.c - the small symbol table that distributions pack into .gnu_debugdata.
 *
 * The section is an ELF file in an xz stream, with the symbols that .dynsym does not
 * have.  It unpacks into chunks of a list and then into one piece, under three caps:
 * xz's own memory, the size of the result, and the request's budget.  liblzma's
 * memory comes from the arena through its allocator.
 *
 * What a stranger would get wrong:
 * - liblzma is loaded when profiling starts.  A program that never starts it should not
 *   have xz in it: that alone was a fifth of what we add to its start.
 * - It is not loaded when it is needed: that would enter the loader, whose lock somebody
 *   may hold for ever just when a dump is wanted.
 * - A program linked with -static would get a second libc with it.
 *
 * Tests: tests/symbols/names.t, tests/project/exports.t, tests/symbols/test_hostile.c
 */
#include <config.h>

#include "debugdata.h"

#include <dlfcn.h>
#include <errno.h>
#include <lzma.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/auxv.h>

#define LIBRARY  "liblzma.so.5"
#define IN_BYTES 8192
#define FIRST    ((size_t)256 << 10) /* bytes; most results fit at once */

static struct {
	_Atomic bool                      ready;
	__typeof__(&lzma_stream_decoder) decoder;
	__typeof__(&lzma_code)           code;
	__typeof__(&lzma_end)            end;
} xz;

void
debugdata_prepare(void)
{
	static _Atomic bool begun;
	void               *handle;

	if (atomic_exchange(&begun, true) || getauxval(AT_BASE) == 0)
		return;
	handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (handle) {
		xz.decoder = (__typeof__(xz.decoder))dlsym(handle, "lzma_stream_decoder");
		xz.code = (__typeof__(xz.code))dlsym(handle, "lzma_code");
		xz.end = (__typeof__(xz.end))dlsym(handle, "lzma_end");
	}
	if (handle && xz.decoder && xz.code && xz.end) {
		atomic_store(&xz.ready, true);
	} else {
		dlerror(); /* not for the daemon, */
		dlerror(); /* nor the memory of it */
	}
}

/* Into out; *ret_size is 0 when it does not fit. */
static int
unpack(const struct image *img, const ElfW(Shdr) *s, struct arena *scratch, void *out, size_t room, size_t *ret_size)
{
	const lzma_allocator from_arena = { arena_calloc, arena_keep, scratch };
	lzma_stream          z = LZMA_STREAM_INIT;
	unsigned char        in[IN_BYTES];
	uint64_t             at = s->sh_offset, left = s->sh_size;
	lzma_ret             l;
	int                  r = 0;

	z.allocator = &from_arena;
	if (xz.decoder(&z, DEBUGDATA_MEMORY_MAX, 0) != LZMA_OK)
		return -ENOMEM;
	z.next_out = out;
	z.avail_out = room;
	do {
		if (!z.avail_in && left) {
			size_t n = left < sizeof(in) ? (size_t)left : sizeof(in);

			r = image_read(img, at, in, n);
			if (r < 0)
				break;
			at += n;
			left -= n;
			z.next_in = in;
			z.avail_in = n;
		}
		l = xz.code(&z, left || z.avail_in ? LZMA_RUN : LZMA_FINISH);
	} while (l == LZMA_OK && z.avail_out);
	if (!r && l == LZMA_STREAM_END)
		*ret_size = room - z.avail_out;
	else if (!r && !z.avail_out)
		*ret_size = 0;
	else if (!r)
		r = l == LZMA_MEMLIMIT_ERROR || l == LZMA_MEM_ERROR ? -ENOMEM : -ENOEXEC;
	xz.end(&z);
	return r;
}

int
debugdata_open(const struct image *img, struct arena *a, struct image *ret)
{
	ElfW(Shdr) s;
	int        r = image_section_find(img, ".gnu_debugdata", &s);

	if (r < 0)
		return r;
	if (!atomic_load(&xz.ready))
		return -ENOSYS;
	for (size_t room = FIRST; room <= DEBUGDATA_SIZE_MAX; room *= 4) {
		struct arena scratch, result;
		size_t       size = 0;
		void        *out;

		arena_init(&scratch, a->budget);
		arena_init(&result, a->budget);
		out = arena_alloc(&result, room);
		r = out ? unpack(img, &s, &scratch, out, room, &size) : -ENOMEM;
		arena_release(&scratch);
		if (!r && size) {
			void *copy = arena_alloc(a, size);

			r = copy ? image_open_data(ret, __builtin_memcpy(copy, out, size), size) : -ENOMEM;
		}
		arena_release(&result);
		if (r < 0 || size)
			return r;
	}
	return -EFBIG;
}
