/*
 * component.h - the life of a daemon: flags, start, ready, reload, stop.
 *
 * A daemon with a loop of its own makes a struct component, watches one descriptor and
 * calls one function.  The other three doors are component_main() in main.h, which comes with
 * this header, component_flags_parse() in flags.h and component_profiler_start() in profiler.h.
 */
#ifndef COMPONENT_COMPONENT_H
#define COMPONENT_COMPONENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <component/duration.h>
#include <component/error.h>
#include <component/export.h>
#include <component/flags.h>
#include <component/log.h>
#include <component/main.h>

COMPONENT_BEGIN

struct component;
struct component_watch;
struct component_timer;
struct component_part;

/* How a ready-made part is named in a table: component_controllers and the like. */
typedef const struct component_part *component_part_fn(void);

/* Signals a daemon may keep for itself in component_main(). */
enum component_signal {
	COMPONENT_SIGNAL_TERM = 1 << 0, /* and INT */
	COMPONENT_SIGNAL_HUP  = 1 << 1,
	COMPONENT_SIGNAL_USR1 = 1 << 2,
	COMPONENT_SIGNAL_USR2 = 1 << 3,
	COMPONENT_SIGNAL_QUIT = 1 << 4,
	COMPONENT_SIGNAL_PIPE = 1 << 5,
};

/* A default of the library, or of a part, that this component wants otherwise; as a
 * person would write it. */
struct component_default {
	const char *flag;  /* "graceful-shutdown-timeout" */
	const char *value; /* "10s" */
};

/* How far a feature is. */
enum component_feature_stage {
	COMPONENT_FEATURE_ALPHA, /* off, if nobody says otherwise; AllAlpha */
	COMPONENT_FEATURE_BETA,  /* AllBeta */
	COMPONENT_FEATURE_FINAL, /* cannot be switched any more */
};

/* A part of a program that --feature-gates switches. */
struct component_feature {
	const char *name;     /* "FastSync": letters and digits */
	bool       *variable; /* as it is without a word, when the component is made; as it was said, once options are
	                       * read.  NULL: on, but of an alpha one off; component_feature_enabled() tells */
	enum component_feature_stage stage;
	const char *help;     /* a few words; or NULL */
};

/*
 * struct component_spec - what a daemon says of itself
 *
 * Write it with COMPONENT_SPEC, which fills size; what is not named is zero.  The
 * strings, rows and tables in it are borrowed for as long as the component lives.
 * All functions run on the component's thread, one at a time, with err to fill
 * when they return a negative errno.
 */
struct component_spec {
	size_t                          size;
	const char                     *name;      /* "backend-controller": a-z, 0-9, '-' */
	const char                     *summary;   /* one sentence for --help */
	const char                     *version;   /* "1.2.3" */
	unsigned                        profiling_port; /* 0: ports.h, else 6060 */
	const struct component_flag    *flags;     /* own rows, or NULL */
	const struct component_default *defaults;  /* ends with a NULL flag, or NULL */
	unsigned                        signals;   /* enum component_signal left to the daemon */
	void                           *data;      /* for component_data() */
	/* After the parts have started.  On failure it must leave nothing behind;
	 * stop() is not called then.  It must not fork and return in the child. */
	int  (*start)(struct component *c, struct component_error *err);
	/* Options were read again.  On failure it keeps what it had, and the options go
	 * back; if that comes from elsewhere it is called again, with those of before. */
	int  (*reload)(struct component *c, struct component_error *err);
	/* Begins to stop, before the parts do, and must not block: what is still
	 * going on is named by component_hold().  Once, only if start() was well. */
	void (*stop)(struct component *c);
	/* Parts that component_main() uses besides its own, NULL at the end; or
	 * NULL: static component_part_fn *const mine[] = { component_controllers, NULL }; */
	component_part_fn *const       *parts;
	/* After parsing, before anything starts (--check-config ends here), and at each
	 * reload before anything changes: the values as a whole.  A fault is a person's:
	 * exit status 2, or 78 if component_flags_fault() says that the file is to blame. */
	int  (*check)(struct component *c, struct component_error *err);
	const struct component_feature *features; /* of --feature-gates, ends with a NULL name; or NULL */
};

#define COMPONENT_SPEC(...) COMPONENT_SIZED_(component_spec, __VA_ARGS__)

