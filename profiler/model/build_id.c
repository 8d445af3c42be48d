/*
 * build_id.c - what tells an ELF object from all others.
 *
 * A note is a header, a name and a value, the last two padded to the alignment.  Every byte is
 * untrusted.
 *
 * Tests: tests/model/test_generations.c, tests/symbols/test_hostile.c.
 */
#include <config.h>

#include "build_id.h"

#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <string.h>

size_t
build_id_find(const unsigned char *notes, size_t size, size_t align, char hex[BUILD_ID_MAX])
{
	static const char digits[] = "0123456789abcdef";
	ElfW(Nhdr)        n;

	for (size_t at = 0; size - at >= sizeof(n);) {
		uint64_t name, value;

		memcpy(&n, notes + at, sizeof(n));
		at += sizeof(n);
		/* The header, of 12 bytes, and the name are aligned together. */
		name = ((sizeof(n) + n.n_namesz + (uint64_t)align - 1) & ~((uint64_t)align - 1)) - sizeof(n);
		value = (n.n_descsz + (uint64_t)align - 1) & ~((uint64_t)align - 1);
		if (name > size - at || n.n_descsz > size - at - name)
			return 0;
		if (n.n_type == NT_GNU_BUILD_ID && n.n_namesz == 4 && !memcmp(notes + at, "GNU", 4) && n.n_descsz &&
		    n.n_descsz <= (BUILD_ID_MAX - 1) / 2) {
			at += name;
			for (unsigned i = 0; i < n.n_descsz; i++) {
				*hex++ = digits[notes[at + i] >> 4];
				*hex++ = digits[notes[at + i] & 15];
			}
			*hex = '\0';
			return at;
		}
		if (value > size - at - name)
			return 0;
		at += name + value;
	}
	return 0;
}
