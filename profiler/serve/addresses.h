/*
 * addresses.h - what a server listens on: bound, opened, changed, closed.
 *
 *   threads  who holds the lock of profiler.c, but for addresses_mounted()
 *   source   profiler/serve/addresses.c
 */
#ifndef SERVE_ADDRESSES_H
#define SERVE_ADDRESSES_H

#include <component/profiler.h>

#include "address.h"
#include "listen.h"
#include "profiler.h"

struct serve;

/* What options name is bound, and s has a name.  -EINVAL: they name neither an address nor a debug
 * socket, and nothing is mounted. */
int  addresses_bind(struct serve *s, enum profiler_fault *ret_fault, struct component_error *err);
/* Gives the sockets to the server. */
int  addresses_open(struct serve *s, struct component_error *err);
/* Writes the port file, if there is to be one.  Whoever waits for it asks from then on. */
int  addresses_port_file(struct serve *s, struct component_error *err);
/* One line to the log, with the real address, and warnings; and the record, if there is to be one. */
void addresses_announce(struct serve *s);
/* Has it listen where o says, by new listeners beside the old ones, whose connections go on.  On
 * failure nothing has changed.  1: it has others to announce; 0: they are the same. */
int  addresses_change(struct serve *s, const struct component_profiler_options *o,
	 enum profiler_fault *ret_fault, struct component_error *err);
/* Stops or resumes listening on TCP, and the record says so.  On the server's thread, while no other one changes
 * anything.  0 or a negative errno: it does not listen. */
int  addresses_deafen(struct serve *s, bool deaf);
/* What is bound and not the server's yet; and the port file goes. */
void addresses_close(struct serve *s);
void addresses_forked(struct serve *s); /* in a child: the same */
/* In options as options_copy() makes them: what a worker has beside its parent, which has what they
 * name.  What is a worker's stays as it is.  0 or -ENOMEM. */
int  addresses_of_worker(struct component_profiler_options *o);
/* See profiler_host(); in a child nobody listens. */
int  addresses_host(const void *owner, const struct address *a, const struct listen_set *set);
void addresses_host_end(const void *owner);
void addresses_hosts_forked(void);
/* One more, or less (-1), is mounted on servers of the program's own, see <component/evhttp.h>: with
 * one, a server may listen nowhere.  Any thread. */
void addresses_mounted(int more);

#endif
