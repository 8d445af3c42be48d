/*
 * outside.h - a process that is looked at from outside: where its CPU time goes, and where each thread stands.
 *
 * Nothing is loaded into it, and nobody in it is stopped, signalled or traced.
 *
 *   source   profiler/outside/outside.c, cpu.c, threads.c
 *   threads  one, and one process as long as the program runs (process.h)
 */
#ifndef OUTSIDE_OUTSIDE_H
#define OUTSIDE_OUTSIDE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <component/error.h>

#include "dump.h"
#include "profile.h"

/*
 * outside_begin - reads its mappings and unwind tables
 *
 *   returns  0; -ESRCH: there is no such process; -EPERM: the kernel keeps it from us; -ENOEXEC: it is of
 *            another processor; each with a sentence: what, why, what to do instead
 */
int  outside_begin(pid_t pid, struct component_error *err);

/* Called ten times a second and more; false: enough. */
typedef bool outside_go_on_fn(void *arg, int64_t done_ns);

/*
 * outside_cpu - samples of its CPU time, as the collector of CPU time makes them in a process
 *
 *   ret      for profile_release(); of a process that ends, or begins another program, what was measured until
 *            then, with a comment; *ret_ended: true, and its mappings are no longer those of the samples
 *   returns  0; -ESRCH: it was gone; -EPERM; or another negative errno; with a sentence
 */
int  outside_cpu(int64_t window_ns, outside_go_on_fn *go_on, void *arg, struct profile *ret, bool *ret_ended,
		 struct component_error *err);

/* As outside_cpu() would answer, or 0; of the one that is looked at.  *ret_kernel: with its time in the kernel. */
int  outside_may_sample(pid_t pid, bool *ret_kernel, struct component_error *err);

/* Its threads and their stacks, for dump_release(). */
int  outside_dump(struct dump *ret, struct component_error *err);

#endif
