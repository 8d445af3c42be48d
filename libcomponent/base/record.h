/*
 * record.h - the records of this machine's processes that serve profiles: one file each.
 *
 *     a daemon with --profiling-registry, what "componentctl run" has started
 *         └─ record_write() ──▶ /run/component/PID.START ◀── record_each(), record_find() of componentctl
 *
 * The file lies in /run/component, which root makes (mode 1777), or where one may not write there in
 * $XDG_RUNTIME_DIR/component.  It has mode 0600: of other users' processes root alone knows, who looks into
 * /run/user/UID/component as well.  A record
 * counts as long as its process lives, and only if it is of that process's own user or of root.  Of a
 * process that could serve, and does not, it says so: its URL is RECORD_URL_OFF.  Sockets of record_socket()
 * lie there as well; who reads records removes those of dead processes.
 *
 *   threads  any, one at a time for a struct record_file
 *   fork     a child has neither the descriptor nor the record
 *   source   libcomponent/base/record.c
 */
#ifndef BASE_RECORD_H
#define BASE_RECORD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <component/error.h>

#include "our_fd.h"

#define RECORD_ID_MAX  65  /* bytes with NUL; a-z, A-Z, 0-9, '-', '_', '.' */
#define RECORD_URL_MAX 512 /* bytes with NUL */
#define RECORD_URL_OFF "off" /* nothing listens */
#define RECORD_PATH_MAX 600 /* bytes with NUL; a longer folder is none */

struct record {
	char    id[RECORD_ID_MAX];
	char    url[RECORD_URL_MAX]; /* "http://127.0.0.1:6060/debug/pprof/", "unix:/path"; RECORD_URL_OFF */
	int64_t app_port;            /* the program's own; 0: not known */
	int64_t created;             /* seconds since 1970 */
	pid_t   pid;
	pid_t   parent;      /* the process that all are found by which have the id; 0: this one */
	bool    takes_usr1; /* which switches profiling off, and on again */
	bool    takes_words; /* record_add_word() does */
	char    path[RECORD_PATH_MAX]; /* of one that was read: its file */
};

struct record_file {
	struct our_fd_kept fd; /* locked as long as the process lives */
	char               path[RECORD_PATH_MAX]; /* "": nothing is written */
	off_t              size; /* bytes that were written or read */
};

/* -EINVAL with a sentence where it is no id. */
int  record_id_check(const char *id, struct component_error *err);

/* One of a program's name. */
void record_id_make(const char *name, char ret[RECORD_ID_MAX]);

/* What all records of this process say from now on: takes_usr1.  Before it has others than the caller. */
void record_takes_usr1(bool takes);
/* The same: takes_words, unless USR1 is taken. */
void record_takes_words(bool takes);
/* Has somebody added to the file since record_word() was asked last?  One fstat(2), unless the program has closed the file:
 * then it is opened again. */
bool record_has_word(struct record_file *f);
/* What that was: 1 on, -1 off; 0: nothing that is known. */
int  record_word(struct record_file *f);

/* Writes that of this process, again where there is one: r's id, url, app_port and parent count.  What takes words writes
 * the same file again, which it can when it has another user or root by then.  0, or a negative errno and a sentence. */
int  record_write(struct record_file *f, const struct record *r, struct component_error *err);
/* 0; -ENOENT, with a sentence: there is no folder in which a record of this user's processes can be written. */
int  record_folder_check(struct component_error *err);
/* "unix:FOLDER/PID.START.sock", an address for this process in the folder that its record would be in.
 * 0; -ENOENT: there is no folder. */
int  record_socket(char *buf, size_t size);
/* Also where nothing was written. */
void record_remove(struct record_file *f);
/* Until it is taken back, record_remove() leaves the file there for another one of this process, which
 * takes its name: it is to be found all the time. */
void record_keep(bool keep);
/* What has its name is another's by now, who has written this process's record since. */
void record_leave(struct record_file *f);
/* In a child: the file is the parent's. */
void record_forked(struct record_file *f);

/* Calls fn for each that counts, until it returns nonzero, which is returned.  Removes what has been left
 * by processes that are gone.  A folder that is not there, or cannot be read, has none. */
typedef int record_fn(void *arg, const struct record *r);
int  record_each(record_fn *fn, void *arg);

/* Adds to a record that says takes_words that profiling is to be on or off.  Its process sees that within a second or two,
 * and then writes the record anew.  Only its user may, and root.  0 or a negative errno. */
int  record_add_word(const struct record *r, bool on);

/* The same removal, and nothing else. */
void record_sweep(void);

/* By its id or its process's number.  -ENOENT: none, -ENOTUNIQ: several have this id; with a sentence. */
int  record_find(const char *id_or_pid, struct record *ret, struct component_error *err);

#endif
