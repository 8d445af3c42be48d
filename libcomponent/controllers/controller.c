/*
 * controller.c - one controller: a source fills a queue, workers empty it.
 *
 *     source (inotify) --> accept() --> queue --> workers --> reconcile(key)
 *        the loop                         ^                        |
 *                                         +-- again: error, after -+
 *
 * The source runs on the component's loop; reconcile() runs on threads of the
 * controller, which carry its name so that a profile or a dump says whose they
 * are.  They take signals as the daemon's other threads do: the profiler must be
 * able to reach them.
 *
 * The end: stop() shuts the queue down; each worker ends when the queue is empty;
 * the last one releases the hold that a graceful stop waits for.  As long as it is
 * held component_free() frees nothing, so a reconcile() that did not end in time
 * goes on using what it uses.  Why not cancel it: it is somebody's code and may hold
 * anything.
 *
 * Tests: tests/controllers/test_controller.c.
 */
#include <config.h>

#include "controllers.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "figures.h"
#include "leader.h"
#include "source.h"

/* Bytes of a thread's name, NUL included: the kernel's TASK_COMM_LEN. */
#define THREAD_NAME_MAX 16
/* How often there is a look for what was not seen or not queued, ns. */
#define BLIND_NS INT64_C(5000000000)
/* Before a worker that had no memory tries again, ns. */
#define NO_MEMORY_NS 100000000

struct component_controller {
	struct component_controller_spec spec;
	struct component_queue  *queue;
	struct reconcile_figures figures;
	struct source           *source;
	struct component_watch  *watch;
	struct component_timer  *resync, *blind;
	int64_t                  resync_ns;
	pid_t                    pid;
	bool                     stopped;  /* loop only */
	bool                     troubled; /* loop only: said so already */
	atomic_ulong             lost;     /* keys the queue refused */
	atomic_bool              missed;   /* some, since the last look at everything */
	struct component        *c;
	struct leader           *leader;
	atomic_size_t            running;  /* workers that have not ended */
	size_t                   wanted;   /* room in workers */
	size_t                   worker_count;
	pthread_t                workers[];
};

/* What the queue has answered: a key that it has no room for is found by a look at everything. */
static void
queued(struct component_controller *k, const char *key, int r)
{
	unsigned long lost;

	if (r == 0 || r == -ESHUTDOWN)
		return;
	k->missed = true;
	/* Each power of two, so that a full queue does not fill the log. */
	lost = atomic_fetch_add(&k->lost, 1) + 1;
	if ((lost & (lost - 1)) == 0)
		component_log(k->c, COMPONENT_LOG_ERROR, "cannot queue a key; looking at all files within 5s",
			"controller", k->spec.name, "key", key, "error", strerror(-r), NULL);
}

static void
on_changed(const char *key, int64_t settle_ns, void *arg)
{
	struct component_controller *k = arg;
	char own[COMPONENT_QUEUE_KEY_MAX];

	if (snprintf(own, sizeof own, "%s", key) >= (int)sizeof own)
		return; /* longer than PATH_MAX: nobody could open it */
	if (k->spec.accept != NULL && !k->spec.accept(own, sizeof own, k->spec.arg))
		return;
	queued(k, own, component_queue_add_after(k->queue, own, settle_ns));
}

static void
on_trouble(const char *text, void *arg)
{
	struct component_controller *k = arg;

	if (!k->troubled)
		component_log(k->c, COMPONENT_LOG_WARNING, "not all files can be watched; looking every 5s instead",
			"controller", k->spec.name, "error", text, NULL);
	k->troubled = true;
}

static void
on_readable(struct component *c, int fd, uint32_t events, void *arg)
{
	struct component_controller *k = arg;

	(void)c, (void)fd, (void)events;
	source_read(k->source);
}

static void
on_resync(struct component *c, void *arg)
{
	struct component_controller *k = arg;

	(void)c;
	source_rescan(k->source);
}

