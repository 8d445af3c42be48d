/*
 * locks.c - which lock each thread of a dump waits for, and who holds it.
 *
 *     which lock?   our hook has published the wait; or a lock function of the C library is among
 *                   the innermost frames, and the kernel says which word the thread waits at
 *     who has it?   the owner's word in glibc's mutex, the writer's in its read-write lock, read twice
 *     is it so?     the waiter's CPU clock is still what it was before its stack was read
 *     a deadlock    threads that wait for each other, in a circle
 *
 * Why a circle is one: none of its threads has run between the first look at the first of them
 * and the last look at the last, and all owners were read in between.  So at one moment each of
 * them stood where it waits, and had what the one before it waits for.
 *
 * What a stranger would get wrong:
 * - A word that a thread waits at is no mutex because it looks like one: conditions, semaphores,
 *   barriers and other people's futexes are words as well.  Only the function tells.
 * - Functions are told by where they begin, not by name: their parts are not exported, and a dump
 *   must not enter the loader.  A small function that a lock function jumps to is none of its parts:
 *   __lll_lock_wait() waits for the C library's own locks, too.
 * - The kernel gives a priority-inheriting mutex to a thread that still sleeps: that waits no more.
 * - The kernel refuses to close a circle of such mutexes; glibc then waits for ever at a word that is
 *   no lock, inside of its lock function.
 * - A wait that is published may be over: who has the lock by now is no waiter.
 * - A wait with a timeout ends by itself.  Its line is shown, but it makes no deadlock.
 * - Who took a lock before a fork has another number in the child, and may give it up there: the
 *   numbers of those that forked are known, and say nothing.
 * - A mutex that processes share may be held in a container that numbers threads otherwise.
 * - One thread may lock and another one unlock a plain mutex, though nobody should: the word
 *   names who has locked it.
 * - Owners are read by the kernel: the mutex may be gone, if our thread was woken since.
 *
 * What is read of a lock is in <bits/struct_mutex.h> and <bits/struct_rwlock.h>, which programs
 * are compiled with, so it stays where it is.
 * Tests: tests/threads/deadlock.t.
 */
#include <config.h>

#include "locks.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "abi.h"
#include "clock.h"
#include "collector.h"
#include "functions.h"
#include "memory.h"
#include "our_fd.h"
#include "pages.h"
#include "proc_self.h"
#include "tables.h"
#include "thread_id.h"
#include "threads.h"

#define DEPTH          4   /* frames in which a lock's function is looked for */
#define PARTS_MAX      6   /* functions that one of the lock's own goes on in */
#define PART_BYTES_MIN 256 /* of such a one */
#define ANCESTORS      8   /* threads that have forked, from one process to the next */

#define KIND_TYPE     3 /* all four have an owner */
#define KIND_ROBUST   16
#define KIND_INHERIT  32
#define KIND_SHARED   128 /* glibc sets it in each robust one, too */
#define KIND_NO_ELISION 512
#define WORD_TID      0x3fffffff /* of a robust or inheriting one; */
#define WORD_DIED     0x40000000 /* and its flag */

/* What a thread that reads and one that writes wait for the word of: PTHREAD_RWLOCK_FUTEX_USED and 1. */
#define RWLOCK_BUSY 3

/* ---- the C library's functions ---- */

enum call { CALL_MUTEX, CALL_READ, CALL_WRITE };

#define LOCK_NAMES(X)                                                                            \
	X(pthread_mutex_lock, CALL_MUTEX) X(pthread_mutex_timedlock, CALL_MUTEX)                 \
	X(pthread_mutex_clocklock, CALL_MUTEX) X(pthread_rwlock_rdlock, CALL_READ)               \
	X(pthread_rwlock_timedrdlock, CALL_READ) X(pthread_rwlock_clockrdlock, CALL_READ)        \
	X(pthread_rwlock_wrlock, CALL_WRITE) X(pthread_rwlock_timedwrlock, CALL_WRITE)           \
	X(pthread_rwlock_clockwrlock, CALL_WRITE)

#define X(name, call) extern const char locks_reference_##name __asm__(#name) __attribute__((weak));
LOCK_NAMES(X)
#undef X

static const struct {
	enum hooks_name name;
	enum call       call;
	const char     *linked; /* what our own reference leads to: a hook, or the function itself */
} lock_names[] = {
#define X(name, call) { HOOKS_##name, call, &locks_reference_##name },
	LOCK_NAMES(X)
#undef X
};

#define NAMES (sizeof(lock_names) / sizeof(lock_names[0]))

