/*
 * abi.h - the table between the hooks object and the core.
 *
 * The hooks object (object/) defines component_hooks and every interposed
 * function; the core finds it by a weak reference and fills in what to call.  It
 * is ABI between a program's static part and libcomponent.so: it only grows, at
 * the end, and a member is there if `size` says so.
 *
 * Who writes what: the hooks object fills in `next` and the names, once, at the
 * first call of a hook (HOOKS_EARLY until then).  Everything else is the core's.
 * Switching on is hooks_set_heap_state(), after the functions.
 */
#ifndef HOOKS_ABI_H
#define HOOKS_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch_hooks.h"

#define HOOKS_VERSION 1

/* Every name we stand in for; the order is ABI, new names go to the end.
 * X(name, what it is): allocates, releases, or neither. */
#define HOOKS_MALLOC_NAMES(X)                                                             \
	X(malloc) X(calloc) X(realloc) X(reallocarray) X(free) X(cfree) X(posix_memalign) \
	X(aligned_alloc) X(memalign) X(valloc) X(pvalloc) X(malloc_usable_size)           \
	X(free_sized) X(free_aligned_sized)

/* operator new, new[], delete, delete[] of C++: plain, sized, nothrow, aligned. */
#define HOOKS_NEW_NAMES(X)                                                                 \
	X(_Znwm) X(_Znam) X(_ZnwmRKSt9nothrow_t) X(_ZnamRKSt9nothrow_t)                    \
	X(_ZnwmSt11align_val_t) X(_ZnamSt11align_val_t)                                    \
	X(_ZnwmSt11align_val_tRKSt9nothrow_t) X(_ZnamSt11align_val_tRKSt9nothrow_t)
#define HOOKS_DELETE_NAMES(X)                                                              \
	X(_ZdlPv) X(_ZdaPv) X(_ZdlPvm) X(_ZdaPvm)                                          \
	X(_ZdlPvRKSt9nothrow_t) X(_ZdaPvRKSt9nothrow_t)                                    \
	X(_ZdlPvSt11align_val_t) X(_ZdaPvSt11align_val_t)                                  \
	X(_ZdlPvmSt11align_val_t) X(_ZdaPvmSt11align_val_t)                                \
	X(_ZdlPvSt11align_val_tRKSt9nothrow_t) X(_ZdaPvSt11align_val_tRKSt9nothrow_t)

#define HOOKS_THREAD_NAMES(X) X(pthread_create) X(thrd_create)

/* What a thread may wait in, and what lets others go on. */
#define HOOKS_WAIT_NAMES(X)                                                                  \
	X(pthread_mutex_lock) X(pthread_mutex_timedlock) X(pthread_mutex_clocklock)          \
	X(pthread_mutex_unlock) X(pthread_rwlock_rdlock) X(pthread_rwlock_wrlock)            \
	X(pthread_rwlock_timedrdlock) X(pthread_rwlock_timedwrlock)                          \
	X(pthread_rwlock_clockrdlock) X(pthread_rwlock_clockwrlock) X(pthread_rwlock_unlock) \
	X(pthread_cond_wait) X(pthread_cond_timedwait) X(pthread_cond_clockwait)             \
	X(sem_wait) X(sem_timedwait) X(sem_clockwait)                                        \
	X(pthread_barrier_wait) X(pthread_spin_lock)                                         \
	X(pthread_join) X(pthread_timedjoin_np) X(pthread_clockjoin_np) X(pthread_once)      \
	X(mtx_lock) X(mtx_timedlock) X(mtx_unlock) X(cnd_wait) X(cnd_timedwait)              \
	X(thrd_join) X(call_once)

/* System calls that a thread may wait in, each called as it is declared; those with _chk
 * are what _FORTIFY_SOURCE makes of them. */
#define HOOKS_CALL_NAMES(X)                                                                  \
	X(read) X(write) X(readv) X(writev) X(recv) X(recvfrom) X(recvmsg) X(recvmmsg)       \
	X(send) X(sendto) X(sendmsg) X(sendmmsg) X(accept) X(accept4) X(connect)             \
	X(poll) X(ppoll) X(select) X(pselect) X(epoll_wait) X(epoll_pwait)                   \
	X(nanosleep) X(clock_nanosleep) X(usleep) X(sleep) X(fsync) X(fdatasync)             \
	X(__read_chk) X(__recv_chk) X(__recvfrom_chk) X(__poll_chk) X(__ppoll_chk)

