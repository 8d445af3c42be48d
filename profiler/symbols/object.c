/*
 * object.c - an ELF object that is mapped into this process, and its functions.
 *
 * Which file?  The one that is mapped, not the one that has its name now: after an
 * upgrade they differ, and names of the new file on addresses of the old one are
 * lies that look like truth.  In this order:
 *
 *     /proc/self/map_files/START-LIMIT   the mapped inode itself; needs privileges
 *     /proc/self/exe                     the same for the main program; needs none
 *     the file held open                 likewise, after a chroot(2): program_file.c
 *     the path                           if its build id is the one in memory, or,
 *                                        without build ids, its device and inode are
 *
 * The build id in memory decides whenever there is one, because on overlay and btrfs
 * file systems the inode in /proc/self/maps is not what fstat() says.
 *
 * Where none can be had, what is mapped has the names that are exported.
 *
 * Which table?  .symtab if it is there; else that of the file which distributions split
 * off for debuggers, if it is installed and has the same build id; else .dynsym (exported
 * names) together with .gnu_debugdata (the others).  Descriptors are closed when the
 * strings fitted into memory, as they nearly always do.
 *
 * Tests: tests/symbols/test_symbols.c, tests/symbols/names.t
 */
#include <config.h>

#include "object.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "debug_file.h"
#include "debugdata.h"
#include "file.h"
#include "our_fd.h"
#include "plt.h"
#include "program_file.h"
#include "ranges.h"


#define OPEN_FILES_MAX 8 /* descriptors of the daemon's that a request may hold for string tables */

void
object_read_build_id(struct object *o)
{
	struct image img;

	if (!o->header || image_open_memory(&img, o->header, o->header_size) < 0 ||
	    image_build_id(&img, o->build_id) < 0)
		o->build_id[0] = '\0';
}

static bool
is_the_mapped_one(const struct object *o, int fd, bool by_name)
{
	char        id[BUILD_ID_MAX];
	struct stat st;

	if (o->build_id[0])
		return image_build_id(&o->image, id) == 0 && !strcmp(id, o->build_id);
	if (!by_name)
		return true;
	return !o->deleted && !o->build_id[0] && !fstat(fd, &st) && st.st_dev == o->device &&
		st.st_ino == o->inode;
}

/* fd or what kept it from being opened; with o->image open on it, if it is the one. */
static int
take_candidate(struct object *o, int fd, bool by_name)
{
	int r;

	if (fd < 0)
		return fd;
	r = image_open_file(&o->image, fd);
	if (!r && !is_the_mapped_one(o, fd, by_name))
		r = -ESTALE;
	if (!r)
		return fd;
	our_fd_close(fd);
	return r;
}

static int
open_candidate(struct object *o, const char *path, bool by_name)
{
	return take_candidate(o, file_open(path), by_name);
}

static int
open_held(struct object *o)
{
	bool certain;
	int  fd = program_file_open(&certain);

	return take_candidate(o, fd, !certain);
}

static int
open_file(struct object *o)
{
	const char *path;
	char        link[FILE_LINK_MAX];
	int         r = -ENOENT;

	if (o->foreign) {
		r = take_candidate(o, file_open_regular(o->path), false);
		return r == -ENOENT ? -ESTALE : r;
	}
	/* Of what has gone, another one may be mapped there now. */
	for (unsigned i = o->gone; r < 0 && (path = file_of_mapping(i, o->start, o->limit, o->main, o->path, link)); i++)
		if (*path == '/')
			r = open_candidate(o, path, path == o->path);
	if (r < 0 && o->main)
		r = open_held(o);
	return r == -ENOENT ? -ESTALE : r;
}

/* The table of a file apart, which must have the same build id, or the link's checksum. */
static int
add_separate(struct object *o, struct arena *a)
{
	int r;

	o->debug_fd = debug_file_open_table(&o->image, o->path, o->build_id, a->budget, &o->debug);
	if (o->debug_fd < 0) {
		r = o->debug_fd;
		o->debug_fd = -1;
		return r;
	}
	r = symtab_add_source(&o->table, a, &o->debug, SHT_SYMTAB);
	if (r < 0) {
		our_fd_close(o->debug_fd);
		o->debug_fd = -1;
	}
	return r;
}

int
object_read_table(struct object *o, struct arena *a)
{
	int r = symtab_add_source(&o->table, a, &o->image, SHT_SYMTAB);

	o->debug_fd = -1;
	/* What has no name is then called by where its function begins. */
	o->ranges_due = r == -ENOENT;
	if (r == -ENOENT && !add_separate(o, a))
		r = 0;
	if (r == -ENOENT) {
		r = symtab_add_source(&o->table, a, &o->image, SHT_DYNSYM);
		if (!r || r == -ENOENT) {
			int more = debugdata_open(&o->image, a, &o->debug);

			if (!more)
				more = symtab_add_source(&o->table, a, &o->debug, SHT_SYMTAB);
			/* Broken or too large: the exported names are still good. */
			r = r && more ? more : 0;
		}
	}
	/* Stubs without names cost little; nothing else depends on them. */
	plt_build(&o->stubs, a, &o->image);
	return r ? r : symtab_build(&o->table, a, &o->image);
}

int
object_read_ranges(struct object *o, struct arena *a)
{
	struct image again;
	int          fd = -1, r;

	if (!o->ranges_due)
		return 0;
	o->ranges_due = false;
	if (!o->memory && !o->exported && o->fd < 0) {
		fd = object_open_again(o, &again);
		if (fd < 0)
			return fd;
	}
	r = ranges_build(&o->ranges, a, fd < 0 ? &o->image : &again);
	our_fd_close(fd);
	return r;
}

static void
close_unless(int *fd, const struct image *image, const struct image *needed)
{
	if (image == needed)
		return;
	our_fd_close(*fd);
	*fd = -1;
}

int
object_read(struct object *o, struct arena *a, unsigned *open_files)
{
	int r;

	o->fd = o->debug_fd = -1;
	o->state = OBJECT_LOST;
	/* Code made at run time may lie under such a name, too; it has no table. */
	if (o->memory)
		r = o->header && !image_open_memory(&o->image, o->header, o->header_size) ? 0 : -ENOENT;
	else
		r = o->fd = open_file(o);
	/* Another one may have been loaded there since. */
	if (r < 0 && !o->memory && !o->gone && o->header && !image_open_mapped(&o->image, o->header, o->header_size) &&
	    is_the_mapped_one(o, -1, false)) {
		o->exported = true;
		r = 0;
	}
	if (r < 0)
		return r;
	o->state = OBJECT_READ;
	if (!o->build_id[0] && image_build_id(&o->image, o->build_id) < 0)
		o->build_id[0] = '\0';
	r = object_read_table(o, a);
	if (r < 0)
		o->table.count = 0;
	if (!r && symtab_needs_image(&o->table, 0)) {
		if (*open_files < OPEN_FILES_MAX) {
			++*open_files;
			close_unless(&o->fd, &o->image, o->table.sources[0].image);
			close_unless(&o->debug_fd, &o->debug, o->table.sources[0].image);
			return 0;
		}
		o->table.count = 0;
		r = -EMFILE;
	}
	object_release(o);
	return r;
}

int
object_open_again(const struct object *o, struct image *ret_image)
{
	struct object again = *o;
	int           fd = o->memory ? -ENOENT : open_file(&again);

	if (fd >= 0)
		*ret_image = again.image;
	return fd;
}

void
object_release(struct object *o)
{
	close_unless(&o->fd, &o->image, NULL);
	close_unless(&o->debug_fd, &o->debug, NULL);
}
