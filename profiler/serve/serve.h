/*
 * serve.h - one running server: what it listens on, who may ask, its jobs.
 *
 *     a door -> routes.c -> auth.c -> index.c, cmdline.c, rates.c   (answered at once)
 *                        -> job.c -> a "component-job" thread:
 *                           profile_request.c, symbol.c, page.c           (may take long)
 *
 * Only job.c crosses threads.  What it listens on: addresses.c.
 *
 *   source   profiler/serve/serve.c
 */
#ifndef SERVE_SERVE_H
#define SERVE_SERVE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <component/profiler.h>

#include "auth.h"
#include "collector.h"
#include "httpd.h"
#include "listen.h"
#include "profiler.h"
#include "record.h"

#define SERVE_PATH  "/debug/pprof/"
#define SERVE_ENDED "the program ended meanwhile" /* a comment of what was being measured */
#define SERVE_FOR_ALL "profiles can be read by everybody who reaches this server's port; use a loopback address or --profiling-token-file"

struct job;

struct serve {
	/* Copies of what component_profiler_start_options() was given.  Numbers may change at any moment. */
	struct component_profiler_options options;
	bool            is_worker; /* beside a parent, whose addresses are not its own: addresses_of_worker() */
	struct auth     auth;
	struct serve_place {
		struct listen_set set; /* bound, until the server has them */
		const void       *host; /* who listens on those of set, see profiler_host(); NULL: this one is to */
		struct listen_set now; /* what the server has of them, to tell of it; not to be closed */
		uintptr_t         tag; /* of its listeners; another for each address that it has had; odd: debug's */
		const void *_Atomic handed_by; /* who listens and hands over, see profiler_host(); NULL: nobody */
		bool              lost; /* it listens nowhere: a move failed, and so did the way back */
	} tcp, debug;
	uintptr_t       last_tag;
	struct httpd   *_Atomic httpd; /* NULL: not open; a fork may happen at any moment */
	char            url[512];     /* of the first listener, with SERVE_PATH */
	char            address[320]; /* of the first listener: what port_file says */
	struct stat     port_file; /* st_ino 0: there is none to be removed */
	struct record_file record;
	_Atomic bool    heeds_record; /* words that are added to it: the agent's alone, which nobody else changes meanwhile */
	_Atomic bool    off;          /* by such a word */
	_Atomic bool    exposed;      /* an address is no loopback one */
	pthread_mutex_t lock; /* jobs, job_count, closed */
	pthread_cond_t  idle; /* the last job has ended */
	struct job     *jobs;
	int64_t         job_count;
	atomic_uint     coming; /* requests that another server has handed over and this one has not seen yet */
	const char     *closed; /* why no job may begin; NULL: one may */
	_Atomic bool    is_ending; /* the process calls exit() */
	int64_t         rates[COLLECTORS_MAX]; /* that were asked for last, by place in the table; atomic */
};

/* serve.c: one server from options; NULL options.log is fine. */
int  serve_bind(const struct component_profiler_options *o, bool is_worker, struct serve **ret, enum profiler_fault *ret_fault,
	 struct component_error *err);
int  serve_open(struct serve *s, struct component_error *err); /* after it, requests come */
/* Whoever reads the port file, the record or the log is answered from now on. */
int  serve_announce(struct serve *s, struct component_error *err);
void serve_stop(struct serve *s); /* ends windows early, joins every thread; also when not open */
bool serve_has_jobs(struct serve *s); /* any thread */
/* Jobs of all servers, without a lock or a system call; in a child perhaps the parent's. */
extern _Atomic int64_t serve_jobs;
/* The process ends: windows do now, and none begins any more.  Is there an answer that is not yet with the kernel?  On the
 * server's thread. */
bool serve_ends(struct serve *s);
/* Ends windows early, and then its thread, until serve_resume(); connections wait.  False: that took too long (15 s),
 * or the server is lost, and it goes on. */
bool serve_pause(struct serve *s);
int  serve_resume(struct serve *s); /* 0 or a negative errno: there is no thread, and serve_abandon() is all that can be done */
void serve_abandon(struct serve *s);
void serve_free(struct serve *s);
/* Has it go on with other options, of which unwinder, redact and rates stay as they are.  Windows go on, those that are
 * open on an address that is left as well.  On failure nothing has changed.  -EBADF, -ECANCELED: the server is lost. */
int  serve_change(struct serve *s, const struct component_profiler_options *o, enum profiler_fault *ret_fault,
	 struct component_error *err);
void serve_forked(struct serve *s); /* in a child: fork.h */

/* The token file again, into a; a warning is logged. */
int  serve_token_read(const struct serve *s, struct auth *a, const char *file, struct component_error *err);
bool serve_is_for_all(struct serve *s); /* exposed, and no token is asked for; any thread */
unsigned serve_requests(const struct component_profiler_options *o); /* for httpd */

static inline void
serve_log(const struct serve *s, enum component_log_level level, const char *message,
	const struct component_log_field *fields, size_t count)
{
	if (s->options.log)
		s->options.log(s->options.log_arg, level, message, fields, count);
}

#endif
