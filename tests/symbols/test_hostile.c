/*
 * test_hostile.c - files that are cut, changed or made to hurt.
 *
 * A real library, in a piece of malloc'ed memory of exactly its size, is read in
 * every way our reader knows, after having been cut at every 64 bytes, and after
 * bytes of it were changed, with fixed seeds.  What must not happen is a crash, an
 * access outside of the piece (run under AddressSanitizer this finds them; the arena
 * marks what lies between its pieces too), or a reading without end.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>
#include <lzma.h>

#include "debugdata.h"
#include "object.h"

#define LIMIT        ((size_t)64 << 20)
#define FLIPS        4000 /* variants of each file; a few seconds under sanitizers */
#define SECONDS_EACH 2    /* no single file may take longer */

static unsigned char *plain, *packed; /* the second has .gnu_debugdata, no .symtab */
static size_t         plain_size, packed_size;

static uint32_t
next(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

/* Everything the reader does with a file, in the order in which it does it. */
static size_t
read_everything(const unsigned char *data, size_t size)
{
	struct arena_budget budget = { 0, LIMIT };
	struct arena        arena;
	struct object      *o = calloc(1, sizeof(*o));
	size_t              named = 0;
	time_t              start = time(NULL);

	assert_non_null(o);
	arena_init(&arena, &budget);
	if (!image_open_data(&o->image, data, size)) {
		uint64_t vaddr;
		uint32_t seed = 1;

		image_build_id(&o->image, o->build_id);
		assert_true(strlen(o->build_id) < BUILD_ID_MAX);
		object_read_table(o, &arena);
		object_read_ranges(o, &arena);
		for (int i = 0; i < 200; i++) {
			const struct symtab *tables[] = { &o->table, &o->stubs, &o->ranges };
			uint64_t             at = i < 100 ? next(&seed) % 8192 : next(&seed) * (uint64_t)next(&seed);

			if (image_vaddr(&o->image, at, &vaddr))
				at = vaddr;
			if (i % 10 == 0 && o->table.source_count > 0) {
				uint64_t    offset;
				const char *name = symtab_data(&o->table, at, &arena, &offset);

				assert_true(!name || strlen(name) <= SYMTAB_NAME_MAX);
			}
			for (int t = 0; t < 3; t++) {
				size_t      k = symtab_find(tables[t], at);
				const char *name = NULL;

				if (k != SYMTAB_NONE && t < 2)
					name = symtab_name(tables[t], k, &arena);

				named += name && strlen(name) <= SYMTAB_NAME_MAX;
			}
		}
		for (size_t i = 0; i < o->table.count; i++)
			symtab_name(&o->table, i, &arena);
	}
	arena_release(&arena);
	assert_int_equal(budget.used, 0);
	assert_true(time(NULL) - start <= SECONDS_EACH);
	free(o);
	return named;
}

/* In memory of its own, so that a sanitizer knows where it ends. */
static void
read_copy(const unsigned char *data, size_t size, uint32_t flips, uint32_t seed)
{
	unsigned char *copy = malloc(size ? size : 1);

	assert_non_null(copy);
	memcpy(copy, data, size);
	while (flips-- && size) {
		uint32_t at = next(&seed) % size, how = next(&seed) % 4;

		/* Headers are where it hurts: half of the changes go there. */
		if (next(&seed) & 1)
			at = next(&seed) & 1 ? at % 1024 : (uint32_t)(size - 1 - at % 2048 % size);
		copy[at % size] = how == 0 ? 0 : how == 1 ? 255 : (unsigned char)next(&seed);
	}
	read_everything(copy, size);
	free(copy);
}

static bool
has_function(const unsigned char *data, size_t size, const char *name)
{
	struct arena_budget budget = { 0, LIMIT };
	struct arena        arena;
	struct object      *o = calloc(1, sizeof(*o));
	bool                found = false;

	assert_non_null(o);
	arena_init(&arena, &budget);
	assert_int_equal(image_open_data(&o->image, data, size), 0);
	assert_int_equal(object_read_table(o, &arena), 0);
	for (size_t i = 0; i < o->table.count; i++)
		found |= !strcmp(symtab_name(&o->table, i, &arena), name);
	arena_release(&arena);
	free(o);
	return found;
}

static bool
has_ranges(const unsigned char *data, size_t size)
{
	struct arena_budget budget = { 0, LIMIT };
	struct arena        arena;
	struct object      *o = calloc(1, sizeof(*o));
	bool                found;

	assert_non_null(o);
	arena_init(&arena, &budget);
	assert_int_equal(image_open_data(&o->image, data, size), 0);
	object_read_table(o, &arena);
	object_read_ranges(o, &arena);
	found = o->ranges.count > 3;
	arena_release(&arena);
	free(o);
	return found;
}

static void
the_whole_files_are_read(void **state)
{
	(void)state;
	assert_true(read_everything(plain, plain_size) > 0);
	assert_true(read_everything(packed, packed_size) > 0);
	assert_true(has_function(plain, plain_size, "local_helper"));
	assert_true(has_function(packed, packed_size, "local_helper"));
	assert_true(has_function(packed, packed_size, "victim_work"));
	assert_false(has_function(packed, packed_size, "getpid"));
	assert_true(has_ranges(packed, packed_size));
}

static void
a_file_cut_at_every_64_bytes_is_no_danger(void **state)
{
	(void)state;
	for (size_t n = 0; n < plain_size; n += 64)
		read_copy(plain, n, 0, 0);
	for (size_t n = 0; n < packed_size; n += 64)
		read_copy(packed, n, 0, 0);
}

static void
a_file_with_changed_bytes_is_no_danger(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < FLIPS; i++) {
		read_copy(plain, plain_size, 1 + i % 40, i);
		read_copy(packed, packed_size, 1 + i % 40, i);
	}
}