struct code {
	struct functions_range range;
	enum call              call;
};

/* Found once: the C library stays where it is. */
static struct {
	struct code           code[NAMES * (1 + PARTS_MAX)];
	size_t                count;
	struct tables_section object;
} library;

static uintptr_t
address_of(size_t i)
{
	if (HOOKS_HAVE(resolved) && component_hooks.resolved && component_hooks.next[lock_names[i].name])
		return (uintptr_t)component_hooks.next[lock_names[i].name];
	return (uintptr_t)lock_names[i].linked;
}

static size_t
parts_add(const struct memory *m, const struct code *of, struct code *ret)
{
	struct functions_range parts[PARTS_MAX];
	size_t                 n = functions_jumped_to(m, &of->range, parts, PARTS_MAX), count = 0;

	for (size_t i = 0; i < n; i++)
		if (parts[i].end - parts[i].begin >= PART_BYTES_MIN)
			ret[count++] = (struct code){ parts[i], of->call };
	return count;
}

static void
library_find(const struct memory *m)
{
	uintptr_t first = address_of(0);
	size_t    n = 0;

	if (library.count || !first || !tables_section_of(first, &library.object))
		return;
	for (size_t i = 0; i < NAMES; i++) {
		struct code c = { .call = lock_names[i].call };

		/* One that another object stands before is another object's. */
		if (!functions_around(m, address_of(i), &c.range) || c.range.begin != address_of(i) ||
		    c.range.begin - library.object.start >= library.object.end - library.object.start)
			continue;
		library.code[n++] = c;
		if (c.call == CALL_MUTEX)
			n += parts_add(m, &c, library.code + n);
	}
	library.count = n;
}

static const struct code *
code_at(uintptr_t pc)
{
	for (size_t i = 0; i < library.count; i++)
		if (pc - library.code[i].range.begin < library.code[i].range.end - library.code[i].range.begin)
			return &library.code[i];
	return NULL;
}

/* ---- which lock ---- */

/* Beside a thread of the dump. */
struct wait {
	int64_t clock_ns; /* below 0: nothing is known of it */
	bool    timed;
};

struct work {
	struct dump  *dump;
	struct quiet *quiet;
	struct memory memory;
	struct wait  *waits; /* as many as threads */
	bool          named;
};

static struct dump_lock
lock_of(enum call call, const struct dump_futex *f)
{
	size_t at = 0;

	if (call == CALL_WRITE)
		at = f->value == RWLOCK_BUSY ? offsetof(pthread_rwlock_t, __data.__writers_futex) :
					       offsetof(pthread_rwlock_t, __data.__wrphase_futex);
	else if (call == CALL_READ && f->value == RWLOCK_BUSY)
		at = offsetof(pthread_rwlock_t, __data.__wrphase_futex);
	return (struct dump_lock){ .address = f->word - at, .kind = call == CALL_MUTEX ? DUMP_MUTEX : DUMP_RWLOCK };
}

/* At a word of its own: the kernel has refused to wait for a mutex, where that would close a circle. */
static bool
is_for_ever(const struct dump_futex *f)
{
	return f->value == 0 && (f->call == FUTEX_WAIT || f->call == FUTEX_WAIT_BITSET);
}

/* By its stack, which must lead into the C library and no further. */
static void
find_by_stack(struct work *w, size_t nth)
{
	struct dump_thread *t = &w->dump->threads[nth];
	const uintptr_t    *pcs = w->dump->pcs + t->first;

	if (t->how != DUMP_QUIET || !t->futex.word)
		return;
	for (uint32_t i = 0; i < t->count && i < DEPTH; i++) {
		const struct code *c = code_at(pcs[i]);

		if (c && c->call == CALL_MUTEX && is_for_ever(&t->futex))
			return;
		if (c) {
			t->lock = lock_of(c->call, &t->futex);
			w->waits[nth].timed = t->futex.timed;
			return;
		}
		if (pcs[i] - library.object.start >= library.object.end - library.object.start)
			return;
	}
}

static void
on_published(void *arg, pid_t tid, const struct dump_lock *lock, bool timed)
{
	struct work        *w = arg;
	struct dump_thread *t = threads_find(w->dump, 0, tid);
	struct dump_futex   futex;
	size_t              size = lock->kind == DUMP_MUTEX ? sizeof(pthread_mutex_t) : sizeof(pthread_rwlock_t);

	if (!t || t->how == DUMP_SELF)
		return;
	futex = t->futex;
	/* Published and not yet waiting, or not any more. */
	if ((t->how == DUMP_QUIET || quiet_futex(w->quiet, tid, &futex)) && futex.word - lock->address >= size)
		return;
	t->lock = *lock;
	w->waits[t - w->dump->threads].timed = timed;
}

