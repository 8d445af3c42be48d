/*
 * controller.h - the controller kit: sources of keys, a work queue, workers.
 *
 * A source says "something about KEY may have changed"; the queue holds each key
 * once; a worker calls reconcile(key), which looks at the world as it is now and
 * answers what is to happen with the key.  Nothing depends on how many events
 * were seen or in which order: a lost or doubled one changes nothing.
 */
#ifndef COMPONENT_CONTROLLER_H
#define COMPONENT_CONTROLLER_H

#include <component/component.h>

COMPONENT_BEGIN

struct component_controller;
struct component_queue;

enum component_reconcile {
	COMPONENT_DONE,     /* forget the key's failures */
	COMPONENT_ERROR,    /* again after the key's back-off */
	COMPONENT_AFTER,    /* forget its failures, again after result->after_ns */
	COMPONENT_TERMINAL, /* a failure that trying again cannot mend */
};

struct component_result {
	enum component_reconcile outcome;
	int64_t                  after_ns;
	/* For ERROR and TERMINAL, to the log: each TERMINAL, and of a key's ERRORs in a row the first, the
	 * second, the fourth, the eighth and so on. */
	struct component_error   error;
};

struct component_controller_spec {
	size_t      size; /* sizeof(struct component_controller_spec) */
	/* As in --controllers, in the log, and the worker threads' name (15 bytes). */
	const char *name;
	/* The source: every file below this directory; keys are paths relative to it.
	 * Symbolic links are files, too.  When one that leads to a directory beside it comes or is
	 * replaced, all files are told of, within 5 s: a ConfigMap's are links through such a one. */
	const char *directory;
	/* Chooses and names keys: returns false to ignore; may rewrite key in
	 * place.  On the component's loop.  NULL: all files. */
	bool      (*accept)(char *key, size_t key_size, void *arg);
	/* On a worker, never twice at once for one key.  ret is COMPONENT_DONE
	 * without error text when it is called.  c is the component that it belongs to,
	 * valid until it returns, for what any thread may call: component_log(),
	 * component_post(), component_phase(), component_fail() and the like. */
	void      (*reconcile)(struct component *c, const char *key, struct component_result *ret, void *arg);
	void       *arg;
	bool        off_by_default; /* "*" in --controllers does not mean this one */
};

/*
 * component_controllers - the section "Controllers" as a part
 *
 * --controllers, --concurrent-syncs, --resync-period and --rate-limiter-*, and the
 * section "Leader election": --leader-elect and --leader-elect-*.  Use it before parsing;
 * component_main() does with spec.parts.
 *
 *   source   libcomponent/controllers/controllers.c
 */
COMPONENT_API const struct component_part *component_controllers(void);

/*
 * component_controllers_start - start all controllers of a component
 *
 * From spec.start or later, once, with every controller the component has: names in
 * --controllers must be among them.  Each gets its source, its queue and
 * --concurrent-syncs threads; all files there are become keys at once.  With the
 * component's stop it takes no new keys, finishes those queued, and ends; until
 * then it is a component_hold() under its name.
 *
 *   specs    borrowed for the process's life, strings included
 *   ret      count pointers, set before the first reconcile(); NULL for one that
 *            --controllers leaves out.  Not to be used after a failure.  Or NULL
 *   returns  0; or, with nothing left running that could be called,
 *              -EINVAL   a name in --controllers is none of these; a bad spec
 *              -EALREADY called before
 *              -ENOENT, -ENOTDIR, -EACCES, -ENOSPC, -EMFILE  the directory cannot
 *                        be watched; the error says what to do
 *              -EAGAIN   a worker cannot be started: a limit of threads
 *   owns     the component owns the controllers, until component_free()
 *   threads  the component's loop
 *   source   libcomponent/controllers/controllers.c, libcomponent/controllers/controller.c
 */
COMPONENT_API int component_controllers_start(struct component *c, const struct component_controller_spec *const *specs, size_t count, struct component_controller **ret, struct component_error *err);
/* Starts the only controller of a component. */
COMPONENT_API int component_controller_start(struct component *c, const struct component_controller_spec *spec, struct component_controller **ret, struct component_error *err);
/* A key from elsewhere than the source; k may be NULL (left out); any thread.  One that cannot be
 * queued is lost; the log tells of the first, the second, the fourth and so on. */
COMPONENT_API void component_controller_enqueue(struct component_controller *k, const char *key);

/* What one process of several alone may do; write .size = sizeof. */
struct component_lead_spec {
	size_t      size;
	/* Where the lock is, unless --leader-elect-lock says so: DIRECTORY/NAME.lock, with the component's
	 * name or that of --leader-elect-resource-name.  The same for all who do the same work.  NULL: there
	 * is no such place. */
	const char *directory;
	const char *option; /* which names that directory, for errors: "locks-dir"; or NULL */
	const char *guards; /* "root": in the log, and the check that fails while it waits; or NULL */
	const char *advice; /* what to do when another process has it: "stop it, or wait with --wait"; or NULL */
	/* always: without --leader-elect, too, one process alone may.  The start of a second one fails with
	 * -EBUSY or, with wait, it runs and is not ready until the first has ended.  Needs directory. */
	bool        always, wait;
	/* On the component's loop, once, when this process leads: loads what others may have changed
	 * until then, and starts controllers.  On failure the component ends.  NULL: nothing but the
	 * controllers. */
	int       (*begin)(struct component *c, struct component_error *err);
};

