/*
 * first_thread.h - switches the hook of first_thread.c on.  In the program's first thread; core: the agent's, from dlopen().
 */
#ifndef PRELOAD_FIRST_THREAD_H
#define PRELOAD_FIRST_THREAD_H

void first_thread_begin(void *core);

#endif
