/*
 * live_table.c - componentctl top: what is hottest, again each second.
 *
 *     fetching thread: window, window, window ... ──▶ pipe ──▶ main: reads, draws; keys and signals meanwhile
 *
 * The next window begins when the one before has come, and what it shows is made while that one is measured, so
 * that hardly a moment is in none.
 *
 * What a stranger would get wrong:
 * - Signals are blocked in both threads and read, so that the terminal is restored in every way out.
 * - A kind that the server does not have is no reason to end: its sentence is shown, and k goes on.
 * - The thread may be in a window when all is over: the process ends without waiting for it.
 *
 * Tests: tests/componentctl/top.t
 */
#include <config.h>

#include "live_table.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "fetch.h"
#include "live_threads.h"
#include "read.h"
#include "screen.h"
#include "shown.h"
#include "target.h"
#include "top.h"
#include "unserved.h"

#define SECTION    "Top"
#define HEAD_LINES 8  /* of a screen, that are no functions */
#define ROWS_PIPED 10
#define RE_MAX     80

static int64_t     seconds = 1, tables, rows;
static bool        cum;
static const char *token_file, *focus;

/* What k goes through. */
static const struct kind {
	const char *name;
	bool        is_window; /* measured over time; else it is what there is at a moment */
	const char *sample_index;
} kinds[] = {
	{ "profile", true, NULL }, { "heap", false, "inuse_space" }, { "allocs", true, "alloc_space" }, { "block", true, "delay" },
	{ "mutex", true, "delay" }, { "fgprof", true, NULL }, { "goroutine", false, NULL },
};
#define KINDS (sizeof(kinds) / sizeof(*kinds))

/* One window, from the thread that fetches. */
struct window {
	const struct kind     *kind;
	struct fetched         fetched;
	struct component_error err;
	int                    r;
	bool                   is_last; /* there is none behind it */
};

struct live {
	struct target       target;
	_Atomic size_t      kind; /* of kinds, for the next window */
	int                 ends[2]; /* struct window *, one at a time */
	struct screen       screen;
	int                 signals;
	bool                is_paused, shows_threads, is_typing;
	char                re[RE_MAX], typed[RE_MAX];
	struct live_threads threads;
	struct text         table;
	int64_t             shown; /* tables */
};

/* ---- the thread that fetches ---- */

static void
window_take(struct live *l, struct window *w)
{
	char    query[64] = "";
	int64_t length = w->kind->is_window ? seconds : 0;

	if (length)
		snprintf(query, sizeof(query), "seconds=%" PRId64, length);
	if (l->target.pid)
		w->r = unserved_profile(l->target.pid, w->kind->name, length, false, &w->fetched, &w->err);
	else
		w->r = fetch(&l->target, w->kind->name, query, length, false, token_file, &w->fetched, &w->err);
}

/* The program has gone, or was never there; or it does not have what it was first asked for.  Else the next window may be had:
 * somebody else may be taking the only one there is. */
static bool
ends_all(const struct window *w, bool is_first)
{
	bool is_gone = w->r == -ECONNREFUSED || w->r == -EPIPE || w->r == -ESRCH || w->r == -EACCES;

	return w->r < 0 && (is_first || is_gone);
}

static void *
windows(void *arg)
{
	struct live *l = arg;
	bool         is_first = true, is_last, has_waited;

	for (;;) {
		struct window *w = calloc(1, sizeof(*w));

		if (!w)
			return NULL;
		w->kind = &kinds[atomic_load(&l->kind)];
		window_take(l, w);
		is_last = w->is_last = ends_all(w, is_first);
		has_waited = w->kind->is_window && w->r >= 0;
		if (write(l->ends[1], &w, sizeof(w)) != (ssize_t)sizeof(w) || is_last)
			return NULL;
		if (!has_waited)
			sleep((unsigned)seconds);
		is_first = false;
	}
}

/* ---- what is shown ---- */

static void
clock_add(struct text *t)
{
	time_t    now = time(NULL);
	struct tm local;
	char      text[16] = "";

	if (localtime_r(&now, &local))
		strftime(text, sizeof(text), "%H:%M:%S", &local);
	text_add(t, "%s ", text);
}

static void
head_add(const struct live *l, const struct kind *kind, struct text *t)
{
	clock_add(t);
	text_add_visible(t, l->target.word, TEXT_QUOTED_MAX);
	text_add(t, "  %s", l->shows_threads ? "threads" : kind->name);
	if (l->re[0]) {
		text_add(t, "  /");
		text_add_visible(t, l->re, RE_MAX);
	}
	text_add(t, "\n");
}

static int64_t
rows_now(const struct live *l)
{
	unsigned lines = screen_lines();

	if (rows || !l->screen.is_open)
		return rows ? rows : ROWS_PIPED;
	return lines > HEAD_LINES + 1 ? lines - HEAD_LINES : 1;
}

