/*
 * witness.h - was a signal sent to this process alone, or to its whole process group?
 *
 * The kernel does not say so.  "kill %1", timeout(1) and a systemd unit as it is by default send to
 * all of a group, and a program that is in it must not be told twice: many take a second SIGTERM for
 * "at once".  So another process waits in the group and has all signals blocked: what was sent to the
 * group is pending there.
 *
 *   fork     witness_begin() forks; the witness ends with this process, however that ends
 *   threads  the one that began it, as long as that lives
 *   source   components/componentctl/processes/witness.c
 */
#ifndef COMPONENTCTL_WITNESS_H
#define COMPONENTCTL_WITNESS_H

#include <stdbool.h>
#include <sys/types.h>

/* Its process; or a negative errno: then nothing is seen. */
pid_t witness_begin(void);
/* Did the group have this signal, which has just come?  Waits for up to 20 ms before it says no.
 * After a yes there is a new witness in the place of *w. */
bool witness_had(pid_t *w, int number);
/* Makes that new one for a signal of which it is known that the group had it. */
void witness_renew(pid_t *w);
void witness_end(pid_t w);

#endif
