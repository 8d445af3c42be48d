/*
 * symbol.h - names for addresses: GET and POST symbol.
 *
 *   threads  a job's
 *   source   profiler/serve/symbol.c
 */
#ifndef SERVE_SYMBOL_H
#define SERVE_SYMBOL_H

#include "job.h"

int symbol_run(struct job *j);
/* Reads one word; 0 for what is no number. */
uint64_t symbol_number(const char *word, size_t size);

#endif
