/*
 * notes.h - what a server says of itself: the answer to /debug/pprof/?format=json.
 *
 *     [{"about": "mutex and block", "level": "warning", "text": "waits are not seen: ..."}, ...]
 *
 *   source   components/componentctl/doctor/notes.c
 */
#ifndef COMPONENTCTL_NOTES_H
#define COMPONENTCTL_NOTES_H

#include <stdbool.h>
#include <stddef.h>

#include "findings.h"
#include "target.h"

/* Each becomes a finding.  False: it is no such answer, as of a server in Go, and nothing was added. */
bool notes_read(const struct target *t, const void *data, size_t size, struct findings *f);

#endif
