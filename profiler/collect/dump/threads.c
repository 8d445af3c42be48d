/*
 * threads.c - a dump of all threads: read quietly, signalled only where it must be.
 *
 *     list_all()     who is there
 *     dump/quiet.c   each is read; those that were not: once more
 *     dump/signal.c  a signal to the rest, all at once
 *                    who did not answer: name and state
 *     dump/locks.c   who waits for whom, if that is asked for
 *
 * Who has not run since the last dump is where it was then (dump/previous.c).
 *
 * Why: a signal ends epoll_wait(), poll() and nanosleep() with EINTR whatever
 * SA_RESTART says, and wakes thousands of threads for one look at them.
 *
 * What a stranger would get wrong:
 * - Threads of the library block all signals, so they are never sent one; one that
 *   runs just now is looked at again a little later.
 * - A thread that ends meanwhile still stands in /proc for a moment.  It is no thread
 *   any more, and left out: an idle process has as many in each dump.
 * - A signal runs our handler, whose system calls a seccomp filter may not know: threads
 *   that the program has put under one of its own are not signalled.
 * - A thread's name is read after its stack, or it may be the one it had before it came
 *   there.
 * - The lock is ours alone, but a dump must come to its end when everything hangs: it
 *   is waited for so long and no longer.
 *
 * Tests: tests/threads/thousand_blocked.t, tests/threads/goroutine.t, tests/threads/test_running_threads.c.
 */
#include <config.h>

#include "threads.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "collector.h"
#include "fork.h"
#include "hidden_frames.h"
#include "labels.h"
#include "labels/thread.h"
#include "locks.h"
#include "our_fd.h"
#include "our_thread.h"
#include "pages.h"
#include "previous.h"
#include "proc_self.h"
#include "quiet.h"
#include "remote.h"
#include "seccomp.h"
#include "signal.h"
#include "sort.h"
#include "stack_table.h"
#include "threads_known.h"
#include "unwind.h"

#define OWN_TRIES     500       /* looks at those of ours that run, at all of them each time, after ... */
#define OWN_PAUSE_NS  1000000L
#define LOCK_SECONDS  20        /* other dumps are waited for: a second each at worst */
#define LOCK_PAUSE_NS 2000000L  /* between two looks whether that one is done */
#define MINUTE_NS     60000000000LL
#define THREADS_FIRST ((size_t)256)
#define PCS_FIRST     ((size_t)4096)
#define SEEN          4096 /* a power of two: distinct stacks that are told apart */
#define LIST_TRIES    3
#define NAMED_TRIES   500       /* looks whether all of ours have their names, each after ... */
#define NAMED_PAUSE_NS 1000000L

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int64_t
monotonic_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

int64_t (*threads_clock_ns)(void) = monotonic_ns;

/* ---- the memory of a dump: its threads, and their stacks, equal ones once ----
 *
 *     stack --hash--> seen before in this dump? the same words : behind the others
 *
 * Thousands of threads wait at few places, so most stacks are there already.  What was seen is one
 * static table, under the lock of dumps; a dump that is done needs it no more.
 */

static struct {
	uint32_t first, count; /* count 0: none */
} seen[SEEN];

static void
stacks_begin(void)
{
	memset(seen, 0, sizeof(seen));
}

static int
thread_add(struct dump *d, int32_t tid)
{
	void *p;

	if (d->count == THREADS_MAX)
		return 0;
	if (d->count == d->room) {
		p = pages_grow(d->threads, &d->room, THREADS_FIRST, sizeof(*d->threads));
		if (!p)
			return -ENOMEM;
		d->threads = p;
	}
	d->threads[d->count++] = (struct dump_thread){
		.tid = tid, .syscall = DUMP_NO_SYSCALL, .how = DUMP_SILENT };
	return 0;
}

