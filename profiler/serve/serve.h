/*
 * serve.h - what the files of serve/ share: one running server, and one request
 * on its way to an answer.
 *
 *     httpd thread:  routes.c -> auth.c -> index.c, cmdline.c        (answered at once)
 *                             -> job.c -> a "component-job" thread:
 *                                collect.c, symbol.c                 (may take long)
 *
 * Only job.c and job_stream.c cross threads.
 */
#ifndef SERVE_SERVE_H
#define SERVE_SERVE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <component/profiler.h>

#include "collector.h"
#include "format.h"
#include "httpd.h"
#include "reply.h"
#include "listen.h"

#define SERVE_PATH            "/debug/pprof/"
#define SERVE_PORT_DEFAULT    6060
#define SERVE_TOKEN_MAX       4096 /* bytes */
#define SERVE_GRACE_MS        5000 /* for open requests when the server stops */

/* What protects the routes. */
struct auth {
	pthread_mutex_t lock; /* token, token_size, and serve.options.allowed_hosts: reload runs on another thread */
	char            token[SERVE_TOKEN_MAX];
	size_t          token_size; /* 0: no token is asked for */
	char            hostname[256];
};

struct job;

struct serve {
	/* Copies of what component_profiler_start_options() was given.  Numbers may change at any moment. */
	struct component_profiler_options options;
	struct auth     auth;
	struct serve_place {
		struct listen_set set; /* bound, until the server has them */
		struct listen_set now; /* what the server has of them, to tell of it; not to be closed */
		uintptr_t         tag; /* of its listeners; another for each address that it has had; odd: debug's */
		bool              lost; /* it listens nowhere: a move failed, and so did the way back */
	} tcp, debug;
	uintptr_t       last_tag;
	struct httpd   *_Atomic httpd; /* NULL: not open; a fork may happen at any moment */
	char            url[512];     /* of the first listener, with SERVE_PATH */
	char            address[320]; /* of the first listener: what port_file says */
	bool            port_file_written;
	pthread_mutex_t lock; /* jobs, job_count, stopping */
	pthread_cond_t  idle; /* the last job has ended */
	struct job     *jobs;
	int64_t         job_count;
	bool            stopping;
	int64_t         rates[COLLECTORS_MAX]; /* that were asked for last, by place in the table; atomic */
};

/* serve.c: one server from options; NULL options.log is fine. */
int  serve_bind(const struct component_profiler_options *o, struct serve **ret, struct component_error *err);
int  serve_open(struct serve *s, struct component_error *err); /* after it, requests come */
void serve_stop(struct serve *s); /* ends windows early, joins every thread; also when not open */
void serve_free(struct serve *s);
/* Has it go on with other options, of which unwinder, redact and rates stay as they are.  Windows go on, those that are
 * open on an address that is left as well.  On failure nothing has changed.  -EBADF, -ECANCELED: the server is lost. */
int  serve_change(struct serve *s, const struct component_profiler_options *o, struct component_error *err);
void serve_forked(struct serve *s); /* in a child: fork.h */

/* What addresses options name: "" is none. */
#define SERVE_ADDRESS_SIZE 512
void serve_tcp_address(const struct component_profiler_options *o, char buf[SERVE_ADDRESS_SIZE]);
void serve_debug_address(const struct component_profiler_options *o, char buf[SERVE_ADDRESS_SIZE]);
/* -EINVAL: neither an address nor a debug socket nor a server of the program's own. */
int  serve_somewhere(const struct component_profiler_options *o, struct component_error *why);
int  serve_address_bind(const char *text, struct listen_set *ret, struct component_error *err);
/* Gives the sockets to the server, under a tag of their own. */
int  serve_place_open(struct serve *s, struct serve_place *p);
void serve_place_close(struct serve_place *p); /* what is bound and not the server's yet */
/* Would one address stand in the way of the other?  Not if either is none, or no address. */
bool serve_addresses_clash(const char *from, const char *to);
/* url and address are what is bound or served. */
void serve_name(struct serve *s);
/* One line to the log, and warnings. */
void serve_announce(const struct serve *s);

/* move.c: has it listen where o says, by new listeners beside the old ones, whose connections go on.  On failure
 * nothing has changed. */
int  serve_move(struct serve *s, const struct component_profiler_options *o, struct component_error *err);

void serve_log(const struct serve *s, enum component_log_level level, const char *message,
	const struct component_log_field *fields, size_t count);

/* What a person reads when an address cannot be had; why starts with it. */
void serve_bind_explain(const char *how_named, const struct component_error *why, struct component_error *err);
unsigned serve_requests(const struct component_profiler_options *o); /* for httpd */

/* options.c: deep copies. */
int  options_copy(struct component_profiler_options *to, const struct component_profiler_options *from,
	 struct component_error *err);
void options_release(struct component_profiler_options *o);

/* port_file.c */
int  port_file_write(const char *path, const char *address, struct component_error *err);
void port_file_remove(const char *path, const char *address); /* only if it still says that */

/* profiler.c: what was mounted on a server of the program's own, see <component/evhttp.h>. */
void profiler_mounted(int more); /* 1 or -1 */
int  profiler_mounts(void);
/* Runs fn on the running server's thread, as httpd_post_at(), for one of `open` requests at a door
 * that is not its own.  What *ret tells of stays until that one is answered.  -ENOTCONN: none runs;
 * -EAGAIN: that is more than there are places for.  Any thread, never waits. */
