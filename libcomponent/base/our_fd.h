/*
 * our_fd.h - descriptors that the library has open for a moment.
 *
 * A child that is forked meanwhile does not get them: between open and close a
 * descriptor is listed, and the child closes what is listed.
 */
#ifndef BASE_OUR_FD_H
#define BASE_OUR_FD_H

#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>

/* open(2), close-on-exec, never 0 to 2; a descriptor for our_fd_close(), or a negative
 * errno: -EMFILE, of what is not opened for reading alone, also when more are open than can be kept out of
 * children.  Not a cancellation point. */
int   our_fd_open(const char *path, int flags, mode_t mode);
int   our_fd_openat(int dir, const char *path, int flags, mode_t mode);
/* The same file once more, of one that was opened for reading and is still that one. */
int   our_fd_dup(int fd);
/* The same for readers of libc's that close it themselves; NULL and errno. */
DIR  *our_fd_opendir(const char *path);
void  our_fd_closedir(DIR *dir);
FILE *our_fd_fopen(const char *path);
void  our_fd_fclose(FILE *f);
/* One that has no place in the list is closed only while each of ours has one.  Keeps errno; not a cancellation point. */
void  our_fd_close(int fd);

/*
 * One that is open for long: a daemon may close every descriptor there is, and its number
 * be a file of the daemon's, or another one of ours, from then on.
 *
 * our_fd_keep         notes fd, and what it is open on; a negative one, too
 * our_fd_keep_listed  the same of an end of our_fd_socketpair(), which has a place in the list
 * our_fd_keep_inotify makes a descriptor of inotify, which does not block, and notes it so; 0 or a negative errno
 * our_fd_is_kept      is it that still?  *ret_st, which may be NULL: what fstat(2) says of it.  A thread that has
 *                     another table of descriptors does not have it
 * our_fd_inherit      a child that is forked has it as well, or not again; for one that is marked
 * our_fd_kept_close   closes it if so; gives up its place in the list, if it has one; k->fd becomes
 *                     -1, before any other thread forks.  False: it was not ours any more
 *
 * What is not from one of the calls here has no place in the list: whoever keeps it closes it in a
 * child, and finds there what was noted before k->fd.
 */
struct our_fd_kept {
	_Atomic int fd; /* -1: none */
	bool        marked, listed;
	bool        own; /* in a table of our own, see our_table.h */
	dev_t       device;
	ino_t       inode;
};

void our_fd_keep(struct our_fd_kept *k, int fd);
void our_fd_keep_listed(struct our_fd_kept *k, int fd);
int  our_fd_keep_inotify(struct our_fd_kept *k);
void our_fd_inherit(const struct our_fd_kept *k, bool inherit);
bool our_fd_is_kept(const struct our_fd_kept *k, struct stat *ret_st);
bool our_fd_kept_close(struct our_fd_kept *k);

/*
 * Thousands of descriptors, each for an instant: between begin and end none of them is
 * listed, and a child that is forked meanwhile finds them by their mark.  Only for
 * reading; our_fd_swift_open() is our_fd_openat(), without keeping others from forking.
 *
 *   begin    what end needs
 *   threads  any; begin and end may be on different ones
 */
int   our_fd_swift_begin(void);
int   our_fd_swift_open(int dir, const char *path);
/* proven: what was read from it just now can only be its file's; else its mark is looked at. */
void  our_fd_swift_close(int fd, bool proven);
void  our_fd_swift_end(int begun);

/* socket(2), and another number for one that is not ours; close-on-exec, never 0 to 2, for our_fd_close().  -EMFILE also when
 * more are open than can be kept out of children. */
int   our_fd_socket(int family, int type);
int   our_fd_copy(int fd);
/* socketpair(2) of streams, close-on-exec and non-blocking; both for our_fd_close().  -EMFILE
 * also when more are open than can be kept out of children. */
int   our_fd_socketpair(int ret_fds[2]);
/* Between our_fd_hold() and our_fd_release(): it is noted elsewhere from now on. */
void  our_fd_forget(int fd);
/* There, too: a place of our own table that has this number is the program's from now on (our_table.h); and what is
 * left in the list of our own is not there any more. */
void  our_fd_moved(int fd);
void  our_fd_lost(void);
/* There, too, the other way round: fd, which has a place until our_fd_forget(); -EMFILE: all are taken. */
int   our_fd_note(int fd);

/* Between these two no thread forks: for a descriptor that is made and noted elsewhere.
 * Nothing but system calls that do not wait may come between. */
void  our_fd_hold(sigset_t *ret_mask);
void  our_fd_release(const sigset_t *mask);

#endif
