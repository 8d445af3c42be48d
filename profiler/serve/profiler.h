/*
 * profiler.h - what the public door has for the other files of serve/: the one server of the process.
 *
 *   threads  any
 *   source   profiler/serve/profiler.c
 */
#ifndef SERVE_PROFILER_H
#define SERVE_PROFILER_H

#include <stdbool.h>
#include <stdint.h>

#include <component/profiler.h>

#include "address.h"
#include "collector.h"
#include "httpd.h"
#include "listen.h"

struct serve;

/* Where a start or a change failed, for whoever gives advice. */
enum profiler_fault { PROFILER_FAULT_ELSEWHERE, PROFILER_FAULT_ADDRESS, PROFILER_FAULT_DEBUG_SOCKET };

/*
 * component_profiler_start_options() and _change(), told more and telling more.
 *
 *   rates      of the collectors, by place in their table; NULL: those of the options
 *   ret_fault  set when it fails for an address
 */
int  profiler_start(const struct component_profiler_options *o, const int64_t *rates, enum profiler_fault *ret_fault,
	 struct component_error *err);
int  profiler_change(const struct component_profiler_options *o, enum profiler_fault *ret_fault, struct component_error *err);

/* A server is to start later, perhaps in a child and in another root: what cannot be had there is taken
 * now, and children inherit it.  The end, without a server, gives it back. */
void profiler_foresee(void);
void profiler_foresee_end(void);

/* Where the server was started by a thread with a table of its own: httpd_show(), and httpd_shown(), which has the copies. */
size_t profiler_show(int fds[OUR_TABLE_SHOWN_MAX]);
void   profiler_shown(const int *copies, size_t count);

/* Ends every thread of ours.  Windows end early, each with a valid profile; connections and what was measured stay.
 * False: nothing runs, or it took too long.  Otherwise the same thread calls profiler_rest_end(), which starts
 * them again with its credentials and namespaces.  If they cannot be started, the server ends. */
bool profiler_rest(void);
void profiler_rest_end(void);

/* Runs fn on the running server's thread, as httpd_post_at(), for one of `open` requests at a door
 * that is not its own.  What *ret tells of stays until that one is answered.  -ENOTCONN: none runs;
 * -EAGAIN: that is more than there are places for.  Any thread, never waits. */
struct profiler_asked {
	struct serve *serve; /* for its thread alone */
	struct httpd *httpd; /* also when it is lost, see httpd_unlisten() */
};
int  profiler_ask(unsigned open, struct httpd_posted *at, httpd_fn *fn, void *arg, struct profiler_asked *ret);

/* Is the server that runs working on a request, such as a window?  Any thread. */
bool profiler_has_jobs(void);

/*
 * Another server of ours, that of health, listens at an address.  A profiling server that is started or
 * moved there binds nothing, and is handed over by the other one what is not its own.
 *
 *   owner      the other one, by which it is known: a process may have several, at other addresses
 *   a, set     copied; to tell of what is listened on
 *
 * profiler_host() gives 0 or -ENOMEM, and profiler_host_end() ends it.
 *
 * profiler_take() is for that one's on_request(): 0, and the request goes on at the server that runs;
 * -ENOTCONN: none is there, or it is elsewhere; -EAGAIN: too many are on their way to it; -ENOMEM.  Then
 * the answer is still owed.
 * profiler_body_max() for its body_max().  Any thread, never waits.
 */
int    profiler_host(const void *owner, const struct address *a, const struct listen_set *set);
void   profiler_host_end(const void *owner);
int    profiler_take(const void *owner, struct answer *a);
size_t profiler_body_max(const void *owner, const struct ask *ask);

/* Profiles, dumps and traces that were answered over HTTP since the process began, and their bytes. */
uint64_t profiler_answered(uint64_t *ret_bytes);

/* Sets the rate of a collector that has one, and has whatever server runs note it; 0 or a negative errno. */
int  profiler_set_rate(const struct collector *c, int64_t rate);

/* Whole stacks, and limits, for a job without a server, also while none runs. */
void profiler_lend(uint64_t *ret_symbol_memory, int64_t *ret_max_seconds);
void profiler_lend_end(void);

#endif
