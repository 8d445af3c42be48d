/*
 * profiling.c - the part that gives a component --enable-pprof.
 *
 *     rows --> settings --start--> profiling_rows_start()
 *                 |   --USR1---> on, off, on ...
 *                 |   --file---> on, off, or as the rows say
 *                 '---HUP----> what has changed, and nothing else, in place
 *
 * The server itself is profiler/serve's; here it is decided when it runs.  A stop waits
 * for clients that read slowly, so it runs on a thread of its own, and the loop goes on;
 * "then" is what follows it, on the loop.
 *
 * What a stranger would get wrong: a reload must not undo what USR1 did an hour
 * ago, so it acts on settings that differ from those last applied, and on no
 * others.  The file of --profiling-enable-file (enable_file.c) stands above --enable-pprof
 * as long as it says anything, and switches when it says another thing: its word is
 * kept beside the row (rows.said), so that a reload compares like with like.  And
 * nothing here may end a daemon that has started: after the start a failure is a log
 * line, and the daemon stays ready.
 *
 * Tests: tests/components/profiling.t, tests/components/enable_file.t, tests/components/entry_points.t.
 */
#include <config.h>

#include "profiling.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <component/ports.h>
#include <component/profiler.h>

#include "fork.h"
#include "our_lock.h"
#include "our_thread.h"
#include "process_start.h"
#include "profiling_rows.h"
#include "record.h"
#include "status_pages.h"

#define REASON_MAX    128 /* bytes with NUL of "off: address in use" */
#define POST_AGAIN_MS 10

struct profiling {
	struct component_profiling_rows rows;
	struct status_pages         pages;
	struct enable_file         file;
	struct component          *c;
	struct profiling          *next;    /* in the list of all, for profiling_address() */
	char                      *applied; /* profiling_rows_text() of what was last applied */
	struct component_profiling_rows last; /* the same as values, to go back to; see settings_applied() */
	char                       last_address[PROFILING_ADDRESS_MAX];
	bool                       enabled; /* as the server that runs was started: by the row, or by USR1 */
	char                       off_reason[REASON_MAX]; /* "", or why it is off although enabled */
	pthread_t                  stopper;
	pid_t                      stopper_pid; /* of the process that has it; 0: none */
	void                     (*then)(struct profiling *p); /* or NULL */
	bool                       by_file; /* then is what the file has asked for */
	bool                       holding; /* the component, until the stopper has ended */
	struct record_file         off;     /* while nothing is served, which has a record of its own */
	pid_t                      off_pid; /* of the process that wrote it */
	bool                       keeps;   /* record_keep(), until that is written */
};

/* Components of this process that have the part: usually one. */
static pthread_mutex_t   all_lock = PTHREAD_MUTEX_INITIALIZER;
static struct profiling *all;

static void
fork_prepare(void)
{
	pthread_mutex_lock(&all_lock);
}

static void
fork_end(void)
{
	pthread_mutex_unlock(&all_lock);
}

FORK_SLOT(FORK_PARTS, fork_prepare, fork_end, fork_end);

bool
profiling_address(const struct component *c, char *buf, size_t size)
{
	sigset_t          mask;
	struct profiling *p;
	bool              is_wanted = false;

	our_lock_take(&all_lock, &mask);
	for (p = all; p && p->c != c; p = p->next)
		;
	if (p) {
		profiling_rows_address(&p->rows, buf, size);
		is_wanted = p->rows.enable || profiling_rows_given(&p->rows, "profiling-enable-file") ||
			    profiling_rows_given(&p->rows, "profiling-bind-address") ||
			    profiling_rows_given(&p->rows, "profile-port");
	}
	our_lock_release(&all_lock, &mask);
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
	p->last.options.address = p->last_address;
	p->last.resolved = true;
}

static int
server_start(struct profiling *p, bool enable, struct component_error *err)
{
	int r = profiling_rows_start(&p->rows, enable, err);

	p->off_reason[0] = '\0';
	p->enabled = enable;
	if (r < 0)
		snprintf(p->off_reason, sizeof(p->off_reason), "off: %s",
			r == -EADDRINUSE ? "address in use" : strerror(-r));
	return r;
}

