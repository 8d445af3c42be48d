/*
 * leader_options.c - the rows of the section "Leader election", and which values go together.
 *
 * Names, defaults and rules are client-go's, but for --leader-elect-lock, which is ours.
 *
 * Tests: tests/controllers/test_leader.c.
 */
#include <config.h>

#include "leader.h"

#include <errno.h>
#include <string.h>

#include "life.h"

#define SECTION LEADER_SECTION
#define JITTER  1.2 /* of client-go: a renew deadline must be longer than so many retry periods */

int
leader_options_add(struct leader_options *o, struct component_flags *f, struct component_error *err)
{
	const struct component_flag rows[] = {
		COMPONENT_FLAG_BOOL("leader-elect", &o->elect,
			"Run controllers only while this process leads: of several, one does.",
			.section = SECTION, .env = "LEADER_ELECT"),
		COMPONENT_FLAG_DURATION("leader-elect-lease-duration", &o->lease_ns,
			"How long a new lock waits for who may have led by another one.",
			.section = SECTION, .min = 1, .max = INT64_MAX),
		COMPONENT_FLAG_DURATION("leader-elect-renew-deadline", &o->deadline_ns,
			"Stop leading if it cannot be verified for so long.",
			.section = SECTION, .min = 1, .max = INT64_MAX),
		COMPONENT_FLAG_DURATION("leader-elect-retry-period", &o->retry_ns,
			"Time between two tries to lead, or to verify it.",
			.section = SECTION, .min = 1, .max = INT64_MAX),
		COMPONENT_FLAG_STRING("leader-elect-resource-lock", &o->kind, "Kind of lock: flock.", .section = SECTION),
		COMPONENT_FLAG_STRING("leader-elect-resource-name", &o->name,
			"Name of the lock; empty: the component's.", .section = SECTION, .argument = "NAME"),
		COMPONENT_FLAG_STRING("leader-elect-resource-namespace", &o->space,
			"What stands before that name, and a dot.", .section = SECTION, .argument = "NAME"),
		COMPONENT_FLAG_STRING("leader-elect-lock", &o->lock,
			"The lock's file, the same for all; empty: the component's own place, NAME.lock there.",
			.section = SECTION, .argument = "FILE"),
		COMPONENT_FLAG_END
	};

	*o = (struct leader_options){ .lease_ns = COMPONENT_SECONDS(15), .deadline_ns = COMPONENT_SECONDS(10),
		.retry_ns = COMPONENT_SECONDS(2), .kind = leader_flock.name, .lock = "", .name = "", .space = "" };
	return component_flags_add(f, rows, err);
}

/* Of the times, by client-go's rules. */
static int
times_check(struct component_flags *f, const struct leader_options *o, struct component_error *err)
{
	char other[32];
	int r = 0;

	if (o->lease_ns <= o->deadline_ns) {
		life_duration_text(o->deadline_ns, other, sizeof other);
		r = component_flags_fault(f, "leader-elect-lease-duration", err,
			"it is not above --leader-elect-renew-deadline '%s'; raise it or lower the other", other);
	}
	if ((double)o->deadline_ns <= JITTER * (double)o->retry_ns) {
		life_duration_text(o->retry_ns, other, sizeof other);
		r = component_flags_fault(f, "leader-elect-renew-deadline", err,
			"it is not above 1.2 times --leader-elect-retry-period '%s'; raise it or lower the other", other);
	}
	return r;
}

int
leader_options_check(const struct leader_options *o, struct component_flags *f, struct component_error *err)
{
	static const char *const names[] = { "leader-elect-resource-name", "leader-elect-resource-namespace" };
	const char *const values[] = { o->name, o->space };
	int r;

	if (!o->elect)
		return 0; /* as component-base: what is off is not looked at */
	r = times_check(f, o, err);
	if (strcmp(o->kind, leader_flock.name) != 0)
		r = component_flags_fault(f, "leader-elect-resource-lock", err, "%s; write flock, a file that all processes share "
			"(--leader-elect-lock)", strcmp(o->kind, "leases") == 0 ?
			"leases of Kubernetes cannot be taken yet" : "there is no such kind of lock");
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		if (*values[i] != '\0' && *o->lock != '\0')
			r = component_flags_fault(f, names[i], err, "--leader-elect-lock names the file already; leave one of them out");
		if (strchr(values[i], '/') != NULL || strlen(values[i]) > NAME_MAX / 3)
			r = component_flags_fault(f, names[i], err, "write a name without '/', of at most %d bytes", NAME_MAX / 3);
	}
	return r;
}