/*
 * struct component_part - something that plugs into the life of a component
 *
 * Every function may be NULL, runs on the component's thread, and gets the state
 * that init() gave.  start() and stop() must not block for long; stop() is called
 * once for each start() that was well, in reverse order.
 */
struct component_part {
	size_t      size; /* sizeof(struct component_part) */
	const char *name; /* "profiling"; no two parts share one */
	/* From component_use(): makes the state and adds rows.  On failure it leaves
	 * nothing; free() is not called then. */
	int  (*init)(struct component *c, void **ret_state, struct component_error *err);
	/* Opens and binds what must be there before the daemon is ready. */
	int  (*start)(struct component *c, void *state, struct component_error *err);
	/* Options were read again.  On failure it keeps what it had, and the options go
	 * back; if that comes from elsewhere it is called again, with those of before. */
	int  (*reload)(struct component *c, void *state, struct component_error *err);
	/* Begins to stop; work that goes on is named by component_hold(). */
	void (*stop)(struct component *c, void *state);
	void (*free)(void *state); /* from component_free(); the options are gone by then */
	int  (*check)(struct component *c, void *state, struct component_error *err); /* as in component_spec */
	bool last_to_stop; /* health and profiling answer until everything else has ended */
};

/*
 * component_new - make a component from what a daemon says of itself
 *
 * Adds the spec's rows and the sections Lifecycle and Logging.  Nothing is opened
 * but the loop's own descriptors; no thread, no signal handler.
 *
 *   spec     copied; the strings, rows and tables in it are borrowed for as long
 *            as the component lives
 *
 *   returns  0, or a negative errno with err filled:
 *              -EINVAL  a fault in the spec or its rows, a fault of the program
 *              -ENOMEM, -EMFILE, -ENFILE  no room for it
 *
 *   owns     the caller frees *ret with component_free()
 *   threads  the thread that calls is the component's thread: only it may call
 *            what is not said to be for any thread
 *   signals  not from a handler; nor is any other call here unless it says so
 *   fork     a child of fork() has none of the descriptors; there only
 *            component_free(), component_log() and the getters are of use, and
 *            component_dispatch() and component_post() answer -EPERM.  But when
 *            nothing was started yet (daemon(3) after component_parse()), its
 *            component_start() makes them anew, and the child goes on
 *   source   libcomponent/lifecycle/component.c
 */
COMPONENT_API int component_new(const struct component_spec *spec, struct component **ret, struct component_error *err);

/*
 * component_use - plug in a part: its init() runs now and adds its rows
 *
 * Parts start in the order they were used and stop in reverse.  Before
 * component_parse() only.
 *
 *   part     borrowed for as long as the component lives
 *   returns  0; -EEXIST: a part of that name is there; -EBUSY: too late;
 *            -EINVAL, -ENOMEM; or what init() said, with err filled
 *   source   libcomponent/lifecycle/component.c
 */
COMPONENT_API int component_use(struct component *c, const struct component_part *part, struct component_error *err);

/*
 * component_parse - options into variables, then the check() of spec and parts
 *
 * Relative --log-file and --pid-file are below the directory of this moment.
 *
 *   returns  0: go on
 *            1: --help and the like: print component_flags_output(), leave with 0
 *            a negative errno: print err->text to stderr and leave with the
 *            status that component_finished() gives: 2, or 78 for a config file
 *   source   libcomponent/lifecycle/component.c
 */
COMPONENT_API int component_parse(struct component *c, int argc, char **argv, struct component_error *err);

/*
 * component_start - start the parts, then the daemon itself
 *
 * Opens the log file, starts the parts in order, writes the pid file and calls
 * spec.start; the pid file of a process that still runs is replaced after that.
 * Whatever fails, all that had started is stopped again, in reverse.
 * A stop that is asked for meanwhile, by a signal too, ends it early: it returns
 * 0 and the next component_dispatch() goes on with the stop.
 *
 *   returns  0, or a negative errno with err filled; then component_finished()
 *            gives status 1
 *   fork     daemon(3) belongs before it; start() that forks and returns in the
 *            child is an error there
 *   source   libcomponent/lifecycle/lifecycle.c, libcomponent/lifecycle/component.c
 */
