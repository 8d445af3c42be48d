/*
 * evhttp.h - the profiles on a program's own HTTP server, where that is libevent's.
 *
 *     struct evhttp *http = evhttp_new(base);
 *     component_evhttp_mount(http, "", my_other_pages, NULL, NULL);
 *     component_profiler_start("0");       no port of its own; or any address, then both
 *
 * The work is done by the profiler's threads, as for its own port; only the replies go
 * out through the program's loop, piece by piece, 32 KiB at a time, and the next when the
 * client has taken that.  Every route, status and header is what the port answers.
 *
 * What is the program's then, and limits what profiles can be had:
 * - the loop: while it hangs nothing is answered (the port, or a debug socket, would);
 * - who may ask: its own listener, TLS and checks come first.  The token and the allowed
 *   hosts of component_profiler_start_options() and the rule for a POST of another origin
 *   hold here, too; on a unix socket as well, where one that the port makes itself would ask for no token.
 *   Behind a proxy on the same machine allow the name that it sends as Host;
 * - methods: libevent answers OPTIONS, PATCH and the like with 501 unless
 *   evhttp_set_allowed_methods() says otherwise;
 * - time: evhttp_set_timeout() (50 s) ends a reply that takes longer to be read, but not
 *   the wait for one; evhttp_set_max_body_size() limits what symbol can be asked;
 * - a client that only closes its sending half (nc -N) ends its window early and gets what
 *   there is, as on the port;
 * - component_profiler_stop() on the loop's own thread: what the loop would have to carry
 *   to a client meanwhile is lost after some seconds, if it is more than 190 KiB or so;
 * - a close callback that the program has set on a connection is lost with a request for
 *   a profile on it, since evhttp has one for each and does not tell it;
 * - SIGPIPE: ignored by the program, as every program with evhttp has to.
 *
 * This header alone knows a type of another library's, and no other header includes it:
 * a program that does needs libevent's headers, and links libevent_extra itself.
 */
#ifndef COMPONENT_EVHTTP_H
#define COMPONENT_EVHTTP_H

#include <event2/http.h>

#include <component/error.h>
#include <component/export.h>

COMPONENT_BEGIN

typedef void component_evhttp_fn(struct evhttp_request *request, void *arg);

/*
 * component_evhttp_mount - answer PREFIX/debug/pprof/... on a server of the program's, and
 * PREFIX/debug/fgprof
 *
 * It sets the server's general callback, for libevent knows no other that gets all paths
 * below one: call it instead of evhttp_set_gencb().  What evhttp_set_cb() names goes there
 * first, as ever.  The profiler may be started before or after, stopped, and started
 * again; while it is not running the answer is 503.  Mounted first, it may be started with
 * the address "0" and no debug socket: then this is the only way to it.
 *
 *   http     again for the same: replaces what was said before
 *   prefix   in front of /debug/: "" or "/internal"; NULL is ""; copied
 *   other    gets every other request, as it would from evhttp_set_gencb(); NULL: they are
 *            answered 404
 *   err      nullable
 *
 *   returns  0; or, with nothing changed and a sentence in err,
 *              -EINVAL   the prefix makes no sense
 *              -ENOTSUP  the program has another libevent than this library, or one whose
 *                        functions were taken over
 *              -ENOMEM
 *
 *   threads  that of the server's loop, or any before the loop runs
 *   signals  not from a handler
 *   fork     a child does not answer what its parent was asked; for each such request its copy
 *            of the loop keeps a descriptor that nothing signals, until it frees the server.  Further
 *            requests that it is sent it answers once component_after_fork() was called
 *   source   profiler/serve/evhttp.c
 */
static inline int component_evhttp_mount(struct evhttp *http, const char *prefix, component_evhttp_fn *other,
	void *other_arg, struct component_error *err);

/*
 * component_evhttp_unmount - give the general callback back to other
 *
 * Requests that are being answered still are.  Call it before evhttp_free() or not at all:
 * that one cuts open requests off, which ends their windows, and leaves some bytes behind
 * that tell where it was mounted.
 *
 *   returns  0; -ENOENT: it is not mounted
 *   threads, signals  as above
 *   source   profiler/serve/evhttp.c
 */
COMPONENT_API int component_evhttp_unmount(struct evhttp *http);

/* What component_evhttp_mount() calls, with the program's own idea of libevent, so that a second copy of
 * it in the process (linked statically, say) is found out before it is given to the first. */
COMPONENT_API int component_evhttp_mount_with(void (*send_reply_end)(struct evhttp_request *), struct evhttp *http,
	const char *prefix, component_evhttp_fn *other, void *other_arg, struct component_error *err);

static inline int
component_evhttp_mount(struct evhttp *http, const char *prefix, component_evhttp_fn *other, void *other_arg,
	struct component_error *err)
{
	return component_evhttp_mount_with(evhttp_send_reply_end, http, prefix, other, other_arg, err);
}

COMPONENT_END

#endif
