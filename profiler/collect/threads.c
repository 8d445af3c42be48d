/*
 * threads.c - a dump of all threads: read quietly, signalled only where it must be.
 *
 *     /proc/self/task --> quiet_read() of each --> those that were not read: once more
 *     --> a signal to the rest, all at once --> who did not answer: name and state
 *
 * Who has not run since the last dump is where it was then (threads_kept.c).
 *
 * Why: a signal ends epoll_wait(), poll() and nanosleep() with EINTR whatever
 * SA_RESTART says, and wakes thousands of threads for one look at them.
 *
 * What a stranger would get wrong:
 * - Threads of the library block all signals, so they are never sent one; one that
 *   runs just now is looked at again a little later.
 * - A thread that ends meanwhile still stands in /proc for a moment.  It is no thread
 *   any more, and left out: an idle process has as many in each dump.
 * - A thread's name is read after its stack, or it may be the one it had before it came
 *   there; and one of ours that has no name yet is waited for, being taken for the
 *   daemon's else.
 * - Listing a folder of /proc whose entries vanish may skip others: the number of links
 *   says how many there should be.
 * - The lock is ours alone, but a dump must come to its end when everything hangs: it
 *   is waited for so long and no longer.
 *
 * Tests: tests/threads.t, tests/serve_threads.t.
 */
#include <config.h>

#include "threads.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "cpu_proc.h"
#include "hooks_frames.h"
#include "labels_thread.h"
#include "own_thread.h"
#include "stack_table.h"
#include "threadcreate.h"
#include "threads_kept.h"
#include "threads_parts.h"
#include "threads_quiet.h"
#include "threads_remote.h"
#include "threads_signal.h"
#include "unwind.h"

#define LIST_TRIES    3
#define OWN_TRIES     500       /* looks at a thread of ours that runs, each after ... */
#define OWN_PAUSE_NS  1000000L
#define LOCK_SECONDS  20        /* other dumps are waited for: a second each at worst */
#define LOCK_PAUSE_NS 2000000L  /* between two looks whether that one is done */
#define THREADS_FIRST ((size_t)256)
#define PCS_FIRST     ((size_t)4096)
#define SEEN          4096      /* a power of two: distinct stacks that are told apart */
#define OWN_NAME      "component-"
#define MINUTE_NS     60000000000LL

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int64_t
monotonic_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

int64_t (*threads_clock_ns)(void) = monotonic_ns;

/* ---- arrays that grow ---- */

