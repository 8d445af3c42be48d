/*
 * program_file.h - the program's own file, held open for the time when it has no name.
 */
#ifndef SYMBOLS_PROGRAM_FILE_H
#define SYMBOLS_PROGRAM_FILE_H

#include <stdbool.h>

/* Opens it, if it is not open already, for names after a chroot(2); where that fails there is none.
 * Any thread. */
void program_file_hold(void);
/* The same for a server that is to start later, perhaps in a child of a process that has left its
 * root by then: a child has the descriptor too; one of a server has it only where /proc cannot give it the file again. */
void program_file_hold_early(void);
void program_file_release(void);
/* Is it open, and ours still? */
bool program_file_is_held(void);
/* A descriptor for our_fd_close(), or a negative errno.  *ret_certain: it is what was started, and
 * not what has its name now. */
int  program_file_open(bool *ret_certain);

#endif
