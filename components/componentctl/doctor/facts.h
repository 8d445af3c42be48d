/*
 * facts.h - what the kernel tells of a process that is in the way of looking into it: limits, rules, namespaces.
 *
 *   threads  one at a time
 *   source   components/componentctl/doctor/facts.c, cgroup.c
 */
#ifndef COMPONENTCTL_FACTS_H
#define COMPONENTCTL_FACTS_H

#include <stdbool.h>
#include <sys/types.h>

#include "findings.h"

/* How it is looked into. */
enum facts_of {
	FACTS_SERVED,  /* its server is in it */
	FACTS_UNHEARD, /* so it is, and an address of the network was asked that it does not answer at */
	FACTS_OUTSIDE, /* nothing is in it */
	FACTS_STARTED, /* it is this process, whose limits a program has that it starts */
};

/* Tracers, seccomp, namespaces, limits, memory. */
void facts_look(pid_t pid, enum facts_of of, struct findings *f);
/* May its CPU time be sampled from outside?  After outside_begin(), or of this process. */
void facts_perf(pid_t pid, struct findings *f);
/* May the trace that a process takes of itself have the kernel's context switches? */
void facts_switches(pid_t pid, struct findings *f);
/* May the memory of one's processes be read that one has not started? */
void facts_yama(struct findings *f);

/* cgroup.c: the memory that is left to it by its control groups. */
void facts_cgroup(pid_t pid, struct findings *f);

#endif