static void *
grow(void *p, size_t *room, size_t first, size_t item)
{
	size_t more = *room ? *room * 2 : first;
	void  *q = *room ? mremap(p, *room * item, more * item, MREMAP_MAYMOVE) :
			   mmap(NULL, more * item, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (q == MAP_FAILED)
		return NULL;
	*room = more;
	return q;
}

/* Stacks that this dump has, by their hash: thousands of threads wait at few places. */
static struct {
	uint32_t first, count; /* count 0: none */
} seen[SEEN]; /* under the lock */

static size_t
stack_hash(const uintptr_t *pcs, unsigned count)
{
	uint64_t h = count;

	for (unsigned i = 0; i < count; i++)
		h = (h ^ pcs[i]) * 0x9e3779b97f4a7c15ULL;
	return (size_t)(h >> 40) % SEEN;
}

static int
stack_store(struct dump *d, struct dump_thread *t, const uintptr_t *pcs)
{
	size_t slot = stack_hash(pcs, t->count);

	if (t->count > 0 && seen[slot].count == t->count &&
	    memcmp(d->pcs + seen[slot].first, pcs, t->count * sizeof(*pcs)) == 0) {
		t->first = seen[slot].first;
		return 0;
	}
	while (d->pc_room - d->pc_count < t->count) {
		void *p = grow(d->pcs, &d->pc_room, PCS_FIRST, sizeof(*d->pcs));

		if (!p) {
			t->count = 0;
			return -ENOMEM;
		}
		d->pcs = p;
	}
	t->first = seen[slot].first = (uint32_t)d->pc_count;
	seen[slot].count = t->count;
	memcpy(d->pcs + d->pc_count, pcs, t->count * sizeof(*pcs));
	d->pc_count += t->count;
	return 0;
}

void
threads_dump_release(struct dump *d)
{
	for (size_t i = 0; i < d->count; i++)
		labels_unref(d->threads[i].labels);
	if (d->room)
		munmap(d->threads, d->room * sizeof(*d->threads));
	if (d->pc_room)
		munmap(d->pcs, d->pc_room * sizeof(*d->pcs));
	memset(d, 0, sizeof(*d));
}

/* ---- who is there ---- */

struct listing {
	struct dump *dump;
	int          err;
};

static void
on_thread(void *arg, pid_t tid)
{
	struct listing *l = arg;
	struct dump    *d = l->dump;
	void           *p;

	if (d->count == THREADS_MAX || l->err)
		return;
	if (d->count == d->room) {
		p = grow(d->threads, &d->room, THREADS_FIRST, sizeof(*d->threads));
		if (!p) {
			l->err = -ENOMEM;
			return;
		}
		d->threads = p;
	}
	d->threads[d->count++] = (struct dump_thread){
		.tid = tid, .syscall = DUMP_NO_SYSCALL, .how = DUMP_SILENT };
}

size_t
threads_count(void)
{
	struct stat st;

	return stat("/proc/self/task", &st) == 0 && st.st_nlink > 2 ? st.st_nlink - 2 : 0;
}

/* Down from a hole at i; a parent has the larger tid. */
static void
list_sift(struct dump_thread *all, size_t count, size_t i, struct dump_thread item)
{
	for (size_t child; (child = 2 * i + 1) < count; i = child) {
		if (child + 1 < count && all[child].tid < all[child + 1].tid)
			child++;
		if (item.tid >= all[child].tid)
			break;
		all[i] = all[child];
	}
	all[i] = item;
}

/* By ascending tid: the kernel lists by age, and its numbers wrap.  Not qsort(), which
 * may take memory from malloc. */
static void
list_sort(struct dump *d)
{
	struct dump_thread *all = d->threads;
	size_t              count = d->count;

	for (size_t i = count / 2; i--;)
		list_sift(all, count, i, all[i]);
	while (count > 1) {
		struct dump_thread last = all[--count];

		all[count] = all[0];
		list_sift(all, count, 0, last);
	}
}

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
		err = cpu_proc_threads(on_thread, &l);
		if (err || l.err || d->count >= threads_count())
			break;
	}
	list_sort(d);
	list_unique(d);
	return err ? err : l.err;
}

/* Once all threads of ours have their names.  Under a load that gives them no CPU for so
 * long, a dump with one too many is better than none. */
