/*
 * our_table.h - a table of descriptors of our own, beside the program's.
 *
 *     the program's table            our own
 *     0 1 2 3 4 ...                  0 1 2 /dev/null
 *     what it shall have, too  <──── listener, epoll, sockets, files
 *
 * The kernel counts who uses a descriptor as soon as two threads share the table: 50 ns for each call
 * of a program that had one thread before.  And what is in a table of our own is not in the program's way: neither
 * its numbers nor its limit, and no closefrom() meets it.
 *
 * A thread has the table of the one that made it.  So whatever is opened belongs to a table, and the same number
 * may be another file in the other one: what is noted about a descriptor notes our_table_is_own(), too (our_fd.c).
 *
 *   fork     a child has the table of the thread that forks, the program's: nothing of ours is in it, but copies
 *   source   libcomponent/base/our_table.c
 */
#ifndef BASE_OUR_TABLE_H
#define BASE_OUR_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "our_fd.h"

#define OUR_TABLE_SHOWN_MAX 32 /* descriptors that the program's table gets copies of */

/* Has this thread another table than the program's?  Signal-safe. */
bool our_table_is_own(void);
/* Have those threads that opened what stays open?  In a child: had the parent's?  Signal-safe. */
bool our_table_is_apart(void);
/* For a new thread: it has its maker's. */
void our_table_inherit(bool own);

/*
 * our_table_begin - runs fn on a thread that has a new table of its own; waits for its end
 *
 * fn returns how many of the descriptors in fds the program's table shall have, too.  Copies of them are in ret, in
 * that order, close-on-exec, as from our_fd_open(): the caller gives each to our_fd_close() or our_fd_forget().  There
 * are fewer, or none, where they cannot be had.
 *
 *   errors   negative errno, and fn did not run: the kernel is older than 5.9, or a seccomp filter is in force
 *   threads  any of the program's table
 */
typedef size_t our_table_fn(void *arg, int fds[OUR_TABLE_SHOWN_MAX]);
int our_table_begin(our_table_fn *fn, void *arg, int ret[OUR_TABLE_SHOWN_MAX], size_t *ret_count);
/* In fn: nothing stays open, and no thread stays.  The table ends with this thread, as if it had not been, and may be begun again. */
void our_table_fail(void);

/*
 * The end of it: the last thread that has the table sends all of it through a socket of the program's table, and a thread of
 * the program takes it from the other end, each under the number that it had, and close-on-exec.  From then on
 * there is one table.  What cannot have its number again is closed, and all is where the program's first thread has ended,
 * or the socket is not there any more.  our_table_merge() is false where there was nothing to be taken.
 */
void our_table_send(const struct our_fd_kept *through);
bool our_table_merge(const struct our_fd_kept *from);
/* In a child, which may have one of its own (our_fd.c). */
void our_table_forked(void);

#endif