int
threads_dump_append(struct dump *d, const uintptr_t *pcs, uint32_t count, uint32_t *ret_first)
{
	void *p;

	while (d->pc_room - d->pc_count < count) {
		p = pages_grow(d->pcs, &d->pc_room, PCS_FIRST, sizeof(*d->pcs));
		if (!p)
			return -ENOMEM;
		d->pcs = p;
	}
	*ret_first = (uint32_t)d->pc_count;
	memcpy(d->pcs + d->pc_count, pcs, count * sizeof(*pcs));
	d->pc_count += count;
	return 0;
}

static size_t
stack_hash(const uintptr_t *pcs, unsigned count)
{
	uint64_t h = count;

	for (unsigned i = 0; i < count; i++)
		h = (h ^ pcs[i]) * 0x9e3779b97f4a7c15ULL;
	return (size_t)(h >> 40) % SEEN;
}

static int
stack_add(struct dump *d, struct dump_thread *t, const uintptr_t *pcs)
{
	size_t slot = stack_hash(pcs, t->count);
	int    err;

	if (t->count > 0 && seen[slot].count == t->count &&
	    memcmp(d->pcs + seen[slot].first, pcs, t->count * sizeof(*pcs)) == 0) {
		t->first = seen[slot].first;
		return 0;
	}
	err = threads_dump_append(d, pcs, t->count, &t->first);
	if (err) {
		t->count = 0;
		return err;
	}
	seen[slot].first = t->first;
	seen[slot].count = t->count;
	return 0;
}

/* ---- who is there: each thread once, by ascending id ----
 *
 * Listing a folder of /proc whose entries vanish may skip others: the number of links says how many
 * there should be.  One of ours that has no name yet would be taken for the daemon's: it is waited for.
 */

struct listing {
	struct dump *dump;
	int          err;
};

static void
on_thread(void *arg, pid_t tid)
{
	struct listing *l = arg;

	if (!l->err)
		l->err = thread_add(l->dump, tid);
}

static void
on_count(void *arg, pid_t tid)
{
	(void)tid;
	++*(size_t *)arg;
}

size_t
threads_count(void)
{
	struct stat st;
	size_t      n = 0;
	int         fd = proc_self_tasks();

	if (fd < 0)
		proc_self_threads(on_count, &n);
	else if (fstat(fd, &st) == 0 && st.st_nlink > 2)
		n = st.st_nlink - 2;
	our_fd_close(fd);
	return n;
}

/* The kernel lists by age, and its numbers wrap. */
static bool
list_is_before(const struct dump_thread *a, const struct dump_thread *b)
{
	return a->tid < b->tid;
}

HEAP_SORT(list_sort, struct dump_thread, list_is_before)

/* Each thread once. */
static void
list_unique(struct dump *d)
{
	size_t to = 0;

	for (size_t i = 0; i < d->count; i++)
		if (to == 0 || d->threads[to - 1].tid != d->threads[i].tid)
			d->threads[to++] = d->threads[i];
	d->count = to;
}

static int
list(struct dump *d)
{
	struct listing l = { .dump = d };
	int            err = 0;

	for (int i = 0; i < LIST_TRIES; i++) {
		d->count = 0;
		err = proc_self_threads(on_thread, &l);
		if (err || l.err || d->count >= threads_count())
			break;
	}
	list_sort(d->threads, d->count);
	list_unique(d);
	return err ? err : l.err;
}

/* Once all threads of ours have their names.  Under a load that gives them no CPU for so
 * long, a dump with one too many is better than none. */
static int
list_all(struct dump *d)
{
	const struct timespec pause = { 0, NAMED_PAUSE_NS };

	for (int i = 0; i < NAMED_TRIES; i++) {
		unsigned made = our_threads_made();
		int      err;

		if (our_threads_named() == made) {
			err = list(d);
			if (err || our_threads_made() == made)
				return err;
		}
		nanosleep(&pause, NULL);
	}
	return list(d);
}

/* ---- one after another, quietly ---- */

struct work {
	struct dump *dump;
	struct quiet quiet;
	pid_t        self;
	unsigned     want; /* THREADS_OWN, ... */
	int64_t      now_ns;
	size_t       unread;
	struct threads_copies *copies; /* for libunwind */
	uintptr_t    pcs[STACK_FRAMES_MAX];
};