COMPONENT_API int component_start(struct component *c, struct component_error *err);

/*
 * component_fd - the one descriptor to watch for reading (poll, epoll, ...)
 *
 * Ready means: call component_dispatch().  Level-triggered; belongs to the
 * component, so it is not to be read, changed or closed.
 */
COMPONENT_API int component_fd(const struct component *c);

/*
 * component_dispatch - do what is ready, never block
 *
 * Runs due timers, posted functions and watches, and moves the component on: a
 * stop or reload that was asked for happens here.  May be called at any time.
 *
 *     while (!component_finished(c, &status)) {
 *             poll(&(struct pollfd) { component_fd(c), POLLIN, 0 }, 1, -1);
 *             component_dispatch(c);
 *     }
 *
 *   returns  0; -EPERM: in a child of fork(); -EBUSY: called from a callback of
 *            its own; another negative errno from epoll_wait(2)
 *   threads  the component's
 *   source   libcomponent/lifecycle/lifecycle.c, libcomponent/lifecycle/loop.c
 */
COMPONENT_API int component_dispatch(struct component *c);

/*
 * component_reload - read environment and config file again, tell everybody
 *
 * Reopens the log file, or logs why the old one goes on;
 * applies what may change while running, after all checks;
 * calls reload() of the parts in order, of the spec, and of the parts that are
 * last_to_stop.  On a failure nothing has changed in the end: the options are put
 * back, and who had been reloaded is so again with them.  Each fault is a line of
 * err.  Tells the service manager.  A HUP does the same and logs a failure.
 *
 *   returns  0; -EBUSY: starting, stopping or reloading; or a negative errno
 *            with err filled, and the daemon goes on either way
 *   source   libcomponent/lifecycle/reload.c
 */
COMPONENT_API int component_reload(struct component *c, struct component_error *err);

/*
 * component_stop - ask for a graceful stop
 *
 * Only asks: the dispatch that follows is not ready any more from then on, waits
 * --shutdown-delay, calls spec.stop, stops the parts in reverse, waits until all
 * holds are released, at most --graceful-shutdown-timeout, then stops the parts
 * that are last_to_stop, for whose holds it waits 8 s at most.  All times add up: a
 * supervisor must allow for the sum.
 * Asked again, nothing more happens.
 *
 *   threads  any; also from a signal handler
 *   fork     in a child: nothing happens
 *   source   libcomponent/lifecycle/lifecycle.c
 */
COMPONENT_API void component_stop(struct component *c);

/*
 * component_fail - log an error and stop gracefully, with exit status 1
 *
 *   err      what happened; NULL: nothing is logged
 *   threads  any
 *   source   libcomponent/lifecycle/lifecycle.c
 */
COMPONENT_API void component_fail(struct component *c, const struct component_error *err);

/*
 * component_finished - has it ended, and with what exit status
 *
 *   c           may be NULL: false
 *   ret_status  may be NULL; untouched unless it returns true.  0: stopped
 *               cleanly, or help was given; 1: failed, or not finished in time;
 *               2 and 78: component_parse() failed
 *   threads     any
 *   source      libcomponent/lifecycle/phase.c
 */
COMPONENT_API bool component_finished(const struct component *c, int *ret_status);

/*
 * component_free - free a component and all that belongs to it
 *
 * One that still runs is stopped at once, waiting for nothing.  Signal handlers
 * that component_signals_install() set are taken back.  While something is held,
 * by a controller's worker that did not end in time, the memory is not given back:
 * what works there goes on using the component, until the process ends or it is
 * released and component_free() called again.
 *
 *   c        may be NULL
 *   threads  the component's; no other may use it any more
 *   fork     allowed in a child: frees memory and touches nothing of the parent's
 *   source   libcomponent/lifecycle/component.c, libcomponent/lifecycle/phase.c
 */
COMPONENT_API void component_free(struct component *c);

/* How far a component is. */
enum component_phase {
	COMPONENT_PHASE_NEW,      /* made, options not read */
	COMPONENT_PHASE_PARSED,   /* options read, nothing started */
	COMPONENT_PHASE_STARTING, /* parts and daemon are starting */
	COMPONENT_PHASE_RUNNING,  /* all started */
	COMPONENT_PHASE_DELAYING, /* not ready any more, still doing everything */
	COMPONENT_PHASE_DRAINING, /* told to stop, waiting for holds */
	COMPONENT_PHASE_FINISHED, /* over */
};
/*
 * component_phase      - how far a component is
 * component_phase_text - that as a word for people: "running"
 *
 *   returns  the phase, which may be old by the time it is told; a constant
 *   threads  any
 */
