/*
 * file.h - opening a file inside somebody else's process.
 */
#ifndef STACKS_FILE_H
#define STACKS_FILE_H

/* For reading, close-on-exec, never descriptor 0 to 2, never waiting for a fifo;
 * a child that is forked meanwhile does not have it.
 * The descriptor or a negative errno. */
int  file_open(const char *path);
/* Keeps errno; a negative number is fine. */
void file_close(int fd);

#endif