static void
forget(struct dump_thread *t)
{
	t->tid = 0;
	labels_unref(t->labels);
	t->labels = 0;
}

static __attribute__((noinline)) void
read_self(struct work *w, struct dump_thread *t)
{
	struct unwind_regs regs = UNWIND_REGS_HERE;
	int                truncated = 0;

	t->count = hidden_frames_drop(w->pcs, unwind_capture(&regs, w->pcs, STACK_FRAMES_MAX, &truncated));
	t->truncated = truncated;
	t->how = DUMP_SELF;
	t->labels = labels_here();
	stack_add(w->dump, t, w->pcs);
}

/* Once; what could not be read stays silent for now, if with the leaf side of its stack. */
static enum quiet_result
read_one(struct work *w, struct dump_thread *t)
{
	const struct kept *k = w->want & THREADS_KEEP ? dump_previous_find(t->tid) : NULL;
	const uintptr_t   *pcs = w->pcs;
	enum quiet_result  r;

	/* libunwind wants the stack itself. */
	r = quiet_read(&w->quiet, t, k && !w->copies->bytes ? &k->mark : NULL, w->pcs, STACK_FRAMES_MAX);
	t->since_ns = r == QUIET_READ && k && quiet_same(&k->mark, &t->mark) ? k->since_ns : w->now_ns;
	if (r == QUIET_UNMOVED) {
		pcs = dump_previous_pcs(k);
		t->count = k->count;
		t->syscall = k->syscall;
		t->futex = k->futex;
		t->since_ns = k->since_ns;
		r = QUIET_READ;
	} else if (r == QUIET_READ || r == QUIET_UNKNOWN) {
		threads_copies_add(w->copies, &w->quiet, t->tid);
		t->count = hidden_frames_drop(w->pcs, t->count);
	}
	if (r == QUIET_READ && stack_add(w->dump, t, pcs) == 0) {
		t->how = DUMP_QUIET;
		t->labels = labels_of(t->tid);
	} else if (r == QUIET_GONE || r == QUIET_KERNEL)
		forget(t);
	else if (r != QUIET_UNKNOWN || stack_add(w->dump, t, pcs) != 0)
		t->count = 0;
	return r;
}

/* Its name, where that is asked for. */
static void
name_one(struct work *w, struct dump_thread *t)
{
	if (t->tid && (w->want & THREADS_NAMES) && !quiet_name(&w->quiet, t))
		forget(t);
}

/* One look at each of ours that is not read yet; true: another one may read more. */
static bool
look_at_own(struct work *w)
{
	bool again = false;

	for (size_t i = 0; i < w->dump->count; i++) {
		struct dump_thread *t = &w->dump->threads[i];
		enum quiet_result   r;

		if (!t->own || !t->tid || t->how != DUMP_SILENT)
			continue;
		r = read_one(w, t);
		if (r == QUIET_UNKNOWN && t->count > 0) { /* there will be no more of it */
			t->how = DUMP_QUIET;
			t->labels = labels_of(t->tid);
		}
		if (r == QUIET_DENIED || r == QUIET_UNKNOWN)
			continue;
		if (t->tid && t->how == DUMP_SILENT && !quiet_state(&w->quiet, t->tid))
			forget(t);
		again |= t->tid && t->how == DUMP_SILENT;
	}
	return again;
}

/* Ours are never signalled: soon they wait again.  They are waited for together. */
static void
read_own(struct work *w)
{
	const struct timespec pause = { 0, OWN_PAUSE_NS };

	for (int i = 0; i < OWN_TRIES && look_at_own(w); i++)
		nanosleep(&pause, NULL);
}