COMPONENT_API enum component_phase component_phase(const struct component *c);
COMPONENT_API const char *component_phase_text(enum component_phase phase);

/*
 * component_data  - spec.data
 * component_name  - spec.name
 * component_spec  - the spec as it was copied
 * component_flags - its options, as component_flags_new() makes them
 *
 *   owns     the component, what is returned; but data is the caller's
 *   threads  any
 */
COMPONENT_API void *component_data(const struct component *c);
COMPONENT_API const char *component_name(const struct component *c);
COMPONENT_API const struct component_spec *component_spec(const struct component *c);
COMPONENT_API struct component_flags *component_flags(struct component *c);

/*
 * component_watch_add - call fn when a descriptor is ready
 *
 *   fd       borrowed; remove the watch before closing it, or a copy of the
 *            descriptor elsewhere (a forked child's) keeps it reporting
 *   events   EPOLLIN, EPOLLOUT and others of <sys/epoll.h>
 *   ret      may be NULL when it is never removed by hand
 *   returns  0; -EEXIST: fd is watched already; -EPERM: such a descriptor (a
 *            regular file) cannot be watched; -EINVAL, -EBADF, -ENOMEM
 *   owns     the component; component_watch_remove() or component_free() ends it
 *   threads  the component's; remove may be called in any callback, its own too,
 *            and NULL is fine
 *   source   libcomponent/lifecycle/loop.c
 */
typedef void component_fd_fn(struct component *c, int fd, uint32_t events, void *arg);
typedef void component_fn(struct component *c, void *arg);
COMPONENT_API int  component_watch_add(struct component *c, int fd, uint32_t events, component_fd_fn *fn, void *arg, struct component_watch **ret);
COMPONENT_API void component_watch_remove(struct component_watch *w);

/*
 * component_timer_add - call fn after a time, once or again and again
 *
 * By CLOCK_MONOTONIC, which stands still while the machine sleeps.  Periods that
 * were missed because the loop was busy are one call, and the rhythm is kept.
 *
 *   first_ns  nanoseconds until the first call, as COMPONENT_SECONDS(1); 0: in the next
 *             dispatch
 *   every_ns  nanoseconds between calls; 0: once
 *   ret       may be NULL.  With a handle the timer must be removed even after
 *             its only call; without one it frees itself
 *   returns   0; -EINVAL: a negative time; -ENOMEM
 *   owns      the component; component_timer_remove() or component_free() ends it
 *   threads   as with watches
 *   source    libcomponent/lifecycle/timer.c
 */
COMPONENT_API int  component_timer_add(struct component *c, int64_t first_ns, int64_t every_ns, component_fn *fn, void *arg, struct component_timer **ret);
COMPONENT_API void component_timer_remove(struct component_timer *t);

/*
 * component_post - have fn called on the component's thread, in order of posting
 *
 *   returns  0; -ENOMEM, -EINVAL; -EPERM in a child of fork()
 *   owns     nothing; what was posted and not called when the component is freed
 *            is dropped, so arg must not need fn to be freed
 *   threads  any
 *   source   libcomponent/lifecycle/loop.c
 */
COMPONENT_API int component_post(struct component *c, component_fn *fn, void *arg);

/*
 * component_hold - work is going on that a graceful stop has to wait for
 * component_release - it is done
 *
 * One release for each hold.  The name tells people what was not finished in
 * time: `not finished within 25s: <names>`.
 *
 *   name     copied
 *   returns  0; -EINVAL, -ENOMEM; -ESHUTDOWN: too late, everything has ended
 *   threads  any
 *   source   libcomponent/lifecycle/held_work.c
 */
COMPONENT_API int  component_hold(struct component *c, const char *name);
COMPONENT_API void component_release(struct component *c, const char *name);

