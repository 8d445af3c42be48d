/*
 * debug_file.c - the file that has the debug information of an object.
 *
 * In this order:
 *
 *     the object itself
 *     ROOT/.build-id/ab/cdef.debug       by its build id
 *     DIR/NAME, DIR/.debug/NAME,         by the name in .gnu_debuglink, DIR being the
 *     ROOT/DIR/NAME                      object's folder
 *
 * and, where that file says in .gnu_debugaltlink that dwz has moved parts of it into
 * another one, this too.  ROOT is /usr/lib/debug.
 *
 * What a stranger would get wrong: a debug file of another build has the same name and
 * looks right, and its lines are lies.  One by build id must have that build id inside;
 * one by name must have it too, or, where there is none, the checksum of all its bytes
 * that the link tells.  A name with a slash in it is nobody's.
 *
 * Not debuginfod: a daemon that is looked into does not go to the network.
 *
 * Tests: tests/symbols/lines.t, tests/symbols/test_dwarf.c
 */
#include <config.h>

#include "debug_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "file.h"
#include "our_fd.h"
#include "process.h"

#define CRC_BYTES ((size_t)64 << 10) /* read at once for a checksum */
#define LINK_MAX  4096               /* bytes of a link section that are looked at */
#define CRC_MOST  ((uint64_t)4 << 30) /* bytes of a file whose checksum is taken, each time anew */

const char *debug_file_root = "/usr/lib/debug";

/* Texts and buffers, too large for the stack of a small thread all together. */
struct search {
	char                 path[DEBUG_FILE_PATH_MAX]; /* of the file tried last */
	char                 link[LINK_MAX + 1];
	char                 dir[DEBUG_FILE_PATH_MAX];
	unsigned char        bytes[CRC_BYTES];
};

static bool
has_debug_info(const struct image *img)
{
	ElfW(Shdr) h;

	return !image_section_find(img, ".debug_info", &h) || !image_section_find(img, ".zdebug_info", &h);
}

static bool
has_table(const struct image *img)
{
	ElfW(Shdr) h;

	return !image_section_find(img, ".symtab", &h) && h.sh_type == SHT_SYMTAB;
}

/* What is looked for in a file apart. */
typedef bool has_fn(const struct image *img);

static int
checksum(const struct image *img, unsigned char *bytes, uint32_t *ret)
{
	uLong sum = crc32(0, NULL, 0);

	if (img->size > CRC_MOST)
		return -EFBIG;
	for (uint64_t at = 0; at < img->size;) {
		size_t n = 0;
		int    r = image_read_some(img, at, bytes, CRC_BYTES, &n);

		if (r < 0)
			return r;
		sum = crc32(sum, bytes, (unsigned)n);
		at += n;
	}
	*ret = (uint32_t)sum;
	return 0;
}

/* Opens search->path.  The build id must be the same; without one, the checksum, if
 * there is one to compare with. */
static int
try_path(struct search *s, const char *build_id, const uint32_t *crc, struct image *ret)
{
	char     id[BUILD_ID_MAX];
	uint32_t sum;
	/* Whoever made the object names it: no device is opened for it. */
	int      fd = process_other() ? file_open(s->path) : file_open_regular(s->path), r;

	if (fd < 0)
		return fd;
	r = image_open_file(ret, fd);
	if (!r && build_id[0])
		r = !image_build_id(ret, id) && !strcmp(id, build_id) ? 0 : -ESTALE;
	else if (!r && crc)
		r = checksum(ret, s->bytes, &sum) < 0 || sum != *crc ? -ESTALE : 0;
	else if (!r)
		r = -ESTALE; /* nothing says that it belongs to us */
	if (!r)
		return fd;
	our_fd_close(fd);
	return r;
}

static int
try_build_id(struct search *s, const char *build_id, has_fn *has, struct image *ret)
{
	int r;

	if (strlen(build_id) < 4)
		return -ENOENT;
	snprintf(s->path, sizeof(s->path), "%s/.build-id/%.2s/%s.debug", debug_file_root, build_id, build_id + 2);
	r = try_path(s, build_id, NULL, ret);
	if (r >= 0 && has && !has(ret)) {
		our_fd_close(r);
		r = -ENOENT;
	}
	return r;
}

/* A section that holds a name and something behind it. */
static int
read_link(struct search *s, const struct image *img, const char *section, size_t *ret_name, size_t *ret_size)
{
	ElfW(Shdr) h;
	int        r = image_section_find(img, section, &h);

	if (r < 0)
		return r;
	if (h.sh_size > LINK_MAX || h.sh_type == SHT_NOBITS)
		return -ENOEXEC;
	r = image_read(img, h.sh_offset, s->link, (size_t)h.sh_size);
	if (r < 0)
		return r;
	s->link[h.sh_size] = '\0';
	*ret_size = (size_t)h.sh_size;
	*ret_name = strlen(s->link);
	return *ret_name && *ret_name < *ret_size ? 0 : -ENOEXEC;
}

