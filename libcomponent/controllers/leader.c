/*
 * leader.c - one process of several leads, and works.
 *
 *     standby --> taken --> leading --> lost: the process ends, status 1
 *        |          |          |
 *        +----------+----------+------> released, at a stop, when all work has ended
 *
 * A thread takes the lock every retry period, and then verifies as often that it is ours still.  It alone
 * touches the lock, since a file system may hang; what follows happens on the component's loop, which is told
 * by component_post(), and looks itself now and then.
 *
 * What a stranger would get wrong:
 * - The loop counts how long nothing was verified in ticks of its own, not by the clock: who was stopped
 *   (SIGSTOP) for an hour has the lock still, and goes on.
 * - Who takes a lock by which nobody has led waits --leader-elect-lease-duration first.  It may stand in the
 *   place of one that was removed under a leader, who notices and ends within the renew deadline.
 * - Workers ask before each key (leader_may()): who was stopped for long, or whose loop hangs, begins none
 *   before it is verified again.
 * - Who has lost does not drain: workers take no further key, from the moment that the thread knows it, and
 *   the graceful time is 0, of a stop that goes on, too.  The lock is kept until the process ends, for a reconcile() may be in the
 *   middle of something.
 * - A leader has the component's own lock as well, if there is one and the election is by another: else one
 *   that was started without --leader-elect, or with another name, would be a second writer.
 * - Without --leader-elect there is no thread.  The component's own lock is taken all the same then, if it
 *   says so (component_lead_spec.always), once or by a timer.
 *
 * Why not on the loop: a file system that hangs would keep it from ending what must end.
 * Tests: tests/controllers/test_leader.c, tests/examples/leader.t.
 */
#include <config.h>

#include "leader.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "clock.h"
#include "figures.h"
#include "life.h"
#include "our_thread.h"

#define TICKS   8 /* of the loop in a renew deadline */
#define LOCKS   2 /* that of the election, and the component's own */
#define WAIT_NS COMPONENT_MILLISECONDS(500) /* between two tries without --leader-elect */
#define FREE_NS CLOCK_NS_PER_S /* how long to wait for a thread that a file system may hold */

enum state { IDLE, STANDBY, TAKEN, WON, LEADING, LOST, RELEASED };

struct leader {
	struct component                *c;
	struct leader_options            options;
	struct component_lead_spec       spec;
	const struct leader_lock_kind   *kind;
	struct leader_events             events;
	void                            *locks[LOCKS]; /* the thread's, if there is one */
	size_t                           count, held;
	struct leader_record             before;       /* who led, by the election's lock */
	int64_t                          leads_ns;     /* the earliest moment, by CLOCK_MONOTONIC */
	struct component_timer          *timer;        /* loop only, as the next two */
	unsigned                         ticks;        /* since it was verified */
	bool                             begun, has_thread;
	struct leader_figures            figures;
	atomic_uint                      inside;       /* what only a leader may do, and its owner until it leaves */
	atomic_bool                      lost;
	_Atomic int64_t                  until_ns;     /* of what only a leader may do, by CLOCK_BOOTTIME */

	pthread_t                        thread;
	pthread_mutex_t                  mutex; /* of all below; the lock is not asked with it held */
	pthread_cond_t                   changed;
	enum state                       state;
	bool                             threaded, verified, release, orphan;
	struct leader_status             status;
	struct component_error           reason; /* why it does not lead, or does so no more */
};

int
leader_new(struct component *c, struct leader **ret, struct component_error *err)
{
	struct leader *l = calloc(1, sizeof *l);
	pthread_condattr_t attr;
	int r;

	if (l == NULL) {
		component_error_set(err, "out of memory");
		return -ENOMEM;
	}
	l->c = c;
	l->kind = &leader_flock;
	l->inside = 1;
	l->until_ns = INT64_MAX;
	r = leader_options_add(&l->options, component_flags(c), err);
	if (r != 0) {
		free(l);
		return r;
	}
	pthread_mutex_init(&l->mutex, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&l->changed, &attr);
	pthread_condattr_destroy(&attr);
	*ret = l;
	return 0;
}

int
leader_check(const struct leader *l, struct component_error *err)
{
	return leader_options_check(&l->options, component_flags(l->c), err);
}

/* ---- who this process is ---- */