/* ---- who has it ---- */

struct holder {
	int32_t tid;    /* 0: nobody, or not known */
	bool    stays;  /* it does so when the thread ends */
	bool    handed; /* by the kernel, so that who has it may still be asleep there */
};

/* A robust one is in its holder's list; in another process that has other addresses. */
static bool
is_held_here(const struct work *w, uintptr_t address, const pthread_mutex_t *m)
{
	uintptr_t there;

	return memory_read(&w->memory, (uintptr_t)m->__data.__list.__prev, &there, sizeof(there)) &&
	       (there & ~(uintptr_t)1) == address + offsetof(pthread_mutex_t, __data.__list.__next);
}

static struct holder
mutex_holder(const struct work *w, uintptr_t address, const pthread_mutex_t *m)
{
	int      kind = m->__data.__kind;
	unsigned word = (unsigned)m->__data.__lock;

	if (kind & ~(KIND_TYPE | KIND_ROBUST | KIND_INHERIT | KIND_SHARED | KIND_NO_ELISION) || word == 0)
		return (struct holder){ 0 };
	if (kind & KIND_SHARED && !(kind & KIND_ROBUST && is_held_here(w, address, m)))
		return (struct holder){ 0 };
	if (kind & (KIND_ROBUST | KIND_INHERIT)) {
		if (word & WORD_DIED)
			return (struct holder){ 0 };
		return (struct holder){ (int32_t)(word & WORD_TID), false, kind & KIND_INHERIT };
	}
	return (struct holder){ m->__data.__owner, true, false };
}

/* False: the lock is not there any more. */
static bool
holder_read(const struct work *w, const struct dump_lock *l, struct holder *ret)
{
	pthread_mutex_t  mutex;
	pthread_rwlock_t rwlock;

	if (l->kind == DUMP_MUTEX) {
		if (!memory_read(&w->memory, l->address, &mutex, sizeof(mutex)))
			return false;
		*ret = mutex_holder(w, l->address, &mutex);
		return true;
	}
	if (!memory_read(&w->memory, l->address, &rwlock, sizeof(rwlock)))
		return false;
	*ret = (struct holder){ rwlock.__data.__shared ? 0 : rwlock.__data.__cur_writer, true, false };
	return true;
}

static int32_t          ancestors[ANCESTORS];
static unsigned         ancestor_count;
static __thread int32_t forking __attribute__((tls_model("initial-exec")));

void
locks_prepare(void)
{
	forking = (int32_t)thread_id_self(); /* without a system call: a program's own filter may not know it */
}

void
locks_forked(void)
{
	if (ancestor_count < ANCESTORS)
		ancestors[ancestor_count] = forking;
	ancestor_count++;
}

static bool
may_be_from_before_fork(int32_t tid)
{
	for (unsigned i = 0; i < ancestor_count && i < ANCESTORS; i++)
		if (ancestors[i] == tid)
			return true;
	return ancestor_count > ANCESTORS;
}

enum presence { ABSENT, PRESENT, NOT_KNOWN };

/* Does a thread of ours bear the number?  By the folder of threads: a filter may end the process
 * for tgkill(2).  Without the folder the dump has asked so for its threads, too. */
static enum presence
number_seen(int32_t tid)
{
	int fd = proc_self_thread_open(tid, "stat");

	if (fd >= 0) {
		our_fd_close(fd);
		return PRESENT;
	}
	if (*proc_self_missing())
		return syscall(SYS_tgkill, getpid(), tid, 0) == 0 ? PRESENT : errno == ESRCH ? ABSENT : NOT_KNOWN;
	return fd == -ENOENT || fd == -ESRCH ? ABSENT : NOT_KNOWN;
}

/* No thread of ours bears its number any more, and none did in the process that forked this one. */
static bool
has_ended(const struct work *w, int32_t tid)
{
	enum presence seen = number_seen(tid);

	if (seen == PRESENT) /* the first thread stays as a zombie */
		return quiet_is_zombie(w->quiet, tid);
	return seen == ABSENT && !may_be_from_before_fork(tid);
}

static bool
is_alive(const struct work *w, int32_t tid)
{
	return threads_find(w->dump, 0, tid) || (number_seen(tid) == PRESENT && !quiet_is_zombie(w->quiet, tid));
}

