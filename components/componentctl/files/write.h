/*
 * write.h - a profile in memory as a pprof file, as read_profile() would read it again.
 *
 *     write_profile(&p, fetch_add, &fetched);
 *
 * Comes before read_drop_frames(), which takes frames away.
 *
 *   limits   READ_MEMORY_MAX for what is made of it
 *   threads  one at a time
 *   source   components/componentctl/files/write.c
 */
#ifndef COMPONENTCTL_WRITE_H
#define COMPONENTCTL_WRITE_H

#include "encode.h"
#include "read.h"

/* 0, -ENOMEM, or what write returned. */
int write_profile(const struct pprof *p, encode_write_fn *write, void *arg);

#endif
