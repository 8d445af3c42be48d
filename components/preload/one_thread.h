/*
 * one_thread.h - the hooks of one_thread.c do something from now on, where threads of this core (dlopen) are in the way.
 */
#ifndef PRELOAD_ONE_THREAD_H
#define PRELOAD_ONE_THREAD_H

#include "rest.h"

void one_thread_begin(void *core);

#endif