static void
on_blind(struct component *c, void *arg)
{
	struct component_controller *k = arg;

	if (atomic_exchange(&k->missed, false) || source_is_blind(k->source))
		source_rescan(k->source);
	if (k->troubled && !source_is_blind(k->source)) {
		k->troubled = false;
		component_log(c, COMPONENT_LOG_INFO, "all files are watched again", "controller", k->spec.name, NULL);
	}
}

static void
log_failure(struct component_controller *k, const char *key, const struct component_result *result)
{
	unsigned count = component_queue_failures(k->queue, key);
	char failures[32];

	/* The first, the second, the fourth: what cannot succeed does not fill the log. */
	if (result->outcome == COMPONENT_ERROR && (count & (count - 1)) != 0)
		return;
	snprintf(failures, sizeof failures, "%u", count);
	component_log(k->c, COMPONENT_LOG_ERROR, result->outcome == COMPONENT_TERMINAL ?
		"reconcile failed, not tried again" : "reconcile failed",
		"controller", k->spec.name, "key", key, "failures", failures,
		"error", *result->error.text == '\0' ? "no reason given" : result->error.text, NULL);
}

/* The profile's callers of reconcile() all come from here. */
static void
process(struct component_controller *k, const char *key)
{
	struct component_result result;
	int64_t begin = clock_ns(CLOCK_MONOTONIC);

	component_gauge_add(k->figures.active, 1);
	result.outcome = COMPONENT_DONE;
	result.after_ns = 0;
	*result.error.text = '\0';
	k->spec.reconcile(k->c, key, &result, k->spec.arg);
	component_gauge_add(k->figures.active, -1);
	reconcile_figures_add(&k->figures, result.outcome, clock_ns(CLOCK_MONOTONIC) - begin);
	/* A shut down queue refuses what comes again: that is its purpose.  Another one does not: the key is in it. */
	if (result.outcome == COMPONENT_ERROR)
		component_queue_add_rate_limited(k->queue, key);
	else
		component_queue_forget(k->queue, key);
	if (result.outcome == COMPONENT_AFTER)
		component_queue_add_after(k->queue, key, result.after_ns);
	if (result.outcome == COMPONENT_ERROR || result.outcome == COMPONENT_TERMINAL)
		log_failure(k, key, &result);
	component_queue_done(k->queue, key);
}

/* The last one's release is the last thing it does with the component. */
static void
worker_ends(struct component_controller *k)
{
	if (atomic_fetch_sub(&k->running, 1) != 1)
		return;
	leader_leave(k->leader);
	component_release(k->c, k->spec.name);
}

static void *
worker(void *arg)
{
	static const struct timespec pause = { .tv_nsec = NO_MEMORY_NS };
	struct component_controller *k = arg;
	char name[THREAD_NAME_MAX], *key;
	int r;

	snprintf(name, sizeof name, "%s", k->spec.name);
	pthread_setname_np(pthread_self(), name);
	while ((r = component_queue_get(k->queue, &key)) != -ESHUTDOWN) {
		if (r != 0) {
			nanosleep(&pause, NULL);
			continue;
		}
		if (leader_may(k->leader))
			process(k, key);
		else
			component_queue_done(k->queue, key); /* it is another process's */
		free(key);
	}
	worker_ends(k);
	return NULL;
}

static int
workers_start(struct component_controller *k, size_t count, struct component_error *err)
{
	int r;

	r = component_hold(k->c, k->spec.name);
	if (r != 0) {
		component_error_set(err, "controller '%s': %s", k->spec.name, strerror(-r));
		return r;
	}
	k->running = 1; /* ours: the hold stays until all are there */
	leader_enter(k->leader);
	for (; k->worker_count < count && r == 0; k->worker_count += r == 0) {
		k->running++;
		r = pthread_create(&k->workers[k->worker_count], NULL, worker, k);
		if (r != 0) {
			component_error_set(err, "controller '%s': cannot start worker %zu: %s; lower --concurrent-syncs "
				"or raise the limit of processes", k->spec.name, k->worker_count + 1, strerror(r));
			worker_ends(k);
		}
	}
	if (r != 0)
		component_queue_shut_down(k->queue);
	worker_ends(k);
	return -r;
}