static void
read_quietly(struct work *w)
{
	struct dump *d = w->dump;
	size_t       unknown = 0;

	for (size_t i = 0; i < d->count; i++) {
		struct dump_thread *t = &d->threads[i];

		t->own = our_thread_has(t->tid);
		if (t->own && !(w->want & THREADS_OWN)) {
			forget(t);
			continue;
		}
		if (t->tid == w->self)
			read_self(w, t);
		else
			unknown += read_one(w, t) == QUIET_UNKNOWN;
		name_one(w, t);
	}
	/* An object may have been loaded since the tables were made. */
	if (unknown)
		unwind_refresh();
	for (size_t i = 0; i < d->count; i++) {
		struct dump_thread *t = &d->threads[i];

		if (!t->tid || t->how != DUMP_SILENT || t->own)
			continue;
		if (read_one(w, t) == QUIET_READ)
			name_one(w, t);
		w->unread += t->tid && t->how == DUMP_SILENT;
	}
	read_own(w);
}

/* ---- the rest, by a signal ---- */

static void
take_answer(struct work *w, struct threads_slot *s)
{
	struct dump_thread *t = &w->dump->threads[s->index];
	int                 truncated;

	if (s->answer != THREADS_ANSWERED)
		return;
	truncated = s->truncated;
	t->count = hidden_frames_drop(s->pcs, unwind_prove(s->pcs, s->count, &truncated));
	t->truncated = truncated;
	t->handler_ns = s->took_ns;
	t->how = DUMP_SIGNALLED;
	t->labels = s->labels;
	s->labels = 0;
	stack_add(w->dump, t, s->pcs);
	quiet_name(&w->quiet, t); /* one that has ended since keeps what was read */
}

/* Who is there to be asked, and what it was doing before the signal: false, nobody. */
static bool
may_be_signalled(struct work *w, struct dump_thread *t)
{
	if (!t->tid || t->how != DUMP_SILENT || t->own)
		return false;
	t->state = quiet_state(&w->quiet, t->tid);
	if (!t->state) {
		forget(t);
		return false;
	}
	if (t->state == 'R') { /* it was blocked when it was read */
		t->syscall = DUMP_NO_SYSCALL;
		t->futex = (struct dump_futex){ 0 };
	}
	t->filtered = seccomp_thread(t->tid);
	w->dump->filtered += t->filtered;
	return !t->filtered;
}

static int
read_by_signal(struct work *w)
{
	struct threads_request *q;
	struct threads_slot    *slots;
	size_t                  n = 0;
	int                     err;

	if (w->unread == 0)
		return 0;
	err = threads_request_new(w->unread, &q);
	if (err)
		return err;
	slots = threads_request_slots(q);
	for (size_t i = 0; i < w->dump->count; i++) {
		struct dump_thread *t = &w->dump->threads[i];

		if (!may_be_signalled(w, t))
			continue;
		slots[n].tid = t->tid;
		slots[n++].index = (uint32_t)i;
	}
	threads_request_cut(q, n);
	if (threads_request_run(q) == 0)
		for (size_t i = 0; i < n; i++)
			take_answer(w, &slots[i]);
	threads_request_free(q);
	return 0;
}

/* ---- the result ---- */

/* Who is gone goes; the thread that dumps comes first. */
static void
tidy(struct work *w)
{
	const struct collector *maker = COLLECTOR_WITH(creator);
	struct dump            *d = w->dump;
	size_t                  to = 0;

	for (size_t i = 0; i < d->count; i++) {
		struct dump_thread *t = &d->threads[i];

		if (t->tid && t->how == DUMP_SILENT && !(t->state = quiet_state(&w->quiet, t->tid)))
			forget(t);
		if (!t->tid)
			continue;
		if (t->how == DUMP_SILENT) { /* also without a stack they say whose work hangs */
			t->labels = labels_of(t->tid);
			quiet_name(&w->quiet, t);
		}
		if (t->how == DUMP_SILENT && t->count > 0)
			t->how = DUMP_QUIET; /* part of a stack is better than none */
		d->quiet += t->how == DUMP_QUIET;
		d->signalled += t->how == DUMP_SIGNALLED;
		d->silent += t->how == DUMP_SILENT;
		t->creator = maker ? maker->creator(t->tid) : 0;
		if (t->how == DUMP_QUIET && w->now_ns > t->since_ns)
			t->minutes = (uint32_t)((w->now_ns - t->since_ns) / MINUTE_NS);
		d->threads[to++] = *t;
	}
	d->count = to;
	if (w->want & THREADS_LOCKS)
		locks_find(d, &w->quiet, w->want & THREADS_NAMES);
	if (w->want & THREADS_KEEP)
		dump_previous_take(d);
	for (size_t i = 1; i < d->count; i++) {
		struct dump_thread t = d->threads[i];

		if (t.how != DUMP_SELF)
			continue;
		memmove(d->threads + 1, d->threads, i * sizeof(t));
		d->threads[0] = t;
		break;
	}
}

