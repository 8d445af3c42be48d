/*
 * job.h - an answer that takes long, on a thread of its own.
 *
 *   threads  job_start() and the door's calls: the server's; what says so: any; the rest is called by run()
 *            on the job's thread
 *   source   profiler/serve/job.c
 */
#ifndef SERVE_JOB_H
#define SERVE_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <component/log.h>

#include "answer.h"
#include "collector.h"
#include "format.h"

struct job;
struct serve;

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

#endif