static int
list_named(struct dump *d)
{
	const struct timespec pause = { 0, OWN_PAUSE_NS };

	for (int i = 0; i < OWN_TRIES; i++) {
		unsigned made = own_threads_made();
		int      err;

		if (own_threads_named() == made) {
			err = list(d);
			if (err || own_threads_made() == made)
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

	t->count = hooks_frames_drop(w->pcs, unwind_capture(&regs, w->pcs, STACK_FRAMES_MAX, &truncated));
	t->truncated = truncated;
	t->how = DUMP_SELF;
	t->labels = labels_here();
	stack_store(w->dump, t, w->pcs);
}

/* Once; what could not be read stays silent for now, if with the leaf side of its stack. */
static enum quiet_result
read_one(struct work *w, struct dump_thread *t)
{
	const struct kept *k = w->want & THREADS_KEEP ? threads_kept_find(t->tid) : NULL;
	const uintptr_t   *pcs = w->pcs;
	enum quiet_result  r;

	/* libunwind wants the stack itself. */
	r = quiet_read(&w->quiet, t, k && !w->copies->bytes ? &k->runs : NULL, w->pcs, STACK_FRAMES_MAX);
	t->since_ns = r == QUIET_READ && k && memcmp(&k->runs, &t->runs, sizeof(k->runs)) == 0 ? k->since_ns : w->now_ns;
	if (r == QUIET_UNMOVED) {
		pcs = threads_kept_pcs(k);
		t->count = k->count;
		t->syscall = k->syscall;
		t->since_ns = k->since_ns;
		r = QUIET_READ;
	} else if (r == QUIET_READ || r == QUIET_UNKNOWN) {
		threads_copies_add(w->copies, &w->quiet, t->tid);
		t->count = hooks_frames_drop(w->pcs, t->count);
	}
	if (r == QUIET_READ && stack_store(w->dump, t, pcs) == 0) {
		t->how = DUMP_QUIET;
		t->labels = labels_of(t->tid);
	} else if (r == QUIET_GONE)
		forget(t);
	else if (r != QUIET_UNKNOWN || stack_store(w->dump, t, pcs) != 0)
		t->count = 0;
	return r;
}

/* Its name, and so whose it is, where that is asked for or decides what comes next. */
static void
name_one(struct work *w, struct dump_thread *t)
{
	bool wanted = (w->want & (THREADS_OWN | THREADS_NAMES)) != THREADS_OWN;

	if (!t->tid || (!wanted && t->how != DUMP_SILENT))
		return;
	if (!quiet_name(&w->quiet, t)) {
		forget(t);
		return;
	}
	t->own = strncmp(t->name, OWN_NAME, strlen(OWN_NAME)) == 0;
	if (t->own && !(w->want & THREADS_OWN))
		forget(t);
}

/* Ours are never signalled: soon they wait again. */
static void
read_own(struct work *w, struct dump_thread *t)
{
	const struct timespec pause = { 0, OWN_PAUSE_NS };

	for (int i = 0; i < OWN_TRIES && t->tid && t->how == DUMP_SILENT; i++) {
		enum quiet_result r = read_one(w, t);

		if (r == QUIET_DENIED || r == QUIET_UNKNOWN)
			break;
		if (t->tid && t->how == DUMP_SILENT && !quiet_state(&w->quiet, t->tid))
			forget(t);
		if (t->tid && t->how == DUMP_SILENT)
			nanosleep(&pause, NULL);
	}
}

static void
read_quietly(struct work *w)
{
	struct dump *d = w->dump;
	size_t       unknown = 0;

	for (size_t i = 0; i < d->count; i++) {
		struct dump_thread *t = &d->threads[i];

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

		if (!t->tid || t->how != DUMP_SILENT)
			continue;
		if (t->own)
			read_own(w, t);
		else if (read_one(w, t) == QUIET_READ)
			name_one(w, t);
		w->unread += t->tid && t->how == DUMP_SILENT && !t->own;
	}
}

/* ---- the rest, by a signal ---- */

static void
take_answer(struct work *w, struct threads_slot *s)
{
	struct dump_thread *t = &w->dump->threads[s->index];

	if (s->answer != THREADS_ANSWERED)
		return;
	t->count = hooks_frames_drop(s->pcs, s->count);
	t->truncated = s->truncated;
	t->handler_ns = s->took_ns;
	t->how = DUMP_SIGNALLED;
	t->labels = s->labels;
	s->labels = 0;
	stack_store(w->dump, t, s->pcs);
	quiet_name(&w->quiet, t); /* one that has ended since keeps what was read */
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
		const struct dump_thread *t = &w->dump->threads[i];

		if (!t->tid || t->how != DUMP_SILENT || t->own)
			continue;
		slots[n].tid = t->tid;
		slots[n++].index = (uint32_t)i;
	}
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
	struct dump *d = w->dump;
	size_t       to = 0;

	for (size_t i = 0; i < d->count; i++) {
		struct dump_thread *t = &d->threads[i];

		if (t->tid && t->how == DUMP_SILENT && !(t->state = quiet_state(&w->quiet, t->tid)))
			forget(t);
		if (!t->tid)
			continue;
		if (t->how == DUMP_SILENT) /* also without a stack they say whose work hangs */
			t->labels = labels_of(t->tid);
		if (t->how == DUMP_SILENT && t->count > 0)
			t->how = DUMP_QUIET; /* part of a stack is better than none */
		d->quiet += t->how == DUMP_QUIET;
		d->signalled += t->how == DUMP_SIGNALLED;
		d->silent += t->how == DUMP_SILENT;
		t->creator = threadcreate_creator(t->tid);
		if (t->how == DUMP_QUIET && w->now_ns > t->since_ns)
			t->minutes = (uint32_t)((w->now_ns - t->since_ns) / MINUTE_NS);
		d->threads[to++] = *t;
	}
	d->count = to;
	if (w->want & THREADS_KEEP)
		threads_kept_take(d);
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

	if (!cpu_proc_is_ours())
		return -EXDEV;
	err = quiet_open(&w.quiet);
	if (err)
		return err;
	memset(seen, 0, sizeof(seen));
	err = list_named(d);
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
	struct timespec       now;
	time_t                until;

	clock_gettime(CLOCK_MONOTONIC, &now);
	for (until = now.tv_sec + LOCK_SECONDS; pthread_mutex_trylock(&lock);) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (now.tv_sec >= until)
			return -EBUSY;
		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
	}
	return 0;
}

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
	pthread_setcancelstate(cancel, NULL);
	if (err) {
		threads_dump_release(&d);
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
		threads_kept_drop();
		pthread_mutex_unlock(&lock);
	}
	pthread_setcancelstate(cancel, NULL);
}