static void
identity_make(char *buf, size_t size)
{
	unsigned char id[16] = { 0 };
	char host[HOST_NAME_MAX + 1] = "";
	int n;

	if (getrandom(id, sizeof id, GRND_NONBLOCK) != (ssize_t)sizeof id) {
		int64_t now = clock_ns(CLOCK_REALTIME); /* as the machine starts: with host and pid it is told apart all the same */

		memcpy(id, &now, sizeof now);
	}
	id[6] = (unsigned char)((id[6] & 0x0f) | 0x40);
	id[8] = (unsigned char)((id[8] & 0x3f) | 0x80);
	gethostname(host, sizeof host - 1);
	n = snprintf(buf, size, "%.64s_%ld_", host, (long)getpid());
	for (size_t i = 0; i < sizeof id; i++)
		n += snprintf(buf + n, size - (size_t)n, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", id[i]);
}

/* ---- the lock, or both ---- */

/* The last one. */
static void
lock_drop(struct leader *l)
{
	l->kind->release(l->locks[--l->count]);
	l->kind->free(l->locks[l->count]);
}

/* 0: all of them are ours; else as the first that is not, and *ret says who has it. */
static int
locks_take(struct leader *l, struct leader_record *ret, struct component_error *err)
{
	int r = 0;

	for (; r == 0 && l->held < l->count; l->held += r == 0) {
		r = l->kind->take(l->locks[l->held], ret, err);
		if (r == 0 && l->held == 0)
			l->before = *ret;
		if (r == -EBUSY && l->held == 1 && l->kind->is_same(l->locks[0], l->locks[1])) {
			lock_drop(l); /* two names of one file, of which we have the lock */
			return 0;
		}
	}
	return r;
}

static void
locks_announce(struct leader *l, bool leads)
{
	for (size_t i = 0; i < l->held; i++)
		l->kind->announce(l->locks[i], l->status.identity, l->status.transitions, leads);
}

static int
locks_verify(struct leader *l, struct component_error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < l->held; i++)
		r = l->kind->verify(l->locks[i], err);
	return r;
}

static void
locks_release(struct leader *l)
{
	for (size_t i = l->count; i-- > 0;)
		l->kind->release(l->locks[i]);
	l->held = 0;
}

static void
locks_free(struct leader *l)
{
	while (l->count > 0)
		l->kind->free(l->locks[--l->count]);
}

static int
locks_add(struct leader *l, const char *path, const char *option, const char *busy, struct component_error *err)
{
	const struct leader_place place = { .path = path, .option = option, .busy = busy,
		.shared = l->options.elect && l->count == 0 };
	int r = l->kind->open(&place, &l->locks[l->count]);

	l->count += r == 0;
	if (r != 0)
		component_error_set(err, "out of memory");
	return r;
}

static const char *
name_of(const struct leader *l)
{
	return *l->options.name != '\0' ? l->options.name : component_name(l->c);
}

/* The election's, then the component's own, where that is another one. */
static int
locks_find(struct leader *l, struct component_error *err)
{
	const char *busy = l->spec.advice != NULL ? l->spec.advice : "stop it, or wait for it with --leader-elect";
	const char *option = l->spec.option != NULL ? l->spec.option : "leader-elect-lock", *directory = l->spec.directory;
	const struct leader_options *o = &l->options;
	char own[PATH_MAX] = "", path[PATH_MAX] = "";
	bool named = *o->lock != '\0';
	int r = 0;

	if (directory == NULL && !named) {
		component_error_set(err, "option '--leader-elect': there is no place for a lock; write --leader-elect-lock=FILE, the "
			"same for all processes of which one is to lead");
		return -EINVAL;
	}
	if (directory != NULL)
		snprintf(own, sizeof own, "%s/%s.lock", directory, component_name(l->c));
	if (o->elect && named)
		snprintf(path, sizeof path, "%s", o->lock);
	else if (o->elect)
		snprintf(path, sizeof path, "%s/%s%s%s.lock", directory, o->space, *o->space != '\0' ? "." : "", name_of(l));
	if (o->elect)
		r = locks_add(l, path, named ? "leader-elect-lock" : option, busy, err);
	if (r == 0 && l->spec.always && strcmp(own, path) != 0)
		r = locks_add(l, own, option, busy, err);
	pthread_mutex_lock(&l->mutex);
	identity_make(l->status.identity, sizeof l->status.identity);
	snprintf(l->status.lock, sizeof l->status.lock, "%s", o->elect ? path : own);
	pthread_mutex_unlock(&l->mutex);
	return r;
}

