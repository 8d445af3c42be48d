/*
 * encode.h - from a profile to bytes: pprof's protobuf, Go's text, a top table.
 *
 * All write through a callback, in pieces of at most 64 KiB; none holds the whole
 * output.  Memory is from mmap, bounded (frames.h; a trace's texts: trace/stacks.c), and given back before the return.  It
 * grows with the number of different addresses and names; of stacks, too, where the whole
 * is sorted, summed or a tree; of a trace with its threads, tasks and texts.
 *
 *   returns  0; -ENOMEM; -EINVAL: a profile without the types it needs; or what the
 *            callback answered, which is not called again after an error
 *   threads  any number at once, each with a struct symbols of its own
 *   stack    fits a thread of 256 KiB
 *   source   profiler/encode/pprof.c, text.c, top.c, folded.c
 */
#ifndef ENCODE_ENCODE_H
#define ENCODE_ENCODE_H

#include <stddef.h>

#include "dump.h"
#include "profile.h"
#include "residence.h"
#include "symbols.h"
#include "trace.h"

struct view;

/* 0, or a negative errno which ends the encoding and is returned by it. */
typedef int encode_write_fn(void *arg, const void *data, size_t size);

/* Anything as gzip, as a profile is compressed. */
int encode_gzip(const void *data, size_t size, encode_write_fn *write, void *arg);
/* gzip of profile.proto, one member, zlib level 1.  Lost samples become one under
 * [lost samples]; code outside of all mappings is named by its address. */
int encode_pprof(const struct profile *p, struct symbols *s, encode_write_fn *write, void *arg);
/* ?format=json: tables of names, a tree of stacks and the samples, for programs. */
int encode_profile_json(const struct profile *p, struct symbols *s, encode_write_fn *write, void *arg);
/* debug=1 of heap and allocs, made of the raw values: needs the four heap types. */
int encode_heap_text(const struct profile *p, struct symbols *s, encode_write_fn *write, void *arg);
/* debug=1 of kinds that count events by stack: "NAME profile: total N". */
int encode_counts_text(const struct profile *p, struct symbols *s, encode_write_fn *write, void *arg);
/* debug=1 of block and mutex: needs contentions and delay, in this order. */
int encode_delay_text(const struct profile *p, struct symbols *s, encode_write_fn *write, void *arg);
int encode_contention_text(const struct profile *p, struct symbols *s, encode_write_fn *write, void *arg);
/* goroutine?debug=2: each thread of a dump, in the layout of Go's panics. */
int encode_panic(const struct dump *d, struct symbols *s, encode_write_fn *write, void *arg);
/* goroutine?format=dump: the same for programs, as JSON. */
int encode_dump_json(const struct dump *d, struct symbols *s, encode_write_fn *write, void *arg);
/* ?format=top: flat, flat%, cum, cum%, function, of the default type or the last. */
int encode_top(const struct profile *p, const struct view *v, struct symbols *s, encode_write_fn *write, void *arg);
/* ?format=folded: a line for each stack, root first, its functions separated by semicolons. */
int encode_folded(const struct profile *p, const struct view *v, struct symbols *s, encode_write_fn *write, void *arg);
/* ?format=svg: a picture of a flame graph. */
int encode_svg(const struct profile *p, const struct view *v, struct symbols *s, encode_write_fn *write, void *arg);

/* A table of resident memory; the classes' rows are sorted. */
int encode_residence_text(const struct residence *t, struct symbols *s, encode_write_fn *write, void *arg);
int encode_residence_json(const struct residence *t, struct symbols *s, encode_write_fn *write, void *arg);

/* Forms of a trace, trace/writer.h. */
struct trace_format;
extern const struct trace_format gotrace_v1; /* "go 1.19 trace": every go tool trace from 1.19 on */
extern const struct trace_format gotrace_v2; /* "go 1.22 trace": from 1.22 on; CPU samples by thread */
extern const struct trace_format perfetto_format; /* ui.perfetto.dev and trace_processor */

/* An execution trace, not compressed.  Its records must be sorted.  What contradicts
 * itself is left out and counted, in the trace's own log events. */
int encode_trace(const struct trace *t, const struct trace_format *format, struct symbols *s,
	encode_write_fn *write, void *arg);

#endif