/* 0; or a negative errno with err filled: what came is no profile. */
static int
functions_add(const struct live *l, const struct window *w, struct text *t, struct component_error *err)
{
	const struct view view = { .focus = l->re, .sample_index = w->kind->sample_index, .rows = rows_now(l), .cum = cum,
				   .brief = true };
	struct text       notes = TEXT_INIT;
	struct pprof      p;
	int               r = read_profile(w->fetched.data, w->fetched.size, &p, err);

	if (!r)
		r = read_drop_frames(&p, err);
	if (!r)
		r = top_print(&p, &view, t, &notes, err);
	if (notes.size)
		text_add(t, "%s", notes.data);
	read_release(&p);
	text_release(&notes);
	return r;
}

/* Of the window, or why there is none. */
static void
table_make(struct live *l, const struct window *w)
{
	struct component_error err = COMPONENT_ERROR_INIT;

	text_release(&l->table);
	head_add(l, w->kind, &l->table);
	if (l->shows_threads && l->target.process) {
		if (live_threads_look(&l->threads, l->target.process) == 0)
			live_threads_print(&l->threads, (size_t)rows_now(l), &l->table);
	} else if (l->shows_threads) {
		text_add(&l->table, "threads are shown of a program of this machine; write its number, or an ID that 'componentctl list' shows\n");
	} else if (w->r < 0 || functions_add(l, w, &l->table, &err) < 0) {
		text_add_visible(&l->table, w->r < 0 ? w->err.text : err.text, COMPONENT_ERROR_MAX);
		text_add(&l->table, "\n");
	}
}

static void
draw(struct live *l)
{
	struct text last = TEXT_INIT;

	if (l->is_typing)
		text_add(&last, "only stacks with: %s_", l->typed);
	else
		text_add(&last, "%sq quit  p %s  s sort by %s  / filter  t %s  k %s", l->is_paused ? "PAUSED  " : "",
			l->is_paused ? "go on" : "pause", cum ? "flat" : "cum", l->shows_threads ? "functions" : "threads",
			kinds[(atomic_load(&l->kind) + 1) % KINDS].name);
	screen_draw(l->table.data, l->table.size, text_string(&last));
	text_release(&last);
}

/* ---- keys and signals ---- */

static void
key_typed(struct live *l, char c)
{
	size_t n = strlen(l->typed);

	if (c == '\n' || c == '\r' || c == '\033') {
		if (c != '\033')
			strcpy(l->re, l->typed);
		l->is_typing = false;
	} else if ((c == '\b' || c == 127) && n) {
		l->typed[n - 1] = '\0';
	} else if ((unsigned char)c >= ' ' && c != 127 && n + 1 < RE_MAX) {
		l->typed[n] = c;
		l->typed[n + 1] = '\0';
	}
}

/* False: enough. */
static bool
key(struct live *l, char c)
{
	if (l->is_typing) {
		key_typed(l, c);
		return true;
	}
	switch (c) {
	case 'q': return false;
	case 'p': l->is_paused = !l->is_paused; break;
	case 's': cum = !cum; break;
	case 't': l->shows_threads = !l->shows_threads; break;
	case 'k': atomic_store(&l->kind, (atomic_load(&l->kind) + 1) % KINDS); break;
	case '/':
		l->is_typing = true;
		l->typed[0] = '\0';
		break;
	default: break;
	}
	return true;
}

/* By the signal itself: where no shell could continue us (ssh -t, docker exec -it) the kernel drops it. */
static void
stop(struct live *l)
{
	sigset_t set;

	if (l->screen.is_open)
		screen_suspend(&l->screen);
	sigemptyset(&set);
	sigaddset(&set, SIGTSTP);
	raise(SIGTSTP);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	if (l->screen.is_open)
		screen_resume(&l->screen);
}

/* 0: go on; else the exit status of one that this signal ends. */
static int
signal_take(struct live *l)
{
	struct signalfd_siginfo s;

	if (read(l->signals, &s, sizeof(s)) != (ssize_t)sizeof(s))
		return 0;
	switch (s.ssi_signo) {
	case SIGWINCH: return 0;
	case SIGCONT:
		if (l->screen.is_open)
			screen_resume(&l->screen);
		return 0;
	case SIGTSTP:
		stop(l);
		return 0;
	default: return 128 + (int)s.ssi_signo;
	}
}