/* ---- one step: by the thread, or without one on the loop ---- */

/* Verified at that moment. */
static void
verified(struct leader *l, int64_t at_ns)
{
	int64_t until_ns;

	l->verified = true;
	if (l->options.elect)
		l->until_ns = __builtin_add_overflow(at_ns, l->options.deadline_ns, &until_ns) ? INT64_MAX : until_ns;
	pthread_cond_broadcast(&l->changed);
}

static void
holder_is(struct leader *l, const struct leader_record *record)
{
	struct leader_status *s = &l->status;
	const char *text = record->has_led ? record->text : ""; /* else it waits as well */
	bool same = strcmp(s->holder, text) == 0;

	snprintf(s->holder, sizeof s->holder, "%s", text);
	s->transitions = record->transitions;
	if (l->options.elect && !same && *s->holder != '\0')
		component_log(l->c, COMPONENT_LOG_INFO, "another process leads", "holder", s->holder, "lock", s->lock, NULL);
}

/* It is ours.  Who led before may not know yet that its lock is gone: then it is not our turn yet. */
static void
taken(struct leader *l)
{
	const struct leader_record *before = &l->before;
	bool waits = l->options.elect && !before->has_led;
	char lease[32];

	l->status.transitions = before->transitions +
		(*before->identity != '\0' && strcmp(before->identity, l->status.identity) != 0);
	if (__builtin_add_overflow(clock_ns(CLOCK_MONOTONIC), l->options.lease_ns, &l->leads_ns))
		l->leads_ns = INT64_MAX;
	l->state = waits ? TAKEN : WON;
	*l->reason.text = *l->status.holder = '\0';
	if (!waits)
		return;
	life_duration_text(l->options.lease_ns, lease, sizeof lease);
	component_error_set(&l->reason, "nobody has led by this lock: waiting %s for who may have led by another one", lease);
	component_log(l->c, COMPONENT_LOG_INFO, l->reason.text, "lock", l->status.lock, NULL);
}

static int
step_take(struct leader *l)
{
	struct leader_record holder = { .transitions = 0 };
	struct component_error err = COMPONENT_ERROR_INIT;
	int64_t now_ns = clock_ns(CLOCK_BOOTTIME);
	int r = locks_take(l, &holder, &err);

	pthread_mutex_lock(&l->mutex);
	if (l->orphan)
		goto out;
	if (r == 0)
		verified(l, now_ns);
	if (r == 0)
		taken(l);
	else if (r == -EBUSY)
		holder_is(l, &holder);
	else if (l->threaded && strcmp(l->reason.text, err.text) != 0)
		component_log(l->c, COMPONENT_LOG_WARNING, "cannot try to lead; trying again", "error", err.text, NULL);
	if (r != 0)
		l->reason = err;
out:
	pthread_mutex_unlock(&l->mutex);
	return r;
}

static void
lost(struct leader *l)
{
	l->state = LOST;
	l->lost = true;
	pthread_cond_broadcast(&l->changed); /* workers that wait to begin */
}

/* Before anything was begun it is as if it had never been ours. */
static void
no_more_ours(struct leader *l)
{
	if (l->state == LEADING) {
		lost(l);
		return;
	}
	l->state = STANDBY;
	pthread_mutex_unlock(&l->mutex);
	locks_release(l);
	pthread_mutex_lock(&l->mutex);
}

static void
step_verify(struct leader *l)
{
	struct component_error err = COMPONENT_ERROR_INIT;
	int64_t now_ns = clock_ns(CLOCK_BOOTTIME);
	int r = locks_verify(l, &err);

	pthread_mutex_lock(&l->mutex);
	if (l->orphan || l->state == LOST)
		goto out;
	if (r == 0)
		verified(l, now_ns);
	if (r == 0 && l->state == TAKEN && clock_ns(CLOCK_MONOTONIC) >= l->leads_ns)
		l->state = WON;
	l->status.slow_paths += r != 0 && r != -ESTALE;
	component_counter_add(l->figures.slow_paths, r != 0 && r != -ESTALE);
	if (r != 0 && r != -ESTALE && strcmp(l->reason.text, err.text) != 0)
		component_log(l->c, COMPONENT_LOG_WARNING, "cannot verify who leads; trying again", "error", err.text, NULL);
	if (r != 0 || l->state != TAKEN)
		l->reason = err;
	if (r == -ESTALE)
		no_more_ours(l);
out:
	pthread_mutex_unlock(&l->mutex);
}