/* Each 8-byte field of the headers in turn says something absurd. */
static void
a_header_with_absurd_numbers_is_no_danger(void **state)
{
	static const uint64_t absurd[] = { 0, 1, 0xffff, 0x7fffffff, 0xffffffff, INT64_MAX, UINT64_MAX, UINT64_MAX - 63 };
	const ElfW(Ehdr)     *h = (const ElfW(Ehdr) *)(const void *)plain;
	const size_t          from[] = { 16, h->e_phoff, h->e_shoff };
	const size_t          size[] = { 48, h->e_phnum * sizeof(ElfW(Phdr)), h->e_shnum * sizeof(ElfW(Shdr)) };

	(void)state;
	for (size_t part = 0; part < 3; part++)
		for (size_t at = from[part]; at < from[part] + size[part]; at += 8)
			for (size_t i = 0; i < sizeof(absurd) / sizeof(*absurd); i++) {
				unsigned char *copy = malloc(plain_size);

				assert_non_null(copy);
				memcpy(copy, plain, plain_size);
				memcpy(copy + at, &absurd[i], 8);
				read_everything(copy, plain_size);
				free(copy);
			}
}

static void
packed_symbols_that_unpack_without_end_are_left_alone(void **state)
{
	struct arena_budget budget = { 0, LIMIT };
	struct arena        arena;
	struct object      *o = calloc(1, sizeof(*o));
	unsigned char      *zeros = calloc(1, 64 << 20), *copy = malloc(packed_size + 65536);
	ElfW(Ehdr)         *h = (ElfW(Ehdr) *)(void *)copy;
	size_t              n = 0;

	(void)state;
	assert_true(o && zeros && copy);
	memcpy(copy, packed, packed_size);
	assert_int_equal(lzma_easy_buffer_encode(0, LZMA_CHECK_CRC32, NULL, zeros, 64 << 20,
				 copy + packed_size, &n, 65536), LZMA_OK);
	for (unsigned i = 1; i < h->e_shnum; i++) {
		ElfW(Shdr) *s = (ElfW(Shdr) *)(void *)(copy + h->e_shoff) + i;

		if (!strcmp((char *)copy + ((ElfW(Shdr) *)(void *)(copy + h->e_shoff))[h->e_shstrndx].sh_offset + s->sh_name,
			    ".gnu_debugdata")) {
			s->sh_offset = packed_size;
			s->sh_size = n;
		}
	}
	arena_init(&arena, &budget);
	assert_int_equal(image_open_data(&o->image, copy, packed_size + n), 0);
	assert_int_equal(object_read_table(o, &arena), 0);
	assert_true(o->table.count > 0); /* the exported ones are there all the same */
	arena_release(&arena);
	free(copy);
	free(zeros);
	free(o);
}

static unsigned char *
slurp(const char *path, size_t *ret_size)
{
	FILE          *f = fopen(path, "rb");
	unsigned char *p = malloc(1 << 20);

	if (!f || !p)
		return NULL;
	*ret_size = fread(p, 1, 1 << 20, f);
	fclose(f);
	return p;
}

/* The victim with its symbols in an xz section, as distributions do it: a section
 * that nobody needs is renamed and points to the end, and .symtab is hidden. */
