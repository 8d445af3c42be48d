/*
 * mix.h - what the threads of test_tables.c run beside the usual: code
 * without frame pointers, exceptions in flight, TLS and its assembly.
 */
#ifndef TESTS_UNWIND_MIX_H
#define TESTS_UNWIND_MIX_H

#ifdef __cplusplus
extern "C" {
#endif

typedef void mix_fn(int depth, void *next);

/* Calls next, a mix_fn that calls it back, depth times; frames without a frame pointer, some
 * of them of a size that is not known beforehand.  The other one has frame pointers. */
void mix_bare(int depth, void *next);
void mix_framed(int depth, void *next);

/* Throws through frames that clean up, and catches, at several depths. */
void mix_throw(void);

/* "" or why there is no TLS here; before any thread. */
const char *mix_tls_open(void);
/* A handshake and some records, digests, ciphers and curves. */
void mix_tls(void);

#ifdef __cplusplus
}
#endif

#endif
