/*
 * life.h - what a component is made of; shared by the files of this folder.
 */
#ifndef LIFECYCLE_LIFE_H
#define LIFECYCLE_LIFE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <unistd.h>

#include <component/component.h>

#include "log.h"
#include "loop.h"
#include "notify.h"

/* Exit statuses. */
#define STATUS_OK     0
#define STATUS_FAILED 1
#define STATUS_USAGE  2

/* Verbosity of the levels' names, which count up from here. */
#define VERBOSITY_ERROR (-2)

/* What was asked for from outside the loop; bits of component.requests. */
enum request {
	REQUEST_STOP     = 1 << 0,
	REQUEST_RELOAD   = 1 << 1,
	REQUEST_USR1     = 1 << 2,
	REQUEST_RELEASED = 1 << 3, /* the last hold has gone */
};

/* Variables of the rows. */
struct life_options {
	int64_t     verbosity;
	int         log_format; /* enum log_format */
	const char *log_file;
	int64_t     graceful_ns;
	int64_t     delay_ns;
	const char *pid_file;
};

struct part_slot {
	struct component            *c;
	const struct component_part *part;
	void                        *state;
	bool                         started;
	bool                         reloaded; /* by the reload that is going on */
};

struct hold {
	struct hold *next;
	unsigned     count;
	char         name[];
};

struct check {
	struct check       *next;
	component_check_fn *fn;
	void               *arg;
	char                name[];
};

struct pid_file {
	char *path; /* absolute; NULL: none was written */
	dev_t dev;
	ino_t ino;
};

struct component {
	struct component_spec   spec;
	struct component_flags *flags;
	struct life_options     options;
	char                   *log_path, *pid_path; /* theirs, absolute; NULL: none */
	struct loop             loop;
	struct log              log;
	struct notify           notify;
	struct pid_file         pid_file;

	_Atomic int      phase; /* enum component_phase; only phase_set() writes it */
	_Atomic unsigned requests; /* enum request */
	_Atomic int      status;
	pid_t            pid; /* of the process that made it */
	bool             spec_started;
	bool             reloading;
	bool             in_step;
	bool             told_ready;
	_Atomic int64_t  grace_end_ns; /* when the loop has timed its end, CLOCK_MONOTONIC; 0: not yet */
	_Atomic bool     lingers; /* the parts that are last to stop have been told to, and may hold it */

	struct part_slot *parts; /* in the order of component_use() */
	size_t            part_count;

	pthread_mutex_t hold_lock;
	struct hold    *holds;
	unsigned        hold_count; /* sum of theirs */
	bool            holds_closed;
	bool            has_opener; /* closed to all but this thread */
	pthread_t       opener;

	struct check *checks; /* in the order they were added */
	struct section *sections; /* likewise */
	struct features *features; /* NULL before flags are made */

	struct component_timer *delay_timer;
	struct component_timer *grace_timer;
	struct component_timer *watchdog_timer;
	struct component_timer *ready_timer;

	component_fn *usr1; /* loop thread only */
	void         *usr1_arg;
	bool          has_signals; /* wants them again in a child that goes on */

	struct component_gauge *reload_well, *reload_time; /* metrics: of the last reload, and of the last that was well */

	struct component *next_live; /* the list of fork.c */
};

static inline bool
life_in_child(const struct component *c)
{
	return c->pid != getpid();
}

/* phase.c */
/* The only writer of the phase; -EINVAL when it is not there or may not go there. */
int  phase_set(struct component *c, enum component_phase from, enum component_phase to);
void phase_request(struct component *c, unsigned requests); /* any thread, signal handlers */

/* report.c */
/* A record for each line of a fault: what is wrong with several options has one for each. */
void report_fault(struct component *c, const char *message, const struct component_error *err);
void report_warnings(struct component *c); /* of the last parse or reload */
void report_apply_options(struct component *c); /* level and format */

/* stop.c */
void stop_begin(struct component *c);
void stop_finish(struct component *c, bool waits); /* waits: for holds of parts that are last to stop */
void stop_hurry(struct component *c); /* from now on a stop has neither delay nor graceful time; one that is under way ends at once */
void stop_at_once(struct component *c); /* for component_free(): waits for nothing */
void stop_parts(struct component *c, bool last_to_stop);
void stop_timers(struct component *c);

/* features.c: adds its row */
int  features_init(struct component *c, struct component_error *err);
void features_free(struct component *c); /* when the flags are gone, which have its help */

/* sections.c */
void sections_free(struct component *c);

/* reload.c */
void reload_figures_init(struct component *c);
void reload_figures_set(struct component *c, bool well);
void reload_and_log(struct component *c);
void reload_log(struct component *c); /* the log's file alone */

/* held_work.c */
/* "a, b (2)": what a stop still waits for; returns whether there is any. */
bool held_work_text(struct component *c, char *buf, size_t size);
bool held_work_any(struct component *c);
/* No more of them, by force or once all are released; returns whether it is so. */
bool held_work_close(struct component *c, bool by_force);
void held_work_open(struct component *c); /* again, to the calling thread, until it is closed */
void held_work_free(struct component *c);

/* duration.c */
void life_duration_text(int64_t ns, char *buf, size_t size);

/* ready.c */
void ready_watch(struct component *c); /* tells READY as soon as all checks pass */
void ready_free(struct component *c);

/* pid_file.c */
int  pid_file_write(struct pid_file *p, const char *path, struct component_error *err);
bool pid_file_is_anothers(const char *path); /* of a process that lives */
void pid_file_remove(struct pid_file *p);

/* fork.c */
void fork_add(struct component *c);
void fork_remove(struct component *c);

/* signals.c */
void signals_remove(struct component *c);
void signals_fork_child(struct component *c);

#endif