static enum state
state_of(struct leader *l)
{
	enum state state;

	pthread_mutex_lock(&l->mutex);
	state = l->state;
	pthread_mutex_unlock(&l->mutex);
	return state;
}

static int
step(struct leader *l)
{
	enum state before = state_of(l), after;
	int r = 0;

	if (before == STANDBY)
		r = step_take(l);
	else
		step_verify(l);
	after = state_of(l);
	if (after != before && (after == TAKEN || after == WON))
		locks_announce(l, after == WON);
	return r;
}

/* ---- the thread ---- */

static void look(struct component *c, void *arg);

/* When all is released or lost, or its component is gone; that is told nothing any more then. */
static void *
run(void *arg)
{
	struct leader *l = arg;
	struct timespec until;
	bool release, orphan;

	pthread_mutex_lock(&l->mutex);
	while (!l->release && !l->orphan && l->state != LOST) {
		until = clock_timespec(clock_ns(CLOCK_MONOTONIC) + l->options.retry_ns);
		while (!l->release && pthread_cond_timedwait(&l->changed, &l->mutex, &until) == 0)
			;
		if (l->release)
			break;
		pthread_mutex_unlock(&l->mutex);
		step(l);
		pthread_mutex_lock(&l->mutex);
		if (!l->orphan && (l->state == WON || l->state == LOST))
			component_post(l->c, look, l); /* no memory: the next tick sees it */
	}
	release = l->release;
	pthread_mutex_unlock(&l->mutex);
	if (release)
		locks_release(l);
	pthread_mutex_lock(&l->mutex);
	l->threaded = false;
	orphan = l->orphan;
	pthread_cond_broadcast(&l->changed);
	pthread_mutex_unlock(&l->mutex);
	if (orphan) {
		locks_free(l);
		free(l);
	}
	return NULL;
}

/* ---- the loop ---- */

/* This process leads: what waits for that begins. */
static int
win(struct leader *l, struct component_error *err)
{
	bool won;

	pthread_mutex_lock(&l->mutex);
	won = l->state == WON;
	if (won) {
		l->state = LEADING;
		l->status.is_leader = true;
		l->status.since_ns = clock_ns(CLOCK_REALTIME);
		snprintf(l->status.holder, sizeof l->status.holder, "%s", l->status.identity);
	}
	pthread_mutex_unlock(&l->mutex);
	if (!won)
		return 0; /* lost again in this instant */
	l->ticks = 0;
	component_gauge_set(l->figures.leads, 1);
	if (l->options.elect)
		component_log(l->c, COMPONENT_LOG_INFO, "became leader", "lock", l->status.lock, "identity", l->status.identity, NULL);
	return l->events.lead(l->events.arg, err);
}

static void
stopped_leading(struct leader *l, const char *why)
{
	component_gauge_set(l->figures.leads, 0);
	l->status.is_leader = false;
	l->status.since_ns = 0;
	*l->status.holder = '\0';
	if (l->options.elect)
		component_log(l->c, COMPONENT_LOG_INFO, "stopped leading", "lock", l->status.lock, "reason", why, NULL);
}

/* As controller-runtime does: at once, without a graceful time.  A stop may go on already. */
static void
lose(struct leader *l)
{
	struct component_error err = COMPONENT_ERROR_INIT;

	pthread_mutex_lock(&l->mutex);
	stopped_leading(l, l->reason.text);
	component_error_set(&err, "leader election lost: %s", l->reason.text);
	pthread_mutex_unlock(&l->mutex);
	component_timer_remove(l->timer);
	l->timer = NULL;
	l->events.lose(l->events.arg);
	component_fail(l->c, &err);
	stop_hurry(l->c);
}

