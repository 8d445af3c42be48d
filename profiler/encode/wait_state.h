/*
 * wait_state.h - what a thread waits for, in a word.
 */
#ifndef ENCODE_WAIT_STATE_H
#define ENCODE_WAIT_STATE_H

#include <stddef.h>
#include <stdint.h>

#include "dump.h"
#include "symbols.h"

/* "epoll_wait", "sync.Mutex.Lock", "running", "no answer"; a constant, or buf. */
const char *wait_state(const struct dump *d, const struct dump_thread *t, struct symbols *s, char *buf, size_t size);

#endif
