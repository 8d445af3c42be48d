/*
 * object.h - an ELF object that is mapped into this process, and its functions.
 */
#ifndef SYMBOLS_OBJECT_H
#define SYMBOLS_OBJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "arena.h"
#include "image.h"
#include "symtab.h"

enum object_state {
	OBJECT_UNREAD, /* nobody has asked for its names yet */
	OBJECT_READ,   /* image and table are there; the table may be empty */
	OBJECT_LOST,   /* its file cannot be had or is another one by now */
};

struct object {
	uint64_t    device, inode;
	const char *path;         /* as the kernel says it, for opening */
	const char *shown;        /* the same, clean */
	const char *base;         /* the last part of shown */
	uintptr_t   header;       /* where the file's first bytes are mapped; 0: nowhere */
	size_t      header_size;
	uintptr_t   start, limit; /* of its first executable mapping, as in map_files */
	bool        deleted, main, memory; /* memory: [vdso], not a file */
	bool        partly;       /* something of it could not be read */
	uint32_t    cached;       /* 1 + its number in cache.c; 0: not asked yet or none */
	bool        exported;     /* its file cannot be had; image is what is mapped */
	bool        gone;         /* unloaded by now: its file is all there is */
	bool        foreign;      /* of a process that is not here: what has its path is its file */
	char        build_id[BUILD_ID_MAX];

	enum object_state state;
	int               fd, debug_fd; /* open only while the table needs them */
	struct image      image, debug; /* debug: its other symbols, packed or in a file apart */
	struct symtab     table, stubs;
	struct symtab     ranges; /* functions without names, if the table lacks some */
	bool              ranges_due; /* they are to be read when one is asked for */
};

/* From memory: no file is opened. */
void object_read_build_id(struct object *o);
/* Opens the file and reads the table, once.  *open_files counts descriptors that
 * stay open.  0 or a negative errno; -ENOENT: it has no table at all. */
int  object_read(struct object *o, struct arena *a, unsigned *open_files);
/* The part of it that needs no file: the tables of o->image, which is open. */
int  object_read_table(struct object *o, struct arena *a);
/* The ranges, once, for they take longer than the table: .eh_frame is read whole.  0, -ENOENT (there are none) or
 * another negative errno. */
int  object_read_ranges(struct object *o, struct arena *a);
/* Its file once more, with an image on it; the descriptor or a negative errno. */
int  object_open_again(const struct object *o, struct image *ret_image);
void object_release(struct object *o);

#endif