/*
 * component_check_add - one more condition for being ready
 *
 * The service manager is told READY when all checks passed for the first time;
 * /readyz runs them each time it is asked.
 *
 *   name     copied; a word, shown as [+]name ok
 *   fn       returns 0, or a negative errno with err filled; must not block
 *   returns  0; -EEXIST: a check of that name is there, as "running" and "loop" always are; -EINVAL, -ENOMEM
 *   owns     the component; checks stay as long as it lives
 *   threads  the component's
 *   source   libcomponent/lifecycle/ready.c
 */
typedef int component_check_fn(struct component *c, void *arg, struct component_error *err);
COMPONENT_API int component_check_add(struct component *c, const char *name, component_check_fn *fn, void *arg);

/*
 * component_checks_run - run all checks now and hear of each
 *
 * The first is called "running" and is the component's own: it fails before
 * everything has started and from the moment a stop was asked for.
 *
 *   visit    may be NULL; status is 0 or a negative errno; text is borrowed for
 *            the call, "" when there is nothing to say
 *   returns  how many failed
 *   threads  the component's; others use component_post()
 *   source   libcomponent/lifecycle/ready.c
 */
typedef void component_check_visit_fn(void *arg, const char *name, int status, const char *text);
COMPONENT_API size_t component_checks_run(struct component *c, component_check_visit_fn *visit, void *arg);

/*
 * component_feature_enabled - is a feature of the spec on?
 *
 *   returns  as --feature-gates says, or as it is without a word; false: there is no such feature
 *   threads  any, once options are read
 *   source   libcomponent/lifecycle/features.c
 */
COMPONENT_API bool component_feature_enabled(const struct component *c, const char *name);

/*
 * component_status_add - one more section of /statusz, the page that says how a component is
 *
 *     static void
 *     queue_status(struct component *c, struct component_status *to, void *arg)
 *     {
 *             component_status_row(to, "jobs", "%zu", jobs);
 *     }
 *     component_status_add(c, "Jobs", queue_status, NULL);
 *
 * component_status_row - a row of it; the value as printf(3) makes it
 * component_status_run - all sections now, row by row
 *
 * The first section is the component's own, "Health": the checks.
 *
 *   title    copied; no two sections share one
 *   fn       gives the rows when somebody asks; on the component's thread, and must not block
 *   returns  0; -EEXIST: there is a section of that title, as "Health" always is; -EINVAL, -ENOMEM
 *   owns     the component; sections stay as long as it lives
 *   threads  the component's
 *   source   libcomponent/lifecycle/sections.c
 */
struct component_status;
typedef void component_status_fn(struct component *c, struct component_status *to, void *arg);
typedef void component_status_visit_fn(void *arg, const char *section, const char *name, const char *value);
COMPONENT_API int  component_status_add(struct component *c, const char *title, component_status_fn *fn, void *arg);
COMPONENT_API void component_status_row(struct component_status *to, const char *name, const char *format, ...)
	COMPONENT_PRINTF(3, 4);
COMPONENT_API void component_status_run(struct component *c, component_status_visit_fn *visit, void *arg);

/*
 * component_log - one log line: a message and fields
 *
 *     component_log(c, COMPONENT_LOG_INFO, "synced", COMPONENT_KV("app", name), COMPONENT_KV("files", n));
 *     component_log(c, COMPONENT_LOG_INFO, "synced", "app", name, NULL);
 *
 * Fields are COMPONENT_KV(), or a key and a value as two arguments, each of any type that
 * COMPONENT_KV() takes; a NULL in the place of a key is the end, and may be there or not.  A key without a value is
 * shown with (missing), a value without a key under "no_key".
 *
 * Written as --logging-format says, by one write(), to stderr or --log-file.
 * DEBUG needs -v 1.  Escaped, so that a value cannot make a second line; a line
 * of more than 4096 bytes is cut and ends in "...".  A failure to write is never
 * the caller's: lines lost are counted and the count is logged later.
 *
 * The function behind the name, which is called before C11 and by (component_log)(...),
 * cannot tell types: it takes texts alone, and the first NULL is the end.
 *
 *   threads  any; errno is kept; nothing is allocated
 *   fork     in a child too; a --log-file is opened there anew
 *   source   libcomponent/lifecycle/log_values.c, libcomponent/lifecycle/component.c
 */
COMPONENT_API void component_log(struct component *c, enum component_log_level level, const char *message, ...)
	__attribute__((sentinel));
