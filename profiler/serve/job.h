/*
 * job.h - an answer that takes long, on a thread of its own.
 *
 *   threads  job_start() and the door's calls: the server's; what says so: any; the rest is called by run()
 *            on the job's thread
 *   source   profiler/serve/job.c
 */
#ifndef SERVE_JOB_H
#define SERVE_JOB_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collector.h"
#include "format.h"
#include "httpd.h"

#define JOB_CHUNK_BYTES (32 * 1024)
#define JOB_WINDOW_BYTES 33 /* of a window's name, with its NUL */

struct job;
struct serve;

typedef int job_run_fn(struct job *j); /* 0, or a negative errno after job_fail() or not at all */

struct job_spec {
	job_run_fn             *run;
	const struct collector *collector; /* NULL: symbol, a page */
	const char             *name;      /* it was asked for by; constant */
	const struct format    *format;    /* NULL: text */
	struct collect_params   params;
	struct view             view;
	int64_t                 wait_ns;   /* of a window, a delta */
	int64_t                 checkpoint_ns; /* checkpoints are at least so far apart; 0: there are none */
	bool                    delta;
	char                    window[JOB_WINDOW_BYTES]; /* by which it can be ended early; "": by none */
	const struct answer_header *headers; /* instead of those of format, constant */
	const char             *input;     /* symbol: copied */
	size_t                  input_size;
};

struct job {
	/* For run(), to read. */
	struct job_spec spec;
	struct serve   *serve;          /* NULL: there is none */
	const uint64_t *symbol_memory;  /* bytes at most for names and lines; an option that a reload may change */
	uint64_t        bytes;          /* written so far */
	char            peer[ASK_PEER_BYTES];
	/* X-Component-Threads of the answer: run() may set it, and spec.headers, before it writes the first byte. */
	char            note[PRODUCT_NOTE_BYTES];

	/* The rest is job.c's. */
	struct job     *next, *previous; /* serve.lock */
	struct httpd   *httpd;  /* there as long as jobs are, even when serve's is not; NULL: the answer is the job's thread's */
	int             result; /* without a server */
	pthread_t       thread;

	/* The server's thread, or the job's without one. */
	struct answer  *answer;
	bool            started;   /* the header is out */
	bool            throttled; /* waiting for on_drain */

	/* The job's thread. */
	size_t          fill_size;

	pthread_mutex_t lock; /* the rest */
	pthread_cond_t  changed;
	bool            end_early, gone, ready_full, finished, posted, done;
	const char     *ended_by; /* constant; NULL: by its asker, or not early */
	struct httpd_posted posting; /* posted */
	size_t          ready_size;
	int             fail_status;
	char            fail_text[256];
	size_t          mapped_size;
	char            fill[JOB_CHUNK_BYTES], ready[JOB_CHUNK_BYTES];
	char            input[]; /* spec.input */
};

/* Takes the answer over.  Answers 503 itself when there are too many. */
void job_start(struct serve *s, struct answer *a, const struct job_spec *spec);
/* Without a server: on a thread of ours, which writes the body to an answer of a descriptor and is
 * waited for.  symbol_memory: bytes.  0, or a negative errno and perhaps a sentence in why. */
int  job_run_alone(struct answer *to, const struct job_spec *spec, uint64_t symbol_memory, char *why, size_t size);
/* Every job: end early; or, with abort, without an answer.  why, which is constant, is a comment of the profile.  How many;
 * any thread. */
size_t job_end_all(struct serve *s, bool abort, const char *why);
/* The windows of that name end early and are answered as they are then.  How many; any thread. */
size_t job_end_window(struct serve *s, const char *name);
/* The rest is called by run() on the job's thread. */
int  job_write(void *job, const void *data, size_t size); /* an encode_write_fn; -ECANCELED: client gone */
void job_fail(struct job *j, int status, const char *text); /* instead of writing */
/* Why it was ended early, or NULL. */
const char *job_ended_by(struct job *j);
/* Sends what is written so far.  0 or -ECANCELED: client gone. */
int  job_flush(struct job *j);
/* Would it wait for what was written before, as the client reads too slowly? */
bool job_is_behind(struct job *j);
/* Waits until a time of CLOCK_MONOTONIC, in nanoseconds: 1.  0: it is ended early.  -ECANCELED: client gone. */
int  job_wait(struct job *j, int64_t until_ns);

#endif
