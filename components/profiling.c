/*
 * profiling.c - the part that gives a component --enable-pprof.
 *
 *     rows --> settings --start--> profiling_rows_start()
 *                 |   --USR1---> on, off, on ...
 *                 '---HUP----> what has changed, and nothing else
 *
 * The server itself is profiler/serve's; here it is decided when it runs.
 *
 * What a stranger would get wrong: a reload must not undo what USR1 did an hour
 * ago, so it acts on settings that differ from those last applied, and on no
 * others.  And nothing here may end a daemon that has started: after the start a
 * failure is a log line, and the daemon stays ready.
 *
 * Tests: tests/profiling.t, tests/doors.t.
 */
#include <config.h>

#include "profiling.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <component/ports.h>
#include <component/profiler.h>

#include "debug_pages.h"
#include "profiling_rows.h"

#define REASON_MAX 128 /* bytes with NUL of "off: address in use" */

struct profiling {
	struct component_profiling_rows rows;
	struct debug_pages         pages;
	struct component          *c;
	struct profiling          *next;    /* in the list of all, for profiling_address() */
	char                      *applied; /* profiling_rows_text() of what was last applied */
	struct component_profiling_rows last; /* the same as values, to go back to; see settings_applied() */
	char                       last_address[PROFILING_ADDRESS_MAX];
	char                       off_reason[REASON_MAX]; /* "", or why it is off although enabled */
};

/* Components of this process that have the part: usually one. */
static pthread_mutex_t   all_lock = PTHREAD_MUTEX_INITIALIZER;
static struct profiling *all;

bool
profiling_address(const struct component *c, char *buf, size_t size)
{
	struct profiling *p;
	bool              is_wanted = false;

	pthread_mutex_lock(&all_lock);
	for (p = all; p && p->c != c; p = p->next)
		;
	if (p) {
		profiling_rows_address(&p->rows, buf, size);
		is_wanted = p->rows.enable || profiling_rows_given(&p->rows, "profiling-bind-address") ||
			    profiling_rows_given(&p->rows, "profile-port");
	}
	pthread_mutex_unlock(&all_lock);
	return is_wanted;
}

/*
 * Remembers what is in force now; without memory the next reload restarts it once.
 * The strings of the copy stay readable until the reload after the next.
 */
static void
settings_applied(struct profiling *p)
{
	free(p->applied);
	p->applied = profiling_rows_text(&p->rows);
	profiling_rows_address(&p->rows, p->last_address, sizeof(p->last_address));
	p->last = p->rows;
	p->last.bind_address = p->last_address;
	p->last.resolved = true;
}

static int
server_start(struct profiling *p, bool enable, struct component_error *err)
{
	int r = profiling_rows_start(&p->rows, enable, component_log_write, p->c, err);

	p->off_reason[0] = '\0';
	if (r < 0)
		snprintf(p->off_reason, sizeof(p->off_reason), "off: %s",
			r == -EADDRINUSE ? "address in use" : strerror(-r));
	return r;
}

static void
server_stop(struct profiling *p)
{
	p->off_reason[0] = '\0';
	if (component_profiler_running())
		component_profiler_stop();
}

/* The switch stands in for --enable-pprof; what the row says stays as it is. */
static void
on_usr1(struct component *c, void *arg)
{
	struct profiling      *p = arg;
	struct component_error err = COMPONENT_ERROR_INIT;

	if (component_profiler_running()) {
		server_stop(p);
		component_log(c, COMPONENT_LOG_INFO, "profiling switched off", "by", "USR1", NULL);
	} else if (server_start(p, true, &err) < 0) {
		component_log(c, COMPONENT_LOG_ERROR, err.text, NULL);
	} else {
		component_log(c, COMPONENT_LOG_INFO, "profiling switched on", "by", "USR1", NULL);
	}
}

/* Never unready because of profiling: it says what is the matter, and passes. */
static int
ready(struct component *c, void *arg, struct component_error *err)
{
	const struct profiling *p = arg;

	(void)c;
	if (*p->off_reason)
		component_error_set(err, "%s", p->off_reason);
	return 0;
}

static void
state_free(void *state)
{
	struct profiling *p = state, **at;

	if (!p)
		return;
	pthread_mutex_lock(&all_lock);
	for (at = &all; *at && *at != p; at = &(*at)->next)
		;
	if (*at)
		*at = p->next;
	pthread_mutex_unlock(&all_lock);
	debug_pages_release(&p->pages);
	free(p->applied);
	free(p);
}

static unsigned
default_port(const struct component *c)
{
	const struct component_ports *ports = component_ports_find(component_name(c));
	unsigned                      own = component_spec(c)->profiling_port;

	return own ? own : ports ? ports->profiling : COMPONENT_PORT_DEFAULT;
}