static void
set_dir(struct search *s, const char *path)
{
	char *slash;

	snprintf(s->dir, sizeof(s->dir), "%s", path);
	slash = strrchr(s->dir, '/');
	if (slash)
		*slash = '\0';
}

static int
try_debuglink(struct search *s, const struct image *own, const char *path, const char *build_id, has_fn *has,
	      struct image *ret)
{
	size_t   name = 0, size = 0, at;
	uint32_t crc;
	int      r = read_link(s, own, ".gnu_debuglink", &name, &size), n = 0;

	if (r < 0)
		return r;
	at = (name + 4) & ~(size_t)3; /* behind the NUL, aligned */
	if (at + sizeof(crc) > size || strchr(s->link, '/') || path[0] != '/')
		return -ENOENT;
	memcpy(&crc, s->link + at, sizeof(crc));
	set_dir(s, path);
	for (int i = 0; i < 3; i++) {
		if (i == 0)
			n = snprintf(s->path, sizeof(s->path), "%s/%s", s->dir, s->link);
		else if (i == 1)
			n = snprintf(s->path, sizeof(s->path), "%s/.debug/%s", s->dir, s->link);
		else
			n = snprintf(s->path, sizeof(s->path), "%s%s/%s", debug_file_root, s->dir, s->link);
		if (n < 0 || (size_t)n >= sizeof(s->path))
			continue;
		r = try_path(s, build_id, &crc, ret);
		if (r >= 0 && has(ret))
			return r;
		if (r >= 0)
			our_fd_close(r); /* the object itself, by its own name */
	}
	return -ENOENT;
}

/* The file that dwz made; its place is told relative to that of the debug file. */
static int
try_altlink(struct search *s, const struct image *debug, const char *debug_path, struct image *ret)
{
	char   id[BUILD_ID_MAX];
	size_t name = 0, size = 0, bytes;
	int    r = read_link(s, debug, ".gnu_debugaltlink", &name, &size), n;

	if (r < 0)
		return r;
	bytes = size - name - 1;
	if (!bytes || bytes > (BUILD_ID_MAX - 1) / 2)
		return -ENOENT;
	for (size_t i = 0; i < bytes; i++)
		snprintf(id + 2 * i, 3, "%02x", (unsigned char)s->link[name + 1 + i]);
	set_dir(s, debug_path);
	if (s->link[0] == '/')
		n = snprintf(s->path, sizeof(s->path), "%s", s->link);
	else
		n = snprintf(s->path, sizeof(s->path), "%s/%s", s->dir, s->link);
	r = n > 0 && (size_t)n < sizeof(s->path) ? try_path(s, id, NULL, ret) : -ENOENT;
	return r >= 0 ? r : try_build_id(s, id, NULL, ret);
}

/* A descriptor, or a negative errno. */
static int
not_found(int r)
{
	return r == -ESTALE || r == -EACCES || r == -ENOTDIR || r == -ENAMETOOLONG ? -ENOENT : r;
}

static int
find_apart(struct search *s, const struct image *own, const char *path, const char *build_id, has_fn *has,
	   struct image *ret)
{
	int r = try_build_id(s, build_id, has, ret), linked;

	if (r >= 0)
		return r;
	linked = try_debuglink(s, own, path, build_id, has, ret);
	return linked < 0 && not_found(r) != -ENOENT ? r : linked; /* such as no descriptor: it may be had later */
}

int
debug_file_open_table(const struct image *own, const char *path, const char *build_id, struct arena_budget *budget,
		      struct image *ret)
{
	struct arena   scratch;
	struct search *s;
	int            r = -ENOMEM;

	arena_init(&scratch, budget);
	s = arena_alloc(&scratch, sizeof(*s));
	if (s)
		r = not_found(find_apart(s, own, path, build_id, has_table, ret));
	arena_release(&scratch);
	return r;
}

int
debug_file_open(const struct image *own, const char *path, const char *build_id,
	struct arena_budget *budget, struct debug_file *ret)
{
	struct arena   scratch;
	struct search *s;
	int            r = 0;

	arena_init(&scratch, budget);
	*ret = (struct debug_file){ .debug_fd = -1, .alt_fd = -1 };
	s = arena_alloc(&scratch, sizeof(*s));
	if (!s)
		return -ENOMEM;
	if (has_debug_info(own)) {
		ret->debug = *own;
		snprintf(s->path, sizeof(s->path), "%s", path);
	} else {
		r = find_apart(s, own, path, build_id, has_debug_info, &ret->debug);
		if (r >= 0)
			ret->debug_fd = r;
	}
	if (r >= 0) {
		/* set_dir() reads what try_path() will overwrite. */
		ret->alt_fd = try_altlink(s, &ret->debug, s->path, &ret->alt);
		ret->has_alt = ret->alt_fd >= 0;
		r = 0;
	}
	arena_release(&scratch);
	return not_found(r);
}

void
debug_file_close(struct debug_file *f)
{
	our_fd_close(f->debug_fd);
	our_fd_close(f->alt_fd);
	f->debug_fd = f->alt_fd = -1;
}
