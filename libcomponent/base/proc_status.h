/*
 * proc_status.h - lines of /proc/PID/status and of its like for a thread.
 *
 * The file may be of any length, as one line lists all groups of the user: it is read in pieces,
 * without memory of its own.
 */
#ifndef BASE_PROC_STATUS_H
#define BASE_PROC_STATUS_H

#include <stdbool.h>

#define PROC_STATUS_BYTES 128 /* the lines that are wanted are shorter */

struct proc_status_line {
	const char *key; /* as "\nKey:" */
	char        value[PROC_STATUS_BYTES]; /* what stands behind; "" where it was not found */
	bool        found;
};

/* Of the calling thread, for our_fd_close(); or a negative errno. */
int  proc_status_open(void);
/* Fills in the n lines; fd may be negative: then none is found. */
void proc_status_read(int fd, struct proc_status_line *lines, unsigned n);
/* One line, and closes fd, which may be negative. */
bool proc_status_find(int fd, const char *key, char value[PROC_STATUS_BYTES]);
/* The letter of proc(5) for its state, likewise; 0: not to be had. */
char proc_status_state(int fd);

#endif
