/*
 * reason.h - what a wait is, by the system call or the hook it is in.
 */
#ifndef COLLECT_TRACE_REASON_H
#define COLLECT_TRACE_REASON_H

#include <stdint.h>

/* enum trace_reason of a thread that is blocked in that call; of futex TRACE_SYNC. */
uint8_t trace_reason_of_call(int32_t number);

#endif