static int
part_init(struct component *c, void **ret_state, struct component_error *err)
{
	struct profiling *p = calloc(1, sizeof(*p));
	int               r;

	if (!p)
		return -ENOMEM;
	p->c = c;
	debug_pages_init(&p->pages, c);
	p->rows.debug_page = debug_pages_answer;
	p->rows.debug_page_arg = &p->pages;
	pthread_mutex_lock(&all_lock);
	p->next = all;
	all = p;
	pthread_mutex_unlock(&all_lock);
	r = profiling_rows_init(&p->rows, component_flags(c), default_port(c), err);
	if (r == 0)
		r = component_check_add(c, "profiling", ready, p);
	if (r == 0)
		r = component_on_signal(c, COMPONENT_SIGNAL_USR1, on_usr1, p);
	if (r < 0)
		state_free(p);
	else
		*ret_state = p;
	return r;
}

/* Would USR1 reach on_usr1()?  In a daemon with signals of its own it would not. */
static bool
usr1_is_ours(const struct component *c)
{
	struct sigaction now;

	return !(component_spec(c)->signals & COMPONENT_SIGNAL_USR1) && sigaction(SIGUSR1, NULL, &now) == 0 &&
		(now.sa_flags & SA_SIGINFO || (now.sa_handler != SIG_DFL && now.sa_handler != SIG_IGN));
}

static void
say_off(struct profiling *p)
{
	char address[PROFILING_ADDRESS_MAX];

	profiling_rows_address(&p->rows, address, sizeof(address));
	if (p->rows.enable)
		component_log(p->c, COMPONENT_LOG_WARNING, "profiling is enabled but its address is 0, which means off; "
			"write an address such as 127.0.0.1:6060", NULL);
	else
		component_log(p->c, COMPONENT_LOG_INFO, usr1_is_ours(p->c) ?
			"profiling is off; turn it on with --enable-pprof, PPROF_BIND_ADDRESS or signal USR1" :
			"profiling is off; turn it on with --enable-pprof or PPROF_BIND_ADDRESS", "address", address, NULL);
}

static int
part_start(struct component *c, void *state, struct component_error *err)
{
	struct profiling      *p = state;
	struct component_error why = COMPONENT_ERROR_INIT;
	int                    r;

	settings_applied(p);
	if (!profiling_rows_wanted(&p->rows)) {
		say_off(p);
		return 0;
	}
	r = server_start(p, p->rows.enable, &why);
	if (r < 0 && p->rows.on_error == PROFILING_ON_ERROR_WARN) {
		component_log(c, COMPONENT_LOG_WARNING, why.text, NULL);
		return 0;
	}
	if (r < 0)
		component_error_set(err, "%s", why.text);
	return r;
}

/* Another server: the old one first, since they may want the same port.  When the
 * new one cannot be had, the old one comes back. */
static int
server_replace(struct profiling *p, struct component_error *err)
{
	bool was_running = component_profiler_running();
	int  r;

	server_stop(p);
	if (!profiling_rows_wanted(&p->rows))
		return 0;
	r = server_start(p, p->rows.enable, err);
	if (r < 0 && was_running &&
	    profiling_rows_start(&p->last, p->last.enable, component_log_write, p->c, NULL) == 0) {
		p->off_reason[0] = '\0';
		component_log(p->c, COMPONENT_LOG_WARNING, "profiles are served with the settings of before", NULL);
	}
	return r;
}

static int
part_reload(struct component *c, void *state, struct component_error *err)
{
	struct profiling *p = state;
	char             *now = profiling_rows_text(&p->rows);
	bool              changed = !now || !p->applied || strcmp(now, p->applied) != 0;
	int               r = 0;

	(void)c;
	free(now);
	if (changed) {
		r = server_replace(p, err);
	} else if (component_profiler_running()) {
		r = component_profiler_reload(err);
		if (p->rows.heap_rate != p->last.heap_rate && r == 0)
			r = component_profiler_set_heap_rate(p->rows.heap_rate);
		if (p->rows.mutex_fraction != p->last.mutex_fraction && r == 0)
			r = component_profiler_set_mutex_fraction(p->rows.mutex_fraction);
		if (p->rows.block_rate != p->last.block_rate && r == 0)
			r = component_profiler_set_block_rate(p->rows.block_rate);
	}
	/* What failed is tried again by the next reload. */
	if (r == 0)
		settings_applied(p);
	return r;
}

static void
part_stop(struct component *c, void *state)
{
	(void)c;
	server_stop(state);
}

const struct component_part *
component_profiling(void)
{
	static const struct component_part part = {
		.size = sizeof(part),
		.name = "profiling",
		.init = part_init,
		.start = part_start,
		.reload = part_reload,
		.stop = part_stop,
		.free = state_free,
		.last_to_stop = true,
	};

	return &part;
}