/* A window has come.  0: go on; 1: that was the last one; another exit status; or a negative errno. */
static int
window_show(struct live *l, struct component_error *err)
{
	struct window *w;
	int            r = 0;

	if (read(l->ends[0], &w, sizeof(w)) != (ssize_t)sizeof(w))
		return -EIO;
	if (w->is_last) {
		*err = w->err;
		r = w->r;
	} else if (!l->is_paused) {
		table_make(l, w);
		l->shown++;
		if (!l->screen.is_open) {
			printf("%s%s", l->shown > 1 ? "\n" : "", text_string(&l->table));
			r = fflush(stdout) ? 128 + SIGPIPE : 0;
		}
		r = r ? r : tables && l->shown == tables; /* 1 */
	}
	fetch_release(&w->fetched);
	free(w);
	return r;
}

static int
watch(struct live *l, struct component_error *err)
{
	int r = 0;

	while (r == 0) {
		struct pollfd fds[] = { { l->ends[0], POLLIN, 0 }, { l->signals, POLLIN, 0 },
					{ l->screen.is_open ? STDIN_FILENO : -1, POLLIN, 0 } };
		char          c;

		if (l->screen.is_open)
			draw(l);
		if (poll(fds, 3, -1) < 0)
			continue;
		if (fds[1].revents)
			r = signal_take(l);
		if (!r && fds[2].revents && (read(STDIN_FILENO, &c, 1) != 1 || !key(l, c)))
			return 0;
		if (!r && fds[0].revents)
			r = window_show(l, err);
		if (r == 1)
			return 0;
	}
	return r;
}

static int
kind_find(struct live *l, const char *name, struct component_error *err)
{
	for (size_t i = 0; name && i < KINDS; i++)
		if (!strcmp(kinds[i].name, name)) {
			atomic_store(&l->kind, i);
			return 0;
		}
	if (!name)
		return 0;
	component_error_set(err, "'%.80s' is no kind that is shown again and again; write profile, heap, allocs, block, mutex, fgprof or "
		"goroutine", name);
	return -EINVAL;
}

static int
start(struct live *l)
{
	sigset_t  all;
	pthread_t t;

	sigemptyset(&all);
	for (const int *s = (const int[]){ SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP, SIGCONT, SIGPIPE, 0 }; *s; s++)
		sigaddset(&all, *s);
	sigprocmask(SIG_BLOCK, &all, NULL);
	l->signals = signalfd(-1, &all, SFD_CLOEXEC);
	if (l->signals < 0 || pipe(l->ends) < 0)
		return -errno;
	return -pthread_create(&t, NULL, windows, l);
}

static int
run(char **operands, struct component_error *err)
{
	static struct live l; /* the thread goes on after the end */
	int                r = target_find(&l.target, operands[0], err);

	if (!r && l.target.is_file) {
		component_error_set(err, "the target is a file, which does not change; write 'componentctl profile %s'", operands[0]);
		r = -EINVAL;
	}
	if (!r)
		r = kind_find(&l, operands[1], err);
	if (!r)
		r = shown_check("--focus", focus, err);
	if (!r && focus && strlen(focus) >= sizeof(l.re)) {
		component_error_set(err, "--focus is %zu bytes long, and top takes at most %zu; write a shorter one", strlen(focus), sizeof(l.re) - 1);
		r = -EINVAL;
	}
	if (r < 0)
		return r;
	snprintf(l.re, sizeof(l.re), "%s", focus ? focus : "");
	r = start(&l);
	if (r < 0)
		return r;
	screen_open(&l.screen);
	r = watch(&l, err);
	screen_close(&l.screen);
	if (r >= 0) {
		fflush(stdout);
		_exit(r); /* the thread may be in the midst of anything */
	}
	return r;
}

static const struct component_flag flags[] = {
	COMPONENT_FLAG_INT("seconds", &seconds, "How long each window is.", .section = SECTION, .min = 1, .max = 3600, .argument = "N"),
	COMPONENT_FLAG_INT("count", &tables, "After how many tables to end; 0: never.", .section = SECTION, .min = 0, .max = INT32_MAX,
		.argument = "N"),
	COMPONENT_FLAG_INT("top", &rows, "How many functions to show; 0: as many as fit, 10 where nothing limits them.",
		.section = SECTION, .min = 0, .max = INT32_MAX, .argument = "N", .bits = COMPONENT_FLAG_OPTIONAL),
	COMPONENT_FLAG_BOOL("cum", &cum, "Sort by what was measured in a function and what it called.", .section = SECTION),
	COMPONENT_FLAG_STRING("focus", &focus, "Only stacks with a function, file or object that this regular expression finds.",
		.section = SECTION, .argument = "RE"),
	COMPONENT_FLAG_STRING("token-file", &token_file, "File with the server's token in its first line.", .section = SECTION,
		.argument = "FILE"),
	COMPONENT_FLAG_END
};

const struct command top_command = { .name = "top", .operands = "TARGET [KIND]", .least = 1, .most = 2,
	.summary = "Shows the hottest functions, again each second.", .flags = flags, .run = run };
