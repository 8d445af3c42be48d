/*
 * family.h - a program's processes, a master and its workers, as one target.
 *
 *     family_find("nginx", &family, &err);
 *     family_fetch(&family, "profile", "seconds=10", 10, NULL, &f, &err);
 *
 * They are found by their records, which have one id.  Each is asked for the same at the same time, and the answers are
 * one profile, in which a sample has the number of its process as the label "process".
 *
 *   limits   those of fetch.h for each answer, of merge.h for all
 *   source   components/componentctl/target/family.c
 */
#ifndef COMPONENTCTL_FAMILY_H
#define COMPONENTCTL_FAMILY_H

#include "fetch.h"
#include "records.h"

#define FAMILY_LABEL "process"

/* By an ID or PID.  0: the one meant and those that lead to it, to be released; a negative errno: with a sentence. */
int family_find(const char *id_or_pid, struct records *ret, struct component_error *err);
/* As fetch(), of all.  Who does not answer is told on stderr, and in a comment of the profile; it is an error if nobody
 * does. */
int family_fetch(const struct records *family, const char *kind, const char *query, int64_t seconds, const char *token,
	struct fetched *ret, struct component_error *err);

#endif
