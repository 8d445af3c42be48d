/*
 * stress.h - what the parts of the stress program share.
 *
 * A worker is a thread that calls its round() until the time is over; each round
 * checks what it did and ends within a second or so of CPU time, since a worker
 * that shows no life for long is taken for hung.  A round that passes its turn to
 * another thread and back many times shows life in between: where 2,000 threads want
 * the processor, each pass takes seconds.
 */
#ifndef TESTS_STRESS_H
#define TESTS_STRESS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__SANITIZE_ADDRESS__)
#define STRESS_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define STRESS_TSAN 1
#endif
#if defined(STRESS_ASAN) || defined(STRESS_TSAN)
#define STRESS_SANITIZED 1 /* malloc and much of libc is the sanitizer's */
#endif

typedef void stress_round_fn(uint64_t *random);

extern const char *stress_dir; /* where the plugins lie */
extern atomic_bool stress_stop;
/* Held for reading in dlopen() and dlclose(). */
extern pthread_rwlock_t stress_loading;

/* Around jumps out of handlers and cancelled threads, and around setuid(), whose handler in
 * every thread must end: glibc 2.36 waits for ever for a thread that has left it.  One at a time, in
 * turns: a mutex may go to the same thread again and again, and the others would seem to hang. */
void stress_alone_begin(void);
void stress_alone_end(void);

/* Something is not as it must be: said on stdout, and the program ends with 1. */
void stress_wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same from a forked child or a handler: a constant, and only write(2). */
void stress_wrong_raw(const char *text);

#define STRESS_CHECK(condition)                                                             \
	do {                                                                                \
		if (!(condition))                                                           \
			stress_wrong("%s:%d: %s", __FILE__, __LINE__, #condition);          \
	} while (0)

/* From a worker: it gets on. */
void     stress_alive(void);
uint64_t stress_random(uint64_t *state);
/* CPU time of the calling thread; errno must be the same afterwards, or it is wrong. */
void     stress_burn_us(int us);
/* Allocates, fills, checks and frees a few blocks. */
void     stress_blocks_few(uint64_t *random);

/* stress_blocks.c */
stress_round_fn stress_blocks, stress_hand_over;
void            stress_blocks_end(void);
/* stress_children.c */
stress_round_fn stress_fork, stress_fork_raw, stress_vfork, stress_spawn;
/* stress_signals.c */
stress_round_fn stress_jump, stress_alternate, stress_contexts, stress_restart;
void            stress_signals_begin(void);
/* stress_threads.c */
stress_round_fn stress_short_threads, stress_small_stacks, stress_cancel, stress_clone, stress_plugins, stress_locks;
stress_round_fn stress_crowd, stress_identity;
/* stress_throw.cc */
stress_round_fn stress_throw, stress_operators;

#endif