static int
timers_add(struct component_controller *k, int64_t resync_ns)
{
	int r = component_timer_add(k->c, BLIND_NS, BLIND_NS, on_blind, k, &k->blind);

	k->resync_ns = resync_ns;
	if (r == 0 && resync_ns > 0)
		r = component_timer_add(k->c, resync_ns, resync_ns, on_resync, k, &k->resync);
	return r;
}

int
controller_new(struct component *c, const struct component_controller_spec *spec,
	const struct controller_options *options, struct leader *leader, struct component_controller **ret,
	struct component_error *err)
{
	size_t count = (size_t)options->workers;
	struct component_queue_options pacing = options->queue;
	struct component_controller *k = calloc(1, sizeof *k + count * sizeof *k->workers);
	int r = -ENOMEM;

	if (k == NULL)
		goto out;
	k->spec = *spec;
	k->c = c;
	k->leader = leader;
	k->pid = getpid();
	pacing.name = spec->name;
	r = component_queue_new(&pacing, &k->queue);
	if (r != 0)
		goto out;
	r = source_new(spec->directory, &(struct source_events){ on_changed, on_trouble, k }, &k->source, err);
	if (r != 0)
		goto named;
	r = component_watch_add(c, source_fd(k->source), EPOLLIN, on_readable, k, &k->watch);
	if (r == 0)
		r = timers_add(k, options->resync_ns);
	if (r != 0)
		goto out;
	k->wanted = count;
	reconcile_figures_init(&k->figures, spec->name);
	component_gauge_set(k->figures.workers, (int64_t)count);
	*ret = k;
	return 0;

out:
	component_error_set(err, "controller '%s': %s", spec->name, strerror(-r));
named:
	controller_stop(k);
	controller_free(k);
	return r;
}

int
controller_run(struct component_controller *k, struct component_error *err)
{
	return workers_start(k, k->wanted, err);
}

void
controller_look(struct component_controller *k)
{
	source_rescan(k->source);
}

void
controller_set(struct component_controller *k, const struct controller_options *options)
{
	component_queue_set(k->queue, &options->queue);
	if (options->resync_ns == k->resync_ns && (k->resync || k->resync_ns <= 0))
		return; /* otherwise a daemon that reloads more often than this would never look at everything */
	k->resync_ns = options->resync_ns;
	component_timer_remove(k->resync);
	k->resync = NULL;
	if (options->resync_ns > 0 && !k->stopped &&
			component_timer_add(k->c, options->resync_ns, options->resync_ns, on_resync, k, &k->resync) != 0)
		component_log(k->c, COMPONENT_LOG_ERROR, "no memory: there is no resync any more",
			"controller", k->spec.name, NULL);
}

void
controller_stop(struct component_controller *k)
{
	if (k == NULL || k->stopped)
		return;
	k->stopped = true;
	component_watch_remove(k->watch);
	component_timer_remove(k->resync);
	component_timer_remove(k->blind);
	k->watch = NULL;
	k->resync = k->blind = NULL;
	if (k->queue != NULL)
		component_queue_shut_down(k->queue);
}

void
controller_free(struct component_controller *k)
{
	if (k == NULL)
		return;
	/* In a child of fork() there are no workers, and locks may be held by nobody. */
	if (k->pid != getpid())
		return;
	for (size_t n = 0; n < k->worker_count; n++)
		pthread_join(k->workers[n], NULL);
	source_free(k->source);
	component_queue_free(k->queue);
	free(k);
}

void
component_controller_enqueue(struct component_controller *k, const char *key)
{
	if (k != NULL)
		queued(k, key, component_queue_add(k->queue, key));
}