/* The same with all arguments told and counted; the first value is the message. */
COMPONENT_API void component_log_values(struct component *c, enum component_log_level level,
	const struct component_log_value *values, size_t count);
/* The same as a component_log_fn, to be handed on to what must not hang where nobody reads the log: it waits 100 ms at
 * most for room, then the line is lost.  c is a struct component *. */
COMPONENT_API void component_log_write(void *c, enum component_log_level level, const char *message,
	const struct component_log_field *fields, size_t field_count);

/*
 * component_signals_install - let signals drive the component
 *
 * component_main() calls it; a daemon with a loop of its own may.  INT and TERM
 * stop gracefully and, the second time, exit with status 1 at once; HUP reloads;
 * USR1 calls what component_on_signal() set; PIPE does nothing.  The handlers
 * only count and write to an eventfd that a thread "component-sig" reads, so a
 * second TERM, or the end of the graceful time, ends a daemon whose loop hangs.
 *
 * Left alone: what spec.signals names; a signal that has a handler already (one
 * log line says so); HUP and INT when they are ignored (nohup, background jobs);
 * QUIT and USR2, which only component_main() takes.
 *
 *   returns  0; -EBUSY: another component of the process has them; or a negative
 *            errno with err filled when the thread cannot be started
 *   threads  the component's; one component of a process at a time
 *   fork     in a child the handlers are set back to their defaults; nothing is
 *            blocked or ignored in programs that it runs
 *   source   libcomponent/lifecycle/signals.c
 */
COMPONENT_API int component_signals_install(struct component *c, struct component_error *err);

/*
 * component_on_signal - what a signal does that has no meaning of its own
 *
 *   signal   COMPONENT_SIGNAL_USR1
 *   fn       called on the component's thread, not in a handler; NULL: nothing
 *   returns  0; -EINVAL: a signal that cannot be had
 *   threads  the component's
 *   source   libcomponent/lifecycle/lifecycle.c
 */
COMPONENT_API int component_on_signal(struct component *c, enum component_signal signal, component_fn *fn, void *arg);

/*
 * component_signalled - do what a signal means, for a daemon that catches it itself
 *
 * From its own handler, or where its loop reads a signalfd(2).  Only asks: the dispatch that
 * follows stops gracefully, reloads and logs a failure, or calls what component_on_signal()
 * set, such as profiling's switch.
 *
 *   signal   COMPONENT_SIGNAL_TERM, _HUP, _USR1
 *   returns  0; -EINVAL: another one, which has no such meaning
 *   threads  any; also from a signal handler
 *   fork     in a child: nothing happens
 *   source   libcomponent/lifecycle/lifecycle.c
 */
COMPONENT_API int component_signalled(struct component *c, enum component_signal signal);

/*
 * component_set_verbosity - what -v says, until the next reload
 * component_verbosity     - what is in force
 *
 *   returns  0, or the verbosity; -ERANGE: not a verbosity; nothing has changed
 *   threads  the component's
 *   source   libcomponent/lifecycle/component.c
 */
COMPONENT_API int64_t component_verbosity(const struct component *c);
COMPONENT_API int component_set_verbosity(struct component *c, int64_t verbosity);

/* component_version - the library's version, "1.2.3".  A constant; any thread, safe in a handler. */
COMPONENT_API const char *component_version(void);

COMPONENT_END

#ifdef __cplusplus
extern "C++" {
/* By value: a static constant of a class need not be defined for it. */
template <class... A>
inline void
component_log_all(struct component *c, enum component_log_level level, A... a)
{
	const struct component_log_value values[] = { component_log_of(a)... };

	component_log_values(c, level, values, sizeof...(a));
}
}
#define component_log(c, level, ...) component_log_all(c, level, __VA_ARGS__)
#elif __STDC_VERSION__ >= 201112L
#define component_log(c, level, ...) COMPONENT_LOG_ARRAY_(c, level, COMPONENT_EACH_(COMPONENT_LOG_OF, __VA_ARGS__))
#define COMPONENT_LOG_ARRAY_(c, level, ...)                                                    \
	component_log_values(c, level, (const struct component_log_value[]){ __VA_ARGS__ },    \
		sizeof((const struct component_log_value[]){ __VA_ARGS__ }) / sizeof(struct component_log_value))
#endif

#endif