static bool
is_stopping(const struct profiling *p)
{
	return p->stopper_pid != 0;
}

static bool
is_on(const struct profiling *p)
{
	return !is_stopping(p) && component_profiler_running();
}

static void
stopper_join(struct profiling *p)
{
	/* A forked child has no such thread. */
	if (p->stopper_pid == getpid())
		pthread_join(p->stopper, NULL);
	p->stopper_pid = 0;
}

/* With a registry, who is off stays in it: componentctl is to find what it could switch on. */
static void
record_follow(struct profiling *p)
{
	struct component_error why = COMPONENT_ERROR_INIT;
	struct record          r = { .url = RECORD_URL_OFF };

	if (p->off_pid != getpid())
		record_forked(&p->off);
	p->off_pid = getpid();
	if (!p->rows.registry || is_stopping(p))
		return;
	record_id_make(program_invocation_short_name, r.id);
	if (component_profiler_running())
		record_leave(&p->off);
	else if (!*p->off.path && record_write(&p->off, &r, &why))
		component_log(p->c, COMPONENT_LOG_WARNING, why.text, NULL);
	record_keep(p->keeps = false);
}

static void
record_end(struct profiling *p)
{
	if (p->keeps)
		record_follow(p); /* of the server's, it takes the name */
	if (p->off_pid == getpid())
		record_remove(&p->off);
}

/* On the loop. */
static void
on_stopped(struct component *c, void *arg)
{
	struct profiling *p = arg;
	void            (*then)(struct profiling *p) = p->then;

	stopper_join(p);
	p->then = NULL;
	if (then)
		then(p);
	if (p->holding) {
		record_end(p);
		component_release(c, component_profiling()->name);
	} else {
		record_follow(p);
	}
	p->holding = false;
}

static void *
run_stopper(void *arg)
{
	struct profiling *p = arg;

	component_profiler_stop();
	while (component_post(p->c, on_stopped, p) == -ENOMEM)
		poll(NULL, 0, POST_AGAIN_MS); /* without it nothing is ever switched on again */
	return NULL;
}

/* Does not wait; then is called when it is off. */
static void
server_stop(struct profiling *p, void (*then)(struct profiling *p))
{
	p->off_reason[0] = '\0';
	p->then = then;
	if (is_stopping(p))
		return;
	record_keep(p->keeps = then && p->rows.registry);
	if (component_profiler_running() && our_thread_start("component-stop", run_stopper, p, &p->stopper) == 0) {
		p->stopper_pid = getpid();
		return;
	}
	component_profiler_stop();
	p->then = NULL;
	if (then)
		then(p);
}

static void
say_switched_off(struct profiling *p)
{
	component_log(p->c, COMPONENT_LOG_INFO, "profiling switched off", "by", "USR1", NULL);
}

static void
switch_on(struct profiling *p)
{
	struct component_error err = COMPONENT_ERROR_INIT;

	if (server_start(p, true, &err) < 0)
		component_log(p->c, COMPONENT_LOG_ERROR, err.text, NULL);
	else
		component_log(p->c, COMPONENT_LOG_INFO, "profiling switched on", "by", "USR1", NULL);
}

static void on_file(struct component *c, void *arg);
static void start_again(struct profiling *p);

/* Of one that is stopping. */
static bool
will_be_off(const struct profiling *p)
{
	return p->then == say_switched_off || (p->then == start_again && !profiling_rows_wanted(&p->rows));
}

