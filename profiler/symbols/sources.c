/*
 * sources.c - looks for the tables that object.c and resolve.c would read, and reads none.
 *
 * Tests: tests/componentctl/doctor.t
 */
#include <config.h>

#include "sources.h"

#include "debug_file.h"
#include "file.h"
#include "image.h"
#include "our_fd.h"
#include "symbols_state.h"

#define FILE_BYTES ((size_t)16 << 20) /* of memory, for a file that nobody runs */

static bool
has(const struct image *img, const char *section)
{
	ElfW(Shdr) h;

	return !image_section_find(img, section, &h) && h.sh_type != SHT_NOBITS;
}

static unsigned
apart(const struct image *img, const char *path, const char *build_id, struct arena_budget *budget)
{
	struct debug_file lines;
	struct image      table;
	unsigned          found = 0;
	int               fd = debug_file_open_table(img, path, build_id, budget, &table);

	if (fd >= 0) {
		found |= SOURCES_APART_SYMTAB;
		our_fd_close(fd);
	}
	if (!debug_file_open(img, path, build_id, budget, &lines)) {
		found |= SOURCES_APART_LINES;
		debug_file_close(&lines);
	}
	return found;
}

static unsigned
of_image(const struct image *img, const char *path, const char *build_id, struct arena_budget *budget)
{
	unsigned found = (has(img, ".symtab") ? SOURCES_SYMTAB : 0) | (has(img, ".gnu_debugdata") ? SOURCES_PACKED : 0) |
		(has(img, ".dynsym") ? SOURCES_EXPORTED : 0) |
		(has(img, ".debug_info") || has(img, ".zdebug_info") ? SOURCES_LINES : 0);

	return found & SOURCES_LINES ? found : found | apart(img, path, build_id, budget);
}

unsigned
sources_of_mapping(struct symbols *s, size_t i)
{
	const struct object *o = s->mappings[i].object;
	struct image         img;
	unsigned             found;
	int                  fd = object_open_again(o, &img);

	if (fd < 0)
		return SOURCES_NO_FILE;
	found = of_image(&img, o->path, o->build_id, &s->budget);
	our_fd_close(fd);
	return found;
}

unsigned
sources_of_file(const char *path, char build_id[BUILD_ID_MAX])
{
	struct arena_budget budget = { .limit = FILE_BYTES };
	struct image        img;
	unsigned            found = SOURCES_NO_FILE;
	int                 fd = file_open(path);

	*build_id = '\0';
	if (fd < 0)
		return found;
	if (!image_open_file(&img, fd)) {
		if (image_build_id(&img, build_id))
			*build_id = '\0';
		found = of_image(&img, path, build_id, &budget);
	}
	our_fd_close(fd);
	return found;
}