struct profiler_asked {
	struct serve *serve; /* for its thread alone */
	struct httpd *httpd; /* also when it is lost, see httpd_unlisten() */
};
int  profiler_ask(unsigned open, struct httpd_posted *at, httpd_fn *fn, void *arg, struct profiler_asked *ret);

/* routes.c: httpd's on_request and body_max. */
void   routes_on_request(struct answer *a, void *serve);
size_t routes_body_max(const struct ask *ask, void *serve);

/* params.c: the query as Go's FormValue reads it. */
bool param_get(const char *query, const char *name, char *buf, size_t size); /* the first that can be read */
int  param_int(const char *text, int64_t *ret); /* -EINVAL: 0; -ERANGE: the nearest there is */

/* As Go's ParseFloat, in every locale; -EINVAL: no number, or one that is not finite. */
int  param_float(const char *text, double *ret);

/* auth.c */
int  auth_init(struct auth *a);
void auth_release(struct auth *a);
/* NULL path: no token.  *ret_warning, if not NULL, gets a sentence or "". */
int  auth_token_read(struct auth *a, const char *path, char *warning, size_t warning_size, struct component_error *err);
bool auth_host_ok(const struct auth *a, const char *host, const char *const *allowed);
bool auth_token_ok(struct auth *a, const char *authorization, const char *query);
bool auth_origin_ok(const char *origin, const char *host);

/* profiler.c: whole stacks and limits for a job without a request, served or not. */
void profiler_lend(uint64_t *ret_symbol_memory, int64_t *ret_max_seconds);
void profiler_lend_end(void);

/* index.c, cmdline.c */
void index_reply(struct serve *s, struct answer *a);
void cmdline_reply(struct serve *s, struct answer *a);
/* raw: NUL-terminated words of size bytes; answers malloc'd memory and its size. */
char *cmdline_redact(const char *raw, size_t size, const char *const *redact, size_t *ret_size);

/* job.c: an answer that takes long, on a thread of its own. */

typedef int job_run_fn(struct job *j); /* 0, or a negative errno after job_fail() or not at all */

struct job_spec {
	job_run_fn             *run;
	const struct collector *collector; /* NULL: symbol, a page */
	const char             *name;      /* it was asked for by; constant */
	const struct format    *format;    /* NULL: text */
	struct collect_params   params;
	int64_t                 wait_ns;   /* of a window, a delta */
	bool                    delta;
	const char             *input;     /* symbol: copied */
	size_t                  input_size;
};

/* Takes the answer over.  Answers 503 itself when there are too many. */
void job_start(struct serve *s, struct answer *a, const struct job_spec *spec);
/* Without a server: on a thread of ours, which writes the body to an answer of a descriptor and is
 * waited for.  symbol_memory: bytes.  0, or a negative errno and perhaps a sentence in why. */
int  job_run_alone(struct answer *to, const struct job_spec *spec, uint64_t symbol_memory, char *why, size_t size);
/* Every job: end early; or, with abort, without an answer.  Any thread. */
void job_end_all(struct serve *s, bool abort);
const struct job_spec *job_spec(const struct job *j);
struct serve *job_serve(const struct job *j); /* NULL: there is none */
uint64_t job_symbol_memory(const struct job *j); /* bytes at most for names and lines */
void job_log(const struct job *j, const char *message, const struct component_log_field *fields, size_t count);
const char *job_peer(const struct job *j);
uint64_t job_bytes(const struct job *j);
/* The rest is called by run() on the job's thread. */
int  job_write(void *job, const void *data, size_t size); /* an encode_write_fn; -ECANCELED: client gone */
void job_fail(struct job *j, int status, const char *text); /* instead of writing */
/* Waits until spec.wait_ns have passed or it is ended early.  -ECANCELED: client gone. */
int  job_wait(struct job *j);
/* X-Component-Threads of the answer; before the first byte is written. */
void job_note(struct job *j, const char *text);

/* What a job can be. */
int collect_run(struct job *j); /* collect.c */
int symbol_run(struct job *j);
int page_run(struct job *j);
#define SPEC_WHY_BYTES 256
#define SPEC_FORMAT_BYTES 256
/* spec.c: any collector there is, or NULL. */
const struct collector *spec_collector(const char *name);
/* What is asked of one, by a query or by a call. */
struct spec_asked {
	char    format[SPEC_FORMAT_BYTES]; /* "": not said */
	int64_t debug;
	bool    gc, own;
	bool    timed;   /* seconds are said, be it in a way that cannot be read */
	double  seconds; /* as a number with a fraction, */
	int64_t whole;   /* and as one without; both 0 if there is none */
	bool    bad_seconds, bad_whole; /* they are no such number, or none that can be told */
};
void spec_query_read(const char *query, struct spec_asked *ret);
/* A job for that, of the collector by that name; 0, or -EINVAL and a sentence.  name must stay. */
int  spec_read(const struct collector *c, const char *name, const struct spec_asked *asked, int64_t max_seconds,
	struct job_spec *ret, char why[SPEC_WHY_BYTES]);
/* page.c: is it for options.debug_page, and its job if it is. */
bool page_is_for(const struct serve *s, const struct ask *ask);
bool page_route(struct serve *s, struct answer *a);
/* symbol.c's reading of one word; 0 for what is no number. */
uint64_t symbol_number(const char *word, size_t size);

#endif