/* Looks at what the thread has found. */
static void
look(struct component *c, void *arg)
{
	struct leader *l = arg;
	struct component_error err = COMPONENT_ERROR_INIT;
	enum state state = state_of(l);

	if (state == WON && component_phase(c) == COMPONENT_PHASE_RUNNING && win(l, &err) != 0)
		component_fail(c, &err);
	if (state == LOST && l->timer != NULL)
		lose(l);
}

/* How long has nothing been verified?  What the loop has not lived through does not count. */
static void
on_tick(struct component *c, void *arg)
{
	struct leader *l = arg;
	char deadline[32];

	pthread_mutex_lock(&l->mutex);
	l->ticks = l->verified || l->state != LEADING ? 0 : l->ticks + 1;
	l->verified = false;
	if (l->ticks >= TICKS) {
		life_duration_text(l->options.deadline_ns, deadline, sizeof deadline);
		component_error_set(&l->reason, "'%s' was not verified within %s", l->status.lock, deadline);
		lost(l);
	}
	pthread_mutex_unlock(&l->mutex);
	look(c, l);
}

/* Without --leader-elect: the component's own lock is another process's yet. */
static void
on_wait(struct component *c, void *arg)
{
	struct leader *l = arg;
	struct component_error err = COMPONENT_ERROR_INIT;
	char text[LEADER_TEXT_MAX];
	int r;

	if (component_phase(c) != COMPONENT_PHASE_RUNNING)
		return; /* stopping: nothing begins any more */
	r = step(l);
	if (r == -EBUSY)
		return;
	component_timer_remove(l->timer);
	l->timer = NULL;
	err = l->reason;
	if (r == 0) {
		snprintf(text, sizeof text, "the %s is free", l->spec.guards);
		component_log(c, COMPONENT_LOG_INFO, text, "lock", l->status.lock, NULL);
		r = win(l, &err);
	}
	if (r != 0)
		component_fail(c, &err);
}

/* A standby is ready, as in controller-runtime: it does what it is there for.  Who waits without an election is not. */
static int
is_ready(struct component *c, void *arg, struct component_error *err)
{
	struct leader *l = arg;
	int r = 0;

	(void)c;
	pthread_mutex_lock(&l->mutex);
	if (!l->options.elect) {
		r = l->status.is_leader ? 0 : -EBUSY;
		*err = r == 0 ? *err : l->reason;
	} else if (l->state == LOST) {
		r = -ESTALE;
		*err = l->reason;
	} else if (l->status.is_leader) {
		component_error_set(err, "ok: this process leads");
	} else {
		component_error_set(err, "ok: %s%s", *l->status.holder != '\0' ? "led by " : "",
			*l->status.holder != '\0' ? l->status.holder : l->reason.text);
	}
	pthread_mutex_unlock(&l->mutex);
	return r;
}

/* For /statusz. */
static void
status_rows(struct component *c, struct component_status *to, void *arg)
{
	struct leader_status s;

	(void)c;
	leader_status_of(arg, &s);
	component_status_row(to, "leads", s.is_leader ? "yes" : "no");
	component_status_row(to, "identity", "%s", s.identity);
	component_status_row(to, "leader", "%s", *s.holder ? s.holder : "not known");
	component_status_row(to, "lock", "%s", s.lock);
	component_status_row(to, "transitions", "%" PRIu64, s.transitions);
}

/* ---- for controllers.c ---- */

static int
elect(struct leader *l, struct component_error *err)
{
	int64_t tick_ns = l->options.deadline_ns / TICKS;
	int r = component_check_add(l->c, "leader", is_ready, l);

	if (tick_ns < COMPONENT_MILLISECONDS(1))
		tick_ns = COMPONENT_MILLISECONDS(1);
	if (r == 0)
		r = component_status_add(l->c, LEADER_SECTION, status_rows, l);
	if (r == 0)
		r = component_timer_add(l->c, tick_ns, tick_ns, on_tick, l, &l->timer);
	l->threaded = true;
	if (r == 0)
		r = our_thread_start("component-lead", run, l, &l->thread);
	l->has_thread = r == 0;
	if (r != 0) {
		l->threaded = false;
		component_error_set(err, "option '--leader-elect': %s", strerror(-r));
	}
	return r;
}