static void
stack_tag(uintptr_t *pcs, unsigned count)
{
	const uintptr_t *tagged;
	unsigned         n;
	/* The table has tags; where it is full, the addresses stay as they are. */
	uint32_t         stack = stack_table_add(pcs, count);

	tagged = stack_table_pcs(stack, &n);
	if (n == count && stack != STACK_PSEUDO_FULL)
		memcpy(pcs, tagged, n * sizeof(*tagged));
	stack_table_unref(stack);
}

/* A stack that threads share gets its tags once: they would be taken for other addresses. */
void
threads_dump_tag(struct dump *d)
{
	size_t         bytes = d->pc_count;
	unsigned char *done = bytes ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : NULL;

	if (!done || done == MAP_FAILED)
		return;
	for (size_t i = 0; i < d->count; i++) {
		struct dump_thread *t = &d->threads[i];

		if (t->count > 0 && !done[t->first]++)
			stack_tag(d->pcs + t->first, t->count);
	}
	munmap(done, bytes);
}

/* ---- as a profile ---- */

static void
profile_describe(const struct dump *d, const char *name, struct profile *p)
{
	struct timespec now;

	profile_init(p, name);
	p->types[0] = (struct profile_type){ name, "count" };
	p->type_count = 1;
	p->period_type = p->types[0];
	p->period = 1;
	clock_gettime(CLOCK_REALTIME, &now);
	p->time_ns = now.tv_sec * 1000000000LL + now.tv_nsec;
	profile_comment(p, "threads: %zu, of these %u read quietly, %u signalled, %u gave no answer", d->count,
		d->quiet, d->signalled, d->silent);
	profile_comment(p, "unwinder: %s", unwind_name());
	if (d->by_libunwind > 0)
		profile_comment(p, "stacks walked by libunwind: %u, the others by tables", d->by_libunwind);
	labels_comment(p);
	for (size_t i = 0; i < d->count; i++)
		if (d->threads[i].how == DUMP_SILENT)
			profile_comment(p, "no answer: thread %d \"%s\", state %c", (int)d->threads[i].tid,
				d->threads[i].name, d->threads[i].state);
}

int
threads_profile(const struct dump *d, const char *name, struct profile *ret)
{
	struct profile p;
	int            err = 0;

	profile_describe(d, name, &p);
	for (size_t i = 0; i < d->count && !err; i++) {
		const struct dump_thread *t = &d->threads[i];
		struct profile_sample     s = { .values = { 1 }, .raw_values = { 1 } };
		uintptr_t                 pcs[STACK_FRAMES_MAX] = { STACK_PSEUDO_SILENT };
		unsigned                  n = t->count ? t->count : 1;

		if (t->count)
			memcpy(pcs, d->pcs + t->first, n * sizeof(*pcs));
		if (t->count && t->truncated) {
			n -= n == STACK_FRAMES_MAX;
			pcs[n++] = STACK_PSEUDO_TRUNCATED;
			p.truncated++;
		}
		s.stack = stack_table_add(pcs, n);
		s.labels = t->labels;
		labels_ref(s.labels);
		err = profile_add(&p, &s);
	}
	if (err) {
		profile_release(&p);
		return err;
	}
	profile_merge(&p);
	*ret = p;
	return 0;
}

int
threads_snapshot(struct profile *ret)
{
	struct dump d;
	int         err = threads_dump_of(&d, THREADS_OWN | THREADS_KEEP | THREADS_REMOTE);

	if (err)
		return err;
	err = threads_profile(&d, "goroutine", ret);
	threads_dump_release(&d);
	return err;
}

static void
forked(void)
{
	static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

	lock = fresh;
	threads_kept_forked();
}

__attribute__((constructor)) static void
fork_watch(void)
{
	pthread_atfork(NULL, NULL, forked);
}
