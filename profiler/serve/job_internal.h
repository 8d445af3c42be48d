/*
 * job_internal.h - what job.c and job_stream.c share: a job, its two buffers and who may
 * touch what.
 */
#ifndef SERVE_JOB_INTERNAL_H
#define SERVE_JOB_INTERNAL_H

#include "job.h"
#include "serve.h"

#define JOB_CHUNK_BYTES (32 * 1024)

struct job {
	struct job   *next, *previous; /* serve.lock */
	struct serve *serve; /* NULL: without one */
	struct httpd *httpd; /* there as long as jobs are, even when serve's is not; NULL: the answer is the job's thread's */
	uint64_t      symbol_memory; /* without a server */
	int           result;        /* likewise */
	struct job_spec spec;
	char          peer[ASK_PEER_BYTES];
	pthread_t     thread;

	/* The server's thread, or the job's without one. */
	struct answer *answer;
	bool          started;   /* the header is out */
	bool          throttled; /* waiting for on_drain */

	/* The job's thread. */
	size_t        fill_size;
	uint64_t      bytes;

	pthread_mutex_t lock; /* the rest */
	pthread_cond_t  changed;
	bool          end_early, gone, ready_full, finished, posted, done;
	struct httpd_posted posting; /* posted */
	size_t        ready_size;
	int           fail_status;
	char          fail_text[256];
	size_t        mapped_size;
	char          note[PRODUCT_NOTE_BYTES]; /* of run(), before it writes */
	char          fill[JOB_CHUNK_BYTES], ready[JOB_CHUNK_BYTES];
	char          input[]; /* spec.input */
};

/* job.c: its thread has nothing left to do but return. */
void job_finish(struct job *j);
void job_free(struct job *j);
/* job_stream.c, on the job's thread: hands over what is written, the last of it or not.
 * -ECANCELED: nobody wants it. */
int  job_hand_over(struct job *j, bool last);
/* Any thread: has the server's look at the job, unless it is about to. */
void job_nudge(struct job *j);
/* The server's thread, of a job that was ended with abort: ends the reply if run() is over. */
void job_abandon(struct job *j);

#endif