static void
holder_name(struct work *w, struct dump_lock *l)
{
	const struct dump_thread *t = threads_find(w->dump, 0, l->holder);
	struct dump_thread        other = { .tid = l->holder };

	if (t && *t->name)
		memcpy(l->holder_name, t->name, sizeof(l->holder_name));
	else if (quiet_name(w->quiet, &other))
		memcpy(l->holder_name, other.name, sizeof(l->holder_name));
}

static void
holder_find(struct work *w, size_t nth)
{
	struct dump_lock *l = &w->dump->threads[nth].lock;
	struct holder     first, second;

	if (!holder_read(w, l, &first) || !holder_read(w, l, &second) ||
	    (first.handed && first.tid == w->dump->threads[nth].tid)) {
		l->kind = DUMP_NO_LOCK;
		return;
	}
	if (first.tid <= 0 || first.tid != second.tid)
		return;
	if (is_alive(w, first.tid))
		l->holder = first.tid;
	else if (first.stays && !w->waits[nth].timed && has_ended(w, first.tid)) {
		l->holder = first.tid;
		l->ended = true;
	}
}

/* After all holders: has it stood there all the time? */
static void
waiter_prove(struct work *w, size_t nth)
{
	struct dump_thread *t = &w->dump->threads[nth];
	int64_t             before = w->waits[nth].clock_ns;

	if (t->lock.kind != DUMP_NO_LOCK && (before < 0 || thread_clock_ns(t->tid) != before))
		t->lock.kind = DUMP_NO_LOCK;
	/* Published, and got meanwhile. */
	if (t->lock.kind != DUMP_NO_LOCK && t->lock.holder == t->tid && t->how != DUMP_QUIET)
		t->lock.kind = DUMP_NO_LOCK;
	if (t->lock.kind == DUMP_NO_LOCK)
		t->lock = (struct dump_lock){ 0 };
	else if (w->named && t->lock.holder && !t->lock.ended)
		holder_name(w, &t->lock);
}

/* ---- circles ---- */

/* Whom a thread waits for, for good; NULL: for nobody. */
static struct dump_thread *
waits_for(const struct work *w, const struct dump_thread *t)
{
	if (t->lock.kind == DUMP_NO_LOCK || !t->lock.holder || t->lock.ended || w->waits[t - w->dump->threads].timed)
		return NULL;
	return threads_find(w->dump, 0, t->lock.holder);
}

/* Each thread is passed once: way has the number of the walk that came by, from 1 on. */
static void
cycles_find(struct work *w, uint32_t *way)
{
	struct dump *d = w->dump;

	for (uint32_t i = 0; i < d->count; i++) {
		struct dump_thread *t = &d->threads[i], *from;

		while (t && !way[t - d->threads]) {
			way[t - d->threads] = i + 1;
			t = waits_for(w, t);
		}
		if (!t || way[t - d->threads] != i + 1)
			continue;
		d->cycles++;
		from = t;
		do {
			t->lock.cycle = d->cycles;
			t = waits_for(w, t);
		} while (t != from);
	}
}

static int64_t
clock_before(const struct dump_thread *t)
{
	return t->how == DUMP_QUIET ? t->mark.cpu_ns : t->how == DUMP_SELF ? -1 : thread_clock_ns(t->tid);
}

void
locks_find(struct dump *d, struct quiet *q, bool named)
{
	const struct collector *hooked = COLLECTOR_WITH(each_waiter);
	struct work             w = { .dump = d, .quiet = q, .named = named };
	uint32_t               *way;

	if (q->blind)
		return; /* clocks that go by ticks prove nothing */
	way = pages_map((d->count + 1) * sizeof(*way));
	w.waits = pages_map((d->count + 1) * sizeof(*w.waits));
	if (!w.waits || !way || memory_open(&w.memory) < 0)
		goto out;
	library_find(&w.memory);
	for (size_t i = 0; i < d->count; i++) {
		w.waits[i].clock_ns = clock_before(&d->threads[i]);
		find_by_stack(&w, i);
	}
	if (hooked)
		hooked->each_waiter(on_published, &w);
	for (size_t i = 0; i < d->count; i++)
		if (d->threads[i].lock.kind != DUMP_NO_LOCK)
			holder_find(&w, i);
	for (size_t i = 0; i < d->count; i++)
		waiter_prove(&w, i);
	cycles_find(&w, way);
	memory_close(&w.memory);
out:
	pages_unmap(w.waits, (d->count + 1) * sizeof(*w.waits));
	pages_unmap(way, (d->count + 1) * sizeof(*way));
}