/*
 * component_lead - begin something when this process is the one that may
 *
 * From spec.start or later, once, before component_controllers_start().  A component that has nothing to
 * say about the lock need not call it: component_controllers_start() does then.
 *
 * Without --leader-elect it calls begin at once.  With it, one of several processes leads; the others
 * stand by and are ready.  A process that leads no more takes no further keys, and ends with status 1,
 * without a graceful time, in the middle of a stop, too.  After a graceful stop the next one leads as soon as all controllers have ended.
 *
 *   spec     copied; its strings are borrowed for the component's life
 *   returns  0; or, with err filled,
 *              -EBUSY      always, and another process has the lock
 *              -EOPNOTSUPP, -ENOLCK, -ENOENT, -EACCES and others  it cannot be locked there, or not for all hosts
 *              -EINVAL     no place for a lock; a bad spec; no component_controllers()
 *              -EALREADY   called before
 *              what begin answered
 *   threads  the component's loop
 *   fork     a child has no part in it
 *   source   libcomponent/controllers/controllers.c, libcomponent/controllers/leader.c
 */
COMPONENT_API int component_lead(struct component *c, const struct component_lead_spec *spec, struct component_error *err);

/*
 * component_controllers_check - is every name in --controllers one of these?
 *
 * For spec.check: there a fault ends with status 2, as a wrong option should.
 *
 *   specs    only their names are looked at
 *   returns  0; -EINVAL with err filled
 *   threads  the component's loop
 *   source   libcomponent/controllers/controllers.c
 */
COMPONENT_API int component_controllers_check(struct component *c, const struct component_controller_spec *const *specs, size_t count, struct component_error *err);

/*
 * The queue alone.  Any thread, no handlers; a forked child must not touch it.
 *
 * A key is in it once.  Added while it is being processed, it runs again after
 * component_queue_done().  Keys are copied, at most COMPONENT_QUEUE_KEY_MAX bytes.
 */
#define COMPONENT_QUEUE_KEY_MAX  4096    /* bytes, NUL included: a path */
#define COMPONENT_QUEUE_KEYS_MAX 4194304 /* keys known at a time, about 1 GiB of paths */

struct component_queue_options {
	size_t  size;
	int64_t base_delay_ns, max_delay_ns; /* of a key's first and longest retry */
	double  qps;                         /* retries per second, all keys together */
	int64_t burst;                       /* retries that may come at once */
	const char *name;                    /* of its metrics, workqueue_*; NULL: it has none; copied */
};

#define COMPONENT_QUEUE_OPTIONS_INIT COMPONENT_SIZED_(component_queue_options,        \
	.base_delay_ns = COMPONENT_MILLISECONDS(5), .max_delay_ns = COMPONENT_SECONDS(1000), \
	.qps = 10, .burst = 100)

/*
 * component_queue_new - an empty queue
 *
 *   options  NULL means COMPONENT_QUEUE_OPTIONS_INIT
 *   returns  0; -EINVAL: qps or burst not above 0, base_delay negative or above
 *            max_delay; -ENOMEM
 *   owns     component_queue_free(), when no thread is in any call
 *   source   libcomponent/controllers/queue.c
 */
COMPONENT_API int component_queue_new(const struct component_queue_options *options, struct component_queue **ret);
/* Other pacing from now on; a delay already running stays until the key fails again.  Returns as new does. */
COMPONENT_API int component_queue_set(struct component_queue *q, const struct component_queue_options *options);

/*
 * component_queue_add              - process the key as soon as a worker is free
 * component_queue_add_after        - the same, not before after_ns from now; of
 *                                    two such calls the earlier moment counts
 * component_queue_add_rate_limited - the same, after the larger of the key's own
 *                                    back-off (base * 2^failures, capped) and the
 *                                    wait for a token all keys share; a key whose
 *                                    retry waits already has its token, and one that
 *                                    comes earlier anyway needs none
 * component_queue_forget           - the key's next back-off is the base again; a
 *                                    retry that waited already when the key was
 *                                    taken is dropped, unless add_after() was called
 *                                    for it since
 *
 *   returns  0, also when it is queued already; -ESHUTDOWN; -ENAMETOOLONG;
 *            -ENOBUFS beyond COMPONENT_QUEUE_KEYS_MAX; -ENOMEM; of a key that is queued,
 *            waits or is processed, none of these three
 */
COMPONENT_API int component_queue_add(struct component_queue *q, const char *key);
COMPONENT_API int component_queue_add_after(struct component_queue *q, const char *key, int64_t after_ns);
COMPONENT_API int component_queue_add_rate_limited(struct component_queue *q, const char *key);
COMPONENT_API void component_queue_forget(struct component_queue *q, const char *key);

/*
 * component_queue_get  - wait for a key and take it
 * component_queue_done - processing it has ended; without this it never runs again
 *
 *   ret_key  the caller's to free()
 *   returns  0; -ESHUTDOWN: shut down and nothing is queued any more; -ENOMEM
 */
COMPONENT_API int component_queue_get(struct component_queue *q, char **ret_key);
COMPONENT_API void component_queue_done(struct component_queue *q, const char *key);

COMPONENT_API size_t   component_queue_length(const struct component_queue *q);   /* How many keys are ready to be taken. */
COMPONENT_API unsigned component_queue_failures(const struct component_queue *q, const char *key); /* How often a key has failed since it was forgotten. */

/*
 * component_queue_shut_down - refuse new keys, drop delayed ones; what is queued
 *                             can still be taken
 * component_queue_drain     - that, and wait until it is taken and done
 * component_queue_free      - free it; no thread may be in a call then
 */
COMPONENT_API void component_queue_shut_down(struct component_queue *q);
COMPONENT_API void component_queue_drain(struct component_queue *q);
COMPONENT_API void component_queue_free(struct component_queue *q);

COMPONENT_END

#endif