static int
make_packed(void)
{
	size_t         n = 0;
	ElfW(Ehdr)    *h;
	ElfW(Shdr)    *s;
	char          *names, *name;

	packed = malloc(plain_size * 2 + 65536);
	if (!packed)
		return -1;
	memcpy(packed, plain, plain_size);
	if (lzma_easy_buffer_encode(6, LZMA_CHECK_CRC32, NULL, plain, plain_size,
		    packed + plain_size, &n, plain_size + 65536) != LZMA_OK)
		return -1;
	packed_size = plain_size + n;
	h = (ElfW(Ehdr) *)(void *)packed;
	s = (ElfW(Shdr) *)(void *)(packed + h->e_shoff);
	names = (char *)packed + s[h->e_shstrndx].sh_offset;
	for (unsigned i = 1; i < h->e_shnum; i++) {
		name = names + s[i].sh_name;
		if (s[i].sh_type == SHT_SYMTAB)
			s[i].sh_type = SHT_PROGBITS;
		if (strcmp(name, ".note.gnu.build-id"))
			continue;
		strcpy(name, ".gnu_debugdata");
		s[i].sh_offset = plain_size;
		s[i].sh_size = n;
		s[i].sh_type = SHT_PROGBITS;
	}
	return 0;
}

static int
setup(void **state)
{
	const char *build = getenv("top_builddir");
	char        path[4096];

	(void)state;
	snprintf(path, sizeof(path), "%s/tests/programs/.libs/libvictim.so", build ? build : ".");
	plain = slurp(path, &plain_size);
	if (!plain || plain_size < 1024) {
		fprintf(stderr, "cannot read %s\n", path);
		return -1;
	}
	return make_packed();
}

static int
teardown(void **state)
{
	(void)state;
	free(plain);
	free(packed);
	return 0;
}

/* So many libraries, and then what it exports. */
static bool
has_exports_behind(size_t needed)
{
	static struct {
		ElfW(Ehdr) eh;
		ElfW(Phdr) ph[2];
		uint32_t   hash[2];
		ElfW(Sym)  symbols[1];
		ElfW(Dyn)  dynamic[1 << 16];
	} o;
	struct image img;
	ElfW(Dyn)   *d = o.dynamic;

	memcpy(&o.eh, plain, sizeof(o.eh));
	o.eh.e_phoff = offsetof(__typeof__(o), ph);
	o.eh.e_phnum = 2;
	o.ph[0] = (ElfW(Phdr)){ .p_type = PT_LOAD, .p_filesz = sizeof(o), .p_memsz = sizeof(o) };
	o.ph[1] = (ElfW(Phdr)){ .p_type = PT_DYNAMIC, .p_vaddr = offsetof(__typeof__(o), dynamic), .p_memsz = sizeof(o.dynamic) };
	o.hash[1] = 1;
	while (needed-- > 0)
		*d++ = (ElfW(Dyn)){ .d_tag = DT_NEEDED };
	*d++ = (ElfW(Dyn)){ .d_tag = DT_HASH, .d_un.d_ptr = (uintptr_t)o.hash };
	*d++ = (ElfW(Dyn)){ .d_tag = DT_SYMTAB, .d_un.d_ptr = (uintptr_t)o.symbols };
	*d++ = (ElfW(Dyn)){ .d_tag = DT_STRTAB, .d_un.d_ptr = (uintptr_t)o.symbols };
	*d = (ElfW(Dyn)){ .d_tag = DT_NULL };
	assert_int_equal(image_open_mapped(&img, (uintptr_t)&o, sizeof(o)), 0);
	return img.symbols.sh_size > 0;
}

static void
a_dynamic_section_is_read_to_a_limit_that_honest_ones_do_not_reach(void **state)
{
	(void)state;
	assert_true(has_exports_behind(5000));
	assert_false(has_exports_behind(60000));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_whole_files_are_read),
		cmocka_unit_test(a_file_cut_at_every_64_bytes_is_no_danger),
		cmocka_unit_test(a_file_with_changed_bytes_is_no_danger),
		cmocka_unit_test(a_header_with_absurd_numbers_is_no_danger),
		cmocka_unit_test(packed_symbols_that_unpack_without_end_are_left_alone),
		cmocka_unit_test(a_dynamic_section_is_read_to_a_limit_that_honest_ones_do_not_reach),
	};

	debugdata_prepare();
	return cmocka_run_group_tests(tests, setup, teardown);
}
