/*
 * findings.h - what doctor has found: each is ok or a warning, and says what to type.
 *
 *     findings_warn(&f, "perf", "sysctl kernel.perf_event_paranoid=2", "it is %d, and ...", paranoid);
 *
 * A failed allocation is remembered instead of reported each time, as by text.h.
 *
 *   memory   to be released
 *   threads  one at a time
 *   source   components/componentctl/doctor/findings.c
 */
#ifndef COMPONENTCTL_FINDINGS_H
#define COMPONENTCTL_FINDINGS_H

#include <stdbool.h>
#include <stddef.h>

#include <component/export.h>

#include "text.h"

struct finding {
	bool        is_warning;
	char       *about; /* "perf" */
	char       *text;
	char       *command; /* that mends it, or that goes on from there; "": none */
};

struct findings {
	struct finding *items;
	size_t          count, room, warnings;
	bool            failed;
};

/* about is copied; command: as root types it, NULL or "" for none. */
void findings_ok(struct findings *f, const char *about, const char *command, const char *format, ...) COMPONENT_PRINTF(4, 5);
void findings_warn(struct findings *f, const char *about, const char *command, const char *format, ...) COMPONENT_PRINTF(4, 5);

/* Lines for people, without what a terminal would obey; or JSON. */
void findings_print(const struct findings *f, struct text *out);
void findings_print_json(const struct findings *f, struct text *out);
void findings_release(struct findings *f);

#endif
