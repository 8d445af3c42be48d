/*
 * record.h - what each thread has of labels; between labels/thread.c, which keeps
 * the records, and labels/api.c, which changes them.
 */
#ifndef COLLECT_LABELS_RECORD_H
#define COLLECT_LABELS_RECORD_H

#include <stdint.h>

#include <component/labels.h>

#include "per_thread.h"

#define LABELS_RECORDS 32768 /* threads that have labels at once: 4 MiB, touched as used */
#define LABELS_LATE    8     /* sets of late, a power of two */

struct labels_record {
	_Atomic int32_t  tid; /* 0: free */
	_Atomic uint32_t current; /* of each set one reference is held */
	uint32_t         busy;
	uint32_t         depth; /* of scopes; the first of them have their sets in `saved` */
	uint32_t         saved[COMPONENT_LABEL_SCOPES_MAX];
	uint32_t         late[LABELS_LATE];
};

/* The calling thread's, which is per_thread.labels, made if need be; NULL: there is no room.  Not from handlers. */
struct labels_record *labels_record_make(void);
/* Takes over the reference of the set, which the thread has from now on; the owner's thread. */
void labels_record_store(struct labels_record *r, uint32_t set);
/* Gives back what threads hold that are gone. */
void labels_record_sweep(void);

#endif