/* Masks and handlers, which must not keep the profiler's signal from a thread. */
#define HOOKS_SIGNAL_NAMES(X) X(pthread_sigmask) X(sigprocmask) X(sigaction) X(signal)

/* Made of sigaction(), not in the table: signal(), by source for POSIX alone. */
#define HOOKS_SYSV_NAMES(X) X(__sysv_signal) X(sysv_signal)

/* What the program maps itself, each called as it is declared. */
#define HOOKS_MAP_NAMES(X) X(mmap) X(mmap64) X(munmap) X(mremap)

/* Looked up, not stood in for: the same without waiting. */
#define HOOKS_TRY_NAMES(X)                                                              \
	X(pthread_mutex_trylock) X(pthread_rwlock_tryrdlock) X(pthread_rwlock_trywrlock) \
	X(pthread_spin_trylock) X(mtx_trylock) X(sem_trywait) X(pthread_tryjoin_np)     \
	X(pthread_testcancel)

#define HOOKS_NAMES(X) \
	HOOKS_MALLOC_NAMES(X) HOOKS_NEW_NAMES(X) HOOKS_DELETE_NAMES(X) HOOKS_THREAD_NAMES(X) \
	HOOKS_WAIT_NAMES(X)

enum hooks_name {
#define X(name) HOOKS_##name,
	HOOKS_NAMES(X)
	HOOKS_OLD_NAMES(X)
	HOOKS_CALL_NAMES(X)
	HOOKS_SIGNAL_NAMES(X)
	HOOKS_MAP_NAMES(X)
#undef X
	HOOKS_NAME_COUNT
};

enum { HOOKS_MALLOC_COUNT = HOOKS__Znwm }; /* these come first */

enum hooks_try {
#define X(name) HOOKS_TRY_##name,
	HOOKS_TRY_NAMES(X)
#undef X
	HOOKS_TRY_COUNT
};

#define HOOKS_NAMES_ROOM 192 /* of arrays by name: their place in the table is ABI */
#define HOOKS_TRIES_ROOM 32

/* Who waits for a lock is found by its address: a mask of 64 waiters for each bucket. */
#define HOOKS_WAITING 1024
/* By the lower half: one instruction less, and nobody has locks 4 GiB apart. */
#define HOOKS_WAITING_BUCKET(lock) ((uint32_t)(uintptr_t)(lock) * 0x9e3779b1U >> 22)

/* What the object linked in is. */
enum hooks_kind {
	HOOKS_REAL = 1,
	HOOKS_STATIC_STUB, /* of a -static program: nothing is hooked */
};

/* Off is not 0: compilers compare memory with 1 in one instruction, with 0 in two. */
enum hooks_state {
	HOOKS_EARLY = 0, /* the next functions are not known yet */
	HOOKS_OFF = 1,
	HOOKS_ON = 2,
};

/* What stands behind an operator new. */
enum hooks_operators {
	HOOKS_OPERATORS_UNKNOWN,
	HOOKS_OPERATORS_PASS, /* one that calls malloc: nothing to do there */
	HOOKS_OPERATORS_OWN,  /* the next allocator's own, which does not: counted there */
	HOOKS_OPERATORS_NONE, /* none: ours, made of the next malloc */
};

/* A thread's part, thread-local in the hooks object: 48 bytes. */
struct hooks_thread {
	int64_t  left;    /* bytes until the next sample; negative: now */
	uint64_t random;  /* xorshift state, 0 before the first draw */
	uint64_t rate;    /* that `left` was drawn with, 0 before the first draw */
	uint32_t busy;    /* inside the collector: what allocates now is not sampled */
	uint32_t unused;
	uintptr_t caller; /* the hooks' own: who called operator new, for its exception */
	int64_t   unused2;
};

/* What the core made of a call. */
enum hooks_answer {
	HOOKS_PASS,   /* not sampled: call the next one */
	HOOKS_DONE,   /* result is the answer */
	HOOKS_RECORD, /* call the next one, then record() what it returned */
};

