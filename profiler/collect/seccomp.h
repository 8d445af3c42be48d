/*
 * seccomp.h - has the program put threads of its own under a seccomp filter?
 *
 * It may end the process for a system call that it does not know.  So such a thread is not
 * signalled for a dump, and once one is known of, no thread of the program, and no child that
 * it forks, makes a system call for us that glibc would not make there.
 */
#ifndef COLLECT_SECCOMP_H
#define COLLECT_SECCOMP_H

#include <stdbool.h>
#include <sys/types.h>

/* Was one seen, at any look?  Any thread, signal-safe. */
bool seccomp_on(void);
/* Looks at the first thread: 20 to 90 us.  The first look of all says what filters the process
 * was started with. */
void seccomp_look(void);
/* So many were just counted (proc_self_filters()) for a thread: is it under one of the program's? */
bool seccomp_by(int filters);
/* Is that thread under one? */
bool seccomp_thread(pid_t tid);

#endif
