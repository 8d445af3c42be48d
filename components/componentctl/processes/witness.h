/*
 * witness.h - was a signal sent to this process alone, or to its whole process group?
 *
 * The kernel does not say so.  "kill %1", timeout(1) and a systemd unit as it is by default send to
 * all of a group, and a program that is in it must not be told twice: many take a second SIGTERM for
 * "at once".  So another process waits in the group and has all signals blocked: what was sent to the
 * group is pending there.  A program may make a group of its own: then the witness does so, too, and has what
 * was sent to each process by itself.
 *
 *   fork     witness_begin() forks; the witness ends with this process, however that ends
 *   threads  the one that began it, as long as that lives
 *   source   components/componentctl/processes/witness.c
 */
#ifndef COMPONENTCTL_WITNESS_H
#define COMPONENTCTL_WITNESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct witness {
	pid_t    pid; /* its process; or 0 or a negative errno: then nothing is seen */
	uint64_t had; /* signals, a bit for each, that an earlier one had and that nobody has asked about yet */
};

void witness_begin(struct witness *w);
/* Did the group have this signal, which has just come?  Waits for up to 20 ms before it says no.
 * After a yes there is a new process. */
bool witness_had(struct witness *w, int number);
/* Makes that new one for a signal of which it is known that the group had it. */
void witness_renew(struct witness *w, int number);
/* One in a process group of its own, or in ours; it may still be in ours afterwards. */
void witness_stand(struct witness *w, bool apart);
void witness_end(struct witness *w);
/* Somebody has ended it.  Nothing is seen until witness_stand(). */
void witness_ended(struct witness *w);

/* Stops this process, as the program has stopped: who waits for this one alone, such as a shell with job control, is
 * to see it.  Until a SIGCONT from elsewhere, or until the program goes on; then the SIGCONT is of the process
 * that is returned, and nothing to pass on. */
pid_t witness_stop(pid_t program);

#endif