/* One call that may become a sample, on the caller's stack. */
struct hooks_call {
	struct hooks_thread *thread;
	uint32_t             name;  /* enum hooks_name */
	uint32_t             stack; /* the core's, between begin() and record() */
	size_t               size;  /* in bytes, of all elements */
	size_t               align; /* 0: malloc's own */
	void                *old;   /* realloc: the block that is to change */
	void                *result;
	uintptr_t            pc, sp, fp; /* of the hook's caller; pc is a return address */
	uint64_t             weight; /* the core's */
	uint64_t             reserved[2];
};

/* One call that waits, or lets others go on; on the caller's stack. */
struct hooks_wait {
	uint32_t  name;      /* enum hooks_name */
	uint32_t  unused;
	uintptr_t args[4];   /* as they came */
	uintptr_t pc, sp, fp; /* of the hook's caller; pc is a return address */
	uintptr_t more[3];   /* the fifth to the seventh argument, of a system call */
	uintptr_t reserved[1];
};

/*
 * How many sampled blocks there are, by their addresses: 0, and free() has nothing to do.
 * The core counts, from below 255 up and down; 255 stays.  The hooks set it for NULL.  An address is looked up by its
 * lower 16 bits first, which takes three instructions; in a large heap that says yes too often,
 * and then by all of them.  The last four bits are 0 in nearly all addresses: a table with a count
 * for each value of 16 bits lay on 16 pages, and cost redis 6 % of its time (bench/README.md).
 */
struct hooks_filter {
	uint8_t low[4096];
	uint8_t hashed[65536];
};

static inline size_t
hooks_filter_low(const void *block)
{
	size_t low = (uint16_t)(uintptr_t)block;

	__asm__("" : "+r"(low)); /* Keeps it at two instructions: without this, GCC makes three. */
	return low >> 4;
}

#define HOOKS_FILTER_HASH(block) ((uint16_t)(((uint64_t)(uintptr_t)(block) >> 4) * 0x9e3779b97f4a7c15ULL >> 48))

typedef int hooks_wait_fn(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d);
typedef long hooks_call_fn(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f, uintptr_t g);

struct component_hooks {
	uint32_t version; /* HOOKS_VERSION */
	uint32_t size;    /* of this struct, in the object that defines it */
	uint32_t kind;    /* enum hooks_kind */
	uint32_t name_count;

	/* What the hooks look at in every call. */
	uint32_t  heap_state;   /* enum hooks_state; hooks_set_heap_state() */
	uint32_t  thread_state; /* the same: tell the core about new threads? */
	uintptr_t range_start;  /* the core is asked about blocks from here on; UINTPTR_MAX: */
	uintptr_t range_size;   /* none; 0 with a size of UINTPTR_MAX: all.  Hooks of before ask by it alone. */

	/* The functions behind ours, by enum hooks_name, and our own. */
	void       *next[HOOKS_NAMES_ROOM];
	void       *own[HOOKS_NAMES_ROOM];
	const char *names[HOOKS_NAMES_ROOM];
	uint64_t    calls[HOOKS_NAMES_ROOM]; /* that took the slow way; tests count with rate 1 */
	uint32_t    resolved;        /* next[] is filled in */
	uint32_t    next_is_libc;    /* the next malloc is glibc's own */
	uint32_t    second_copy;     /* another copy of this object is behind us, and passed over */
	uint32_t    unused3;         /* always 0 */

	struct hooks_thread *(*thread)(void); /* of the calling thread */
	int  (*resolve)(void);                /* fills in next[] now; 0 */

	/* The core's functions; valid while heap_state or range_size say so. */
	int    (*begin)(struct hooks_call *c);  /* enum hooks_answer */
	void   (*record)(struct hooks_call *c); /* c->result may be NULL: then nothing was allocated */
	int    (*reallocate)(struct hooks_call *c); /* HOOKS_PASS or HOOKS_DONE */
	/* HOOKS_DONE, or the next one is to have it: HOOKS_RECORD after a sample, HOOKS_PASS
	 * after any other block. */
	int    (*release)(void *block);
	int    (*usable)(void *block, size_t *ret);

	/* A thread is about to be made: the core may put its own routine and argument
	 * in the place of the daemon's; 0 to leave this one alone.  failed: it was not
	 * made, take the argument back. */
	int  (*thread_made)(struct hooks_call *c, void **routine, void **arg);
	void (*thread_failed)(void *arg);

	uint32_t unused4;
	uint32_t outranked; /* malloc is another object's that comes before us: nothing is sampled */

