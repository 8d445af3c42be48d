/*
 * one_thread.h - switches the hooks of one_thread.c on.  core: the agent's, from dlopen(), whose threads they end.
 */
#ifndef PRELOAD_ONE_THREAD_H
#define PRELOAD_ONE_THREAD_H

#include "rest.h"

void one_thread_begin(void *core);

#endif