static int
collect(struct dump *d, unsigned want, struct threads_copies *copies)
{
	struct work w = { .dump = d, .want = want, .copies = copies, .self = (pid_t)syscall(SYS_gettid), .now_ns = threads_clock_ns() };
	int         err;

	err = quiet_open(&w.quiet);
	if (err)
		return err;
	seccomp_look();
	stacks_begin();
	err = list_all(d);
	if (!err) {
		read_quietly(&w);
		read_by_signal(&w); /* no memory: those stay silent */
		tidy(&w);
	}
	quiet_close(&w.quiet);
	return err;
}

/*
 * By a clock that nobody sets.  pthread_mutex_clocklock() would say it, but
 * thread sanitizer does not know that one and reports the unlock.
 */
static int
take_turn(void)
{
	const struct timespec pause = { .tv_nsec = LOCK_PAUSE_NS };
	int64_t               until = clock_ns(CLOCK_MONOTONIC) + LOCK_SECONDS * CLOCK_NS_PER_S;

	while (pthread_mutex_trylock(&lock)) {
		if (clock_ns(CLOCK_MONOTONIC) >= until)
			return -EBUSY;
		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
	}
	return 0;
}

/* Deadlocks, then who dumps, then the others. */
static int
rank(unsigned want, const struct dump_thread *t)
{
	if (t->lock.cycle > 0)
		return 0;
	return t->own && want & THREADS_OWN_LAST ? 3 : t->how == DUMP_SELF ? 1 : 2;
}

static bool
order_is_before(unsigned want, const struct dump_thread *a, const struct dump_thread *b)
{
	int rank_a = rank(want, a), rank_b = rank(want, b);

	if (rank_a != rank_b)
		return rank_a < rank_b;
	return a->lock.cycle != b->lock.cycle ? a->lock.cycle < b->lock.cycle : a->tid < b->tid;
}

HEAP_SORT_WITH(order_sort, struct dump_thread, unsigned, order_is_before)

int
threads_dump_of(struct dump *ret, unsigned want)
{
	struct threads_copies copies = { 0 };
	struct dump           d = { 0 };
	int                   err, cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	err = take_turn();
	if (err) {
		pthread_setcancelstate(cancel, NULL);
		return err;
	}
	if (want & THREADS_REMOTE)
		threads_copies_open(&copies);
	unwind_lend();
	err = collect(&d, want, &copies);
	unwind_lend_end();
	pthread_mutex_unlock(&lock);
	threads_copies_walk(&copies, &d);
	if (d.cycles > 0 || want & THREADS_OWN_LAST)
		order_sort(d.threads, d.count, want);
	pthread_setcancelstate(cancel, NULL);
	if (err) {
		dump_release(&d);
		return err;
	}
	*ret = d;
	return 0;
}

int
threads_dump(struct dump *ret, bool own)
{
	return threads_dump_of(ret, (own ? THREADS_OWN : 0) | THREADS_NAMES);
}

void
threads_forget(void)
{
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	if (take_turn() == 0) {
		dump_previous_drop();
		pthread_mutex_unlock(&lock);
	}
	pthread_setcancelstate(cancel, NULL);
}

static void
forked(void)
{
	static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

	lock = fresh;
	locks_forked();
	dump_previous_forked();
	threads_known_forked();
	threads_signal_forked();
}

FORK_SLOT(FORK_DUMPS, locks_prepare, NULL, forked);