	/* Waits.  Off until the core says otherwise: never HOOKS_EARLY. */
	uint32_t  wait_state;
	uint32_t  wait_any; /* HOOKS_OFF: nobody waits for any lock; else unlocks look at waiting[] */
	uint64_t *waiting; /* [HOOKS_WAITING]: the core's masks; 0: nobody waits there */
	void     *tries[HOOKS_TRIES_ROOM]; /* by enum hooks_try, filled in by resolve() */
	/* The core's; each makes the call itself and returns its answer. */
	int     (*wait)(struct hooks_wait *w);   /* would have to wait just now, or may */
	int     (*unlock)(struct hooks_wait *w); /* perhaps somebody waits for this lock */

	/* Code of the hooks that stands below a call that waits: hidden_frames.h. */
	const char *frames_start, *frames_end;

	/* System calls.  As wait_state; call makes the call itself, from signal handlers too. */
	uint32_t  call_state;
	uint32_t  unused2;
	long    (*call)(struct hooks_wait *w);

	void (*set_heap_state)(uint32_t state); /* HOOKS_ON or _OFF, for all threads at once */

	const void *owner; /* the copy of the core that all this is of: which_core.h */

	uint32_t operators_by_name[8]; /* enum hooks_operators of each operator new, in HOOKS_NEW_NAMES' order */
	/* The hooks' own.  A core that counts there says so in `counts`, before it switches on first;
	 * for one that does not know it, all blocks pass for sampled until they meet the range. */
	struct hooks_filter *filter;
	uint32_t             counts;
	uint32_t             unused5;

	/* Masks and handlers.  As wait_state; signals makes the call itself, from signal handlers too. */
	uint32_t  signal_state;
	uint32_t  unused_signals;
	long    (*signals)(uint32_t name, uintptr_t a, uintptr_t b, uintptr_t c);

	/* Mappings.  As call_state; map makes the call itself, from signal handlers too. */
	uint32_t  map_state;
	/* 0, or the hooks lock plain mutexes themselves, by an id that they have from thread_id() since it
	 * has this number: the core changes it in a child of fork(). */
	uint32_t  plain_mutexes;
	long    (*map)(struct hooks_wait *w);

	int   (*thread_id)(void); /* the core's: of the calling thread */
	/* What dlsym(RTLD_NEXT) gives to the hooks' object, without the loader: from anywhere.  NULL: nothing. */
	void *(*behind)(const char *name);
	uint32_t mutexes_are_libcs; /* the mutex functions behind ours are glibc's own; set by resolve() */
	uint32_t unused6;
};

/*
 * A pthread_mutex_t as PTHREAD_MUTEX_INITIALIZER makes it, and how glibc locks one.  This layout is in every program
 * that has such an initializer; what stands in it is compared with what glibc's own functions write before anything
 * is switched on (collect/waits/plain_mutex.c).  pthread_mutex_trylock() takes 33 instructions for it, as it knows
 * nine kinds of mutexes.
 */
struct hooks_plain_mutex {
	int      lock; /* 0: free, 1: taken, 2: and somebody waits */
	unsigned count;
	int      owner; /* thread id */
	unsigned users;
	int      kind; /* 0: plain */
};

/* False: it is taken. */
static inline bool
hooks_plain_mutex_try(struct hooks_plain_mutex *m, int tid)
{
	int free = 0;

	if (!__atomic_compare_exchange_n(&m->lock, &free, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return false;
	m->owner = tid;
	m->users++;
	return true;
}

/* Weak: NULL where the program has no hooks. */
extern struct component_hooks component_hooks __attribute__((weak));

/* Is the hooks object here, and new enough to have the member? */
#define HOOKS_HAVE(member) \
	hooks_reach(offsetof(struct component_hooks, member) + sizeof(((struct component_hooks *)0)->member))

static inline bool
hooks_reach(size_t size)
{
	return &component_hooks && component_hooks.kind == HOOKS_REAL && component_hooks.version == HOOKS_VERSION &&
	       component_hooks.size >= size;
}

/* Async-signal-safe.  Hooks of before have only the word. */
static inline void
hooks_set_heap_state(uint32_t state)
{
	if (HOOKS_HAVE(set_heap_state) && component_hooks.set_heap_state)
		component_hooks.set_heap_state(state);
	else
		__atomic_store_n(&component_hooks.heap_state, state, __ATOMIC_RELEASE);
}

#endif
