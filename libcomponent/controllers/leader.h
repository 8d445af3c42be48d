/*
 * leader.h - one process of several leads: who it is, and what begins then.
 *
 * leader.c has the election, leader_options.c its options, leader_flock.c the lock; another kind of lock is another
 * struct leader_lock_kind.
 */
#ifndef CONTROLLERS_LEADER_H
#define CONTROLLERS_LEADER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <component/controller.h>

#define LEADER_IDENTITY_MAX 128 /* bytes, NUL included: host_pid_uuid */
#define LEADER_TEXT_MAX     256 /* the same, of a sentence about a holder */

/* ---- how it stands ---- */

struct leader_status {
	bool     enabled;   /* --leader-elect */
	bool     is_leader;
	char     name[NAME_MAX + 1];            /* of the election: --leader-elect-resource-name, else the component's */
	char     identity[LEADER_IDENTITY_MAX]; /* of this process */
	char     lock[PATH_MAX];                /* "" before it is known */
	char     holder[LEADER_TEXT_MAX];       /* who leads, for people; "" if nobody is known to */
	int64_t  since_ns;    /* CLOCK_REALTIME; since when this process leads; 0: it does not */
	uint64_t transitions; /* how often another one became leader, as the lock says */
	uint64_t slow_paths;  /* how often it could not be verified at once that this process still leads */
};

/* false, and all is zero: c has no component_controllers(), or is a parent's.  Any thread.  In controllers.c. */
bool leader_status(struct component *c, struct leader_status *ret);

/* ---- a kind of lock ---- */

/* What a holder says of itself in the lock. */
struct leader_record {
	char     identity[LEADER_IDENTITY_MAX]; /* "": not known */
	char     text[LEADER_TEXT_MAX];         /* "pid 7 on host since 2026-01-02T03:04:05Z"; "": not known */
	uint64_t transitions;
	bool     has_led; /* false: it has only waited to, or there never was one */
};

struct leader_place {
	const char *path;   /* or the name of what is locked */
	const char *option; /* which names another place, for errors */
	const char *busy;   /* what to do when another process has it, likewise */
	bool        shared; /* by hosts: refuse where the lock would not hold between them */
};

/*
 * One thread at a time calls these for a lock, and any of them may block as long as what
 * is locked does.
 *
 *   open     remembers where it is, copying the strings; -ENOMEM
 *   take     0: it is ours, and *ret is what the last holder left; -EBUSY: another one has it, *ret is
 *            who, and err says so; another errno: it cannot be had, and err says why.  May be
 *            called again after each
 *   announce says in the lock that it is ours; a failure is nobody's: the lock holds all the same
 *   verify   0: it is ours still; -ESTALE: it is lost for good; another errno: not known now
 *   release  gives it back; of one that was not taken too
 *   free     and does not give back what a child of fork() has of its parent
 */
struct leader_lock_kind {
	const char *name; /* in --leader-elect-resource-lock */
	int  (*open)(const struct leader_place *place, void **ret);
	int  (*take)(void *lock, struct leader_record *ret, struct component_error *err);
	void (*announce)(void *lock, const char *identity, uint64_t transitions, bool leads);
	int  (*verify)(void *lock, struct component_error *err);
	bool (*is_same)(const void *lock, const void *other); /* whatever they are called; after a take() of each */
	void (*release)(void *lock);
	void (*free)(void *lock);
};

extern const struct leader_lock_kind leader_flock;

/* leader_flock.c: does a flock hold for processes of all hosts there?  magic: of statfs(2); on_device: it lies
 * on a block device; options: of the mount, as mountinfo ends, NULL: not known. */
bool leader_flock_holds(uint64_t magic, bool on_device, const char *options);

/* ---- options ---- */

#define LEADER_SECTION "Leader election" /* of help, and of /statusz */

struct leader_options {
	bool        elect;
	int64_t     lease_ns, deadline_ns, retry_ns;
	const char *kind, *lock, *name, *space;
};

/* leader_options.c.  o is the rows' variables, with the defaults from now on. */
int  leader_options_add(struct leader_options *o, struct component_flags *f, struct component_error *err);
int  leader_options_check(const struct leader_options *o, struct component_flags *f, struct component_error *err);

/* ---- for controllers.c ---- */

struct leader;

struct leader_events {
	/* Once, on the loop: this process leads, or there is nothing to lead. */
	int  (*lead)(void *arg, struct component_error *err);
	/* On the loop: it does so no more, and another one may lead already. */
	void (*lose)(void *arg);
	void *arg;
};

/* Makes it and adds its rows. */
int  leader_new(struct component *c, struct leader **ret, struct component_error *err);
int  leader_check(const struct leader *l, struct component_error *err);
/* Calls lead() now or later; spec may be NULL, strings in it are borrowed.  0 or a negative errno; or what lead()
 * answered, if it was called already.  -EALREADY. */
int  leader_begin(struct leader *l, const struct component_lead_spec *spec, const struct leader_events *events,
	struct component_error *err);
bool leader_has_begun(const struct leader *l);
bool leader_leads(struct leader *l);
/* Before something begins that only a leader may do: may it?  Waits while that was not verified within the renew deadline.
 * false: this process leads no more.  Any thread. */
bool leader_may(struct leader *l);
void leader_status_of(struct leader *l, struct leader_status *ret);
/* Something that only a leader may do goes on from enter to leave; behind the last one another process may
 * lead.  Who made it is in already.  Any thread. */
void leader_enter(struct leader *l);
void leader_leave(struct leader *l);
void leader_free(struct leader *l);

#endif