static int
stand_by(struct leader *l, struct component_error *err)
{
	char text[LEADER_TEXT_MAX];
	int r = component_check_add(l->c, l->spec.guards, is_ready, l);

	if (r == 0)
		r = component_timer_add(l->c, WAIT_NS, WAIT_NS, on_wait, l, &l->timer);
	if (r != 0) {
		component_error_set(err, "cannot wait for the %s: %s", l->spec.guards, strerror(-r));
		return r;
	}
	snprintf(text, sizeof text, "waiting for the %s", l->spec.guards);
	component_log(l->c, COMPONENT_LOG_INFO, text, "reason", l->reason.text, NULL);
	return 0;
}

/* The first try is made here, so that what cannot be locked is a fault of the start. */
static int
try(struct leader *l, struct component_error *err)
{
	int r = locks_find(l, err);

	if (r != 0)
		return r;
	l->state = STANDBY;
	r = step(l);
	if (r == -EBUSY && !l->options.elect && l->spec.wait)
		return stand_by(l, err);
	if (r == 0 || (r == -EBUSY && l->options.elect))
		return l->options.elect ? elect(l, err) : 0;
	*err = l->reason;
	locks_release(l);
	return r;
}

int
leader_begin(struct leader *l, const struct component_lead_spec *spec, const struct leader_events *events,
	struct component_error *err)
{
	int r;

	if (l->begun) {
		component_error_set(err, "component '%s' leads twice", component_name(l->c));
		return -EALREADY;
	}
	l->begun = true;
	l->events = *events;
	if (spec != NULL)
		l->spec = *spec;
	leader_figures_init(&l->figures, l->options.elect ? name_of(l) : NULL);
	if (l->spec.guards == NULL)
		l->spec.guards = "lock";
	l->state = WON;
	if (l->options.elect || l->spec.always) {
		r = try(l, err);
		if (r != 0)
			return r;
	}
	return state_of(l) == WON ? win(l, err) : 0;
}

bool
leader_has_begun(const struct leader *l)
{
	return l->begun;
}

bool
leader_leads(struct leader *l)
{
	return state_of(l) == LEADING;
}

bool
leader_may(struct leader *l)
{
	if (l->until_ns != INT64_MAX && clock_ns(CLOCK_BOOTTIME) >= l->until_ns) {
		pthread_mutex_lock(&l->mutex);
		while (!l->lost && clock_ns(CLOCK_BOOTTIME) >= l->until_ns)
			pthread_cond_wait(&l->changed, &l->mutex);
		pthread_mutex_unlock(&l->mutex);
	}
	return !l->lost;
}

void
leader_status_of(struct leader *l, struct leader_status *ret)
{
	pthread_mutex_lock(&l->mutex);
	*ret = l->status;
	pthread_mutex_unlock(&l->mutex);
	ret->enabled = l->options.elect;
	snprintf(ret->name, sizeof ret->name, "%s", name_of(l));
}

static void
release(struct leader *l)
{
	bool threaded;

	pthread_mutex_lock(&l->mutex);
	if (l->state == LEADING)
		stopped_leading(l, "stopping");
	if (l->state != LOST)
		l->state = RELEASED;
	l->release = true;
	threaded = l->threaded;
	pthread_cond_broadcast(&l->changed);
	pthread_mutex_unlock(&l->mutex);
	if (!threaded)
		locks_release(l);
}

void
leader_enter(struct leader *l)
{
	l->inside++;
}

void
leader_leave(struct leader *l)
{
	if (atomic_fetch_sub(&l->inside, 1) == 1)
		release(l);
}

/* The thread is left to itself if what it waits for does not end. */
static bool
thread_join(struct leader *l)
{
	struct timespec until = clock_timespec(clock_ns(CLOCK_MONOTONIC) + FREE_NS);
	bool left;

	pthread_mutex_lock(&l->mutex);
	while (l->threaded && pthread_cond_timedwait(&l->changed, &l->mutex, &until) == 0)
		;
	left = l->orphan = l->threaded;
	pthread_mutex_unlock(&l->mutex);
	if (left)
		pthread_detach(l->thread);
	else if (l->has_thread)
		pthread_join(l->thread, NULL);
	return !left;
}

void
leader_free(struct leader *l)
{
	if (l == NULL)
		return;
	/* In a child of fork() the mutex may be held by nobody, and the descriptors are closed already. */
	if (!life_in_child(l->c)) {
		release(l);
		if (!thread_join(l))
			return;
	}
	locks_free(l);
	free(l);
}