/* The switch stands in for --enable-pprof; what the row says stays as it is. */
static void
on_usr1(struct component *c, void *arg)
{
	struct profiling *p = arg;

	(void)c;
	p->by_file = false;
	if (is_on(p))
		server_stop(p, say_switched_off);
	else if (is_stopping(p))
		p->then = will_be_off(p) ? switch_on : say_switched_off;
	else
		switch_on(p);
	record_follow(p);
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
status(struct component *c, struct component_status *to, void *arg)
{
	const struct profiling *p = arg;
	char                    url[PROFILING_ADDRESS_MAX] = "";

	(void)c;
	if (is_on(p)) /* else it would wait for the end of a stop */
		component_profiler_url(url, sizeof(url));
	component_status_row(to, "server", "%s", *p->off_reason ? p->off_reason : is_on(p) ? "on" : "off");
	if (*url)
		component_status_row(to, "url", "%s", url);
}

static void
state_free(void *state)
{
	sigset_t          mask;
	struct profiling *p = state, **at;

	if (!p)
		return;
	our_lock_take(&all_lock, &mask);
	for (at = &all; *at && *at != p; at = &(*at)->next)
		;
	if (*at)
		*at = p->next;
	our_lock_release(&all_lock, &mask);
	stopper_join(p);
	enable_file_end(&p->file);
	record_end(p);
	status_pages_release(&p->pages);
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
	sigset_t          mask;
	struct profiling *p = calloc(1, sizeof(*p));
	int               r;

	if (!p)
		return -ENOMEM;
	p->c = c;
	p->off_pid = getpid();
	our_fd_keep(&p->off.fd, -1);
	status_pages_init(&p->pages, c);
	enable_file_init(&p->file, c, on_file, p);
	our_lock_take(&all_lock, &mask);
	p->next = all;
	all = p;
	our_lock_release(&all_lock, &mask);
	r = profiling_rows_init(&p->rows, component_flags(c), default_port(c), err);
	p->rows.options.log = component_log_write;
	p->rows.options.log_arg = c;
	p->rows.options.page = status_pages_answer;
	p->rows.options.page_arg = &p->pages;
	p->rows.options.pages = status_pages_list;
	if (r == 0)
		r = component_check_add(c, "profiling", ready, p);
	if (r == 0)
		r = component_status_add(c, "Profiling", status, p);
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
	if (profiling_rows_enabled(&p->rows))
		component_log(p->c, COMPONENT_LOG_WARNING, "profiling is enabled but its address is 0, which means off; "
			"write an address such as 127.0.0.1:6060", NULL);
	else
		component_log(p->c, COMPONENT_LOG_INFO, usr1_is_ours(p->c) ?
			"profiling is off; turn it on with --enable-pprof, PPROF_BIND_ADDRESS or signal USR1" :
			"profiling is off; turn it on with --enable-pprof or PPROF_BIND_ADDRESS", "address", address,
			p->file.path ? "file" : NULL, p->file.path, NULL);
}

/* With --profiling-on-error=warn, or by the file alone, it is no fault that nothing runs. */
static int
start_wanted(struct profiling *p, struct component_error *err)
{
	struct component_error why = COMPONENT_ERROR_INIT;
	int                    r = server_start(p, profiling_rows_enabled(&p->rows), &why);

	if (r < 0 && !profiling_rows_is_fatal(&p->rows)) {
		component_log(p->c, COMPONENT_LOG_WARNING, why.text, NULL);
		return 0;
	}
	if (r < 0)
		component_error_set(err, "%s", why.text);
	return r;
}

/* On TCP, and not on the debug socket alone. */
static bool
serves(const struct profiling *p)
{
	return is_on(p) && p->enabled;
}

static void
say_by_file(struct profiling *p)
{
	p->by_file = false;
	component_log(p->c, COMPONENT_LOG_INFO, serves(p) ? "profiling switched on" : "profiling switched off",
		"by", p->file.path ? p->file.path : "--profiling-enable-file", p->file.key ? "key" : NULL, p->file.key, NULL);
}

static int
part_start(struct component *c, void *state, struct component_error *err)
{
	struct profiling *p = state;
	int               r = 0;

	(void)c;
	process_started_ns(); /* kept for the pages, since the daemon may leave /proc behind */
	enable_file_follow(&p->file, p->rows.enable_file);
	p->rows.said = p->file.word;
	settings_applied(p);
	if (profiling_rows_wanted(&p->rows))
		r = start_wanted(p, err);
	if (r < 0)
		enable_file_end(&p->file);
	else if (profiling_rows_enabled(&p->rows) != p->rows.enable && serves(p) != p->rows.enable)
		say_by_file(p);
	else if (!profiling_rows_wanted(&p->rows))
		say_off(p);
	if (r >= 0)
		record_follow(p);
	return r;
}

/* The old server is gone. */
static void
start_again(struct profiling *p)
{
	struct component_error err = COMPONENT_ERROR_INIT;

	if (profiling_rows_wanted(&p->rows) && server_start(p, profiling_rows_enabled(&p->rows), &err) < 0) {
		component_log(p->c, COMPONENT_LOG_ERROR, err.text, NULL);
		free(p->applied); /* the next reload tries again */
		p->applied = NULL;
	}
	if (p->by_file)
		say_by_file(p);
}

/* All or nothing, and no window ends, be it for another address. */
static int
server_change(struct profiling *p, bool enable, struct component_error *err)
{
	int r = profiling_rows_change(&p->rows, enable, err);

	if (r < 0)
		return r;
	r = profiling_rows_change_rates(&p->last, &p->rows);
	if (r < 0) {
		component_error_set(err, "the sampling rates cannot be changed: %s", strerror(-r));
		profiling_rows_change_rates(&p->rows, &p->last);
		profiling_rows_change(&p->last, p->enabled, NULL);
	}
	if (r == 0)
		p->enabled = enable;
	return r;
}

/* Have the rows, and what the file says, changed since they were last applied? */
static bool
has_changed(const struct profiling *p)
{
	char *now = profiling_rows_text(&p->rows);
	bool  changed = !now || !p->applied || strcmp(now, p->applied) != 0;

	free(now);
	return changed;
}

/* switched: whatever USR1 has done, it is to be as the rows say now. */
static int
server_reload(struct profiling *p, bool changed, bool switched, struct component_error *err)
{
	bool is_wanted = profiling_rows_wanted(&p->rows), enable = profiling_rows_enabled(&p->rows);
	int  r = 0;

	if (!is_wanted)
		p->off_reason[0] = '\0';
	/* What USR1 has switched on stays on, unless the row has changed, or nothing is left that is wanted. */
	if (is_on(p) && (is_wanted || !changed))
		r = server_change(p, switched || enable != profiling_rows_enabled(&p->last) ? enable : p->enabled, err);
	else if (changed && (is_on(p) || is_stopping(p)))
		server_stop(p, start_again);
	else if (!is_on(p) && !is_stopping(p) && is_wanted && (changed || *p->off_reason))
		r = start_wanted(p, err);
	if (r == -EBADF || r == -ECANCELED) { /* the program has closed its descriptors */
		server_stop(p, start_again);
		r = 0;
	}
	return r;
}

/*
 * The file says another thing than before.  A word of its own counts whatever USR1 has done; where
 * it has none any more, only what the rows say otherwise than it did is switched.
 */
static void
on_file(struct component *c, void *arg)
{
	struct profiling      *p = arg;
	struct component_error err = COMPONENT_ERROR_INIT;
	bool                   was_on = serves(p), speaks = p->file.word != ENABLE_NONE, changed;

	p->rows.said = p->file.word;
	changed = speaks || has_changed(p);
	if (server_reload(p, changed, speaks, &err) == 0)
		settings_applied(p);
	else
		component_log(c, COMPONENT_LOG_ERROR, err.text, NULL);
	p->by_file = changed && is_stopping(p);
	if (!is_stopping(p) && serves(p) != was_on)
		say_by_file(p);
	else if (p->rows.said == ENABLE_ON && !profiling_rows_wanted(&p->rows))
		say_off(p);
	record_follow(p);
}

static int
part_reload(struct component *c, void *state, struct component_error *err)
{
	struct profiling *p = state;
	char              off_reason[REASON_MAX];
	bool              enabled = p->enabled;
	int               r;

	strcpy(off_reason, p->off_reason);
	r = server_reload(p, has_changed(p), false, err);
	/* What failed is tried again by the next reload; until then all is as before. */
	if (r < 0) {
		strcpy(p->off_reason, off_reason);
		p->enabled = enabled;
		return r;
	}
	settings_applied(p);
	enable_file_follow(&p->file, p->rows.enable_file);
	if (p->file.word != p->rows.said)
		on_file(c, p);
	record_follow(p);
	return 0;
}

static void
part_stop(struct component *c, void *state)
{
	struct profiling *p = state;

	enable_file_end(&p->file);
	record_end(p);
	server_stop(p, NULL);
	if (is_stopping(p))
		p->holding = component_hold(c, component_profiling()->name) == 0;
	if (!p->holding)
		stopper_join(p); /* nobody waits for it otherwise */
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
