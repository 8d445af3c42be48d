/*
 * maps.h - the lines of /proc/self/maps, or of the process that is looked at (process.h).
 */
#ifndef MODEL_MAPS_H
#define MODEL_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena.h"

struct maps_line {
	uintptr_t start, limit;
	uint64_t  offset, device, inode; /* device as makedev() makes it */
	char     *path;                  /* inside the text; "" without one */
	bool      executable, deleted;   /* " (deleted)" is cut off the path */
};

struct maps {
	struct arena_budget *budget;
	char                *text;
	size_t               size, room;
	size_t               next; /* where maps_next() goes on */
};

/* Reads the whole file at once; where there is no /proc, lines of code and ELF headers are made
 * of what the loader knows.  0 or a negative errno. */
int  maps_read(struct maps *m, struct arena_budget *budget);
/* Was the last one made so? */
bool maps_without_proc(void);
/*
 * What objects are, kept for the time when there is no /proc: room for count lines with so
 * many bytes of paths, NULs counted, then each.  What was kept before is forgotten.  It is said
 * again while the four bytes at mark are mark_is; with a mark of 0, of whatever is there.
 */
int  maps_keep_begin(size_t count, size_t path_bytes);
/* Of l: start, offset, device, inode, path, deleted. */
void maps_keep(const struct maps_line *l, uintptr_t mark, uint32_t mark_is);
void maps_forked(void);
/* The lines of all code and of the headers before it, from the loader's list (maps_loader.c), into
 * an empty m with a budget.  0; -EAGAIN: the loader is at work; or another negative errno. */
int  maps_of_loader(struct maps *m);
/* For tests: as where there is no /proc. */
void maps_proc_refuse(bool refuse);

/* One mapping, asked for by an address in it. */
struct maps_place {
	uintptr_t start, limit;
	uint64_t  device, inode;
	bool      executable;
};

/*
 * maps_query_open - for questions about single addresses, by PROCMAP_QUERY (Linux 6.11)
 *
 *   returns  a descriptor for maps_query() and our_fd_close(), or -ENOSYS: this kernel cannot, or the calling
 *            thread has a seccomp filter, which may not know the call
 *   threads  one of our own, on which nobody installs filters meanwhile
 */
int  maps_query_open(void);
/* 0; -ENOENT: nothing is mapped there; or another negative errno.  Takes as long however
 * many mappings there are. */
int  maps_query(int fd, uintptr_t address, struct maps_place *ret);
/* For tests: as on a kernel without it. */
void maps_query_refuse(bool refuse);
/* Cuts the line out of the text, so each line can be had once. */
bool maps_next(struct maps *m, struct maps_line *ret);
void maps_release(struct maps *m);

#endif
