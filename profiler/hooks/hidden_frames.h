/*
 * hidden_frames.h - functions of ours that stand on a stack between the daemon's call
 * and the C library's function: nobody who looks for his own code wants to see them.
 *
 *     pthread_cond_wait   __futex_abstimed_wait                pthread_cond_wait
 *     wait_timed          ours, while a wait is timed     -->  the daemon's
 *     cold_...            ours
 *     the daemon's
 */
#ifndef HOOKS_HIDDEN_FRAMES_H
#define HOOKS_HIDDEN_FRAMES_H

#include <stdint.h>

/* What bears this is left out of stacks, also the code of others that the compiler puts
 * into it. */
#define HOOKS_FRAME __attribute__((section("component_frames")))

/*
 * hidden_frames_drop - leaves such frames out of a stack, callers as return address - 1
 *
 * The innermost one stays whatever it is: what runs there takes its time there.
 *
 *   returns  how many are left
 *   threads  any, also a signal handler or a hook
 */
unsigned hidden_frames_drop(uintptr_t *pcs, unsigned count);

#endif
