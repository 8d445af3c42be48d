/*
 * object.h - what the files of the hooks object share.
 *
 * A hook is written as hook_NAME, hidden, and made known under its real name by
 * EXPORT(): weak, so that a program which brings its own malloc or operator new
 * still links, and wins; the core then sees that the name is not ours.
 */
#ifndef HOOKS_OBJECT_OBJECT_H
#define HOOKS_OBJECT_OBJECT_H

#include "abi.h"

#define HIDDEN __attribute__((visibility("hidden")))
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

#define EXPORT(name) \
	extern __typeof__(hook_##name) name __attribute__((weak, alias("hook_" #name), visibility("default")))

/* Below the real function, and so on the stack while a thread waits: see hidden_frames.h. */
#define FRAMES __attribute__((section("component_hooks_frames")))

/* The table under a name that cannot be interposed: reached without a GOT entry. */
extern struct component_hooks hooks_self HIDDEN;

/* Where it lies from the thread pointer is known when a program is linked, and not when the
 * agent is.  (The linker would make the one of the other, but leave a move behind.) */
#ifdef HOOKS_PROGRAM
#define TLS_MODEL "local-exec"
#else
#define TLS_MODEL "initial-exec"
#endif
extern __thread struct hooks_thread hooks_thread HIDDEN __attribute__((tls_model(TLS_MODEL)));

/* A state, for who goes on from there to a function of the core's: that was written before, and
 * is read after.  A plain load is for those that only look whether all is off. */
#define STATE(member) __atomic_load_n(&hooks_self.member, __ATOMIC_ACQUIRE)

/* Filled in by next_resolve(), as hooks_maker and tries are: at the latest when the first thread
 * is made, so every thread sees them.  One made past our hook may see what stands there at first. */
#define NEXT(name) ((__typeof__(&hook_##name))hooks_self.next[HOOKS_##name])

/* What ours are made of where the next allocator lacks one.  The same function, unless another
 * object's malloc comes before ours: then that object's, as it made the blocks (next.c). */
extern void *hooks_maker[HOOKS_MALLOC_COUNT] HIDDEN;

/* The value of a pthread_once_t that has run, read from one of our own: the first if glibc's functions are the next
 * ones, otherwise the second, as a sanitizer's must see the call. */
extern int hooks_once_done HIDDEN, hooks_once_passed HIDDEN;

#define MAKER(name) ((__typeof__(&hook_##name))hooks_maker[HOOKS_##name])

/* Has this call used up the bytes until the next sample?  malloc itself asks for the state last (malloc.c). */
#define COUNTED_DOWN(bytes) \
	UNLIKELY((hooks_thread.left = (int64_t)((uint64_t)hooks_thread.left - (bytes))) < 0)
#define SAMPLED(bytes) (LIKELY(hooks_self.heap_state != HOOKS_OFF) && COUNTED_DOWN(bytes))

/* Perhaps a sample's: struct hooks_filter. */
extern struct hooks_filter hooks_filter HIDDEN;

#define OURS(block) \
	(UNLIKELY(hooks_filter.low[hooks_filter_low(block)]) && UNLIKELY(hooks_filter.hashed[HOOKS_FILTER_HASH(block)]))

/* malloc.c */
void  *hook_malloc(size_t size) HIDDEN;
void  *hook_calloc(size_t count, size_t size) HIDDEN;
void  *hook_realloc(void *block, size_t size) HIDDEN;
void  *hook_reallocarray(void *block, size_t count, size_t size) HIDDEN;
void   hook_free(void *block) HIDDEN;
void   hook_cfree(void *block) HIDDEN;
int    hook_posix_memalign(void **ret, size_t align, size_t size) HIDDEN;
void  *hook_aligned_alloc(size_t align, size_t size) HIDDEN;
void  *hook_memalign(size_t align, size_t size) HIDDEN;
void  *hook_valloc(size_t size) HIDDEN;
void  *hook_pvalloc(size_t size) HIDDEN;
size_t hook_malloc_usable_size(void *block) HIDDEN;
void   hook_free_sized(void *block, size_t size) HIDDEN;
void   hook_free_aligned_sized(void *block, size_t align, size_t size) HIDDEN;
void   malloc_set_state(uint32_t state) HIDDEN; /* NEXT(malloc) is known */

/* operators.c, by shape: size; size, nothrow; size, align; size, align, nothrow. */
#define HOOKS_NEW_SHAPES(plain, nothrow, align, align_nothrow)                          \
	plain(_Znwm) plain(_Znam)                                                       \
	nothrow(_ZnwmRKSt9nothrow_t) nothrow(_ZnamRKSt9nothrow_t)                       \
	align(_ZnwmSt11align_val_t) align(_ZnamSt11align_val_t)                         \
	align_nothrow(_ZnwmSt11align_val_tRKSt9nothrow_t)                               \
	align_nothrow(_ZnamSt11align_val_tRKSt9nothrow_t)

#define DECLARE_NEW(name)                        \
	void *hook_##name(size_t size) HIDDEN;   \
	void *cold_##name(size_t size) HIDDEN;
#define DECLARE_NEW_NOTHROW(name)                                      \
	void *hook_##name(size_t size, const void *nothrow) HIDDEN;    \
	void *cold_##name(size_t size, const void *nothrow) HIDDEN;
#define DECLARE_NEW_ALIGN(name)                                \
	void *hook_##name(size_t size, size_t align) HIDDEN;   \
	void *cold_##name(size_t size, size_t align) HIDDEN;
#define DECLARE_NEW_ALIGN_NOTHROW(name)                                             \
	void *hook_##name(size_t size, size_t align, const void *nothrow) HIDDEN;   \
	void *cold_##name(size_t size, size_t align, const void *nothrow) HIDDEN;
#define DECLARE_DELETE(name)                                          \
	void hook_##name(void *block, size_t a, size_t b) HIDDEN;     \
	void cold_##name(void *block, size_t a, size_t b) HIDDEN;
HOOKS_NEW_SHAPES(DECLARE_NEW, DECLARE_NEW_NOTHROW, DECLARE_NEW_ALIGN, DECLARE_NEW_ALIGN_NOTHROW)
HOOKS_DELETE_NAMES(DECLARE_DELETE)

/* dump/threads.c */
int    hook_pthread_create(void *thread, const void *attributes, void *routine, void *arg) HIDDEN;
int    hook_thrd_create(void *thread, void *routine, void *arg) HIDDEN;

/* waits/waits.c, by how many arguments of the size of a register they take. */
#define HOOKS_WAIT_ARGUMENTS(one, two, three, four)                                     \
	one(pthread_mutex_lock) two(pthread_mutex_timedlock) three(pthread_mutex_clocklock) \
	one(pthread_mutex_unlock) one(pthread_rwlock_rdlock) one(pthread_rwlock_wrlock) \
	two(pthread_rwlock_timedrdlock) two(pthread_rwlock_timedwrlock)                 \
	three(pthread_rwlock_clockrdlock) three(pthread_rwlock_clockwrlock)             \
	one(pthread_rwlock_unlock) two(pthread_cond_wait) three(pthread_cond_timedwait) \
	four(pthread_cond_clockwait) one(sem_wait) two(sem_timedwait)                   \
	three(sem_clockwait) one(pthread_barrier_wait) one(pthread_spin_lock)           \
	two(pthread_join) three(pthread_timedjoin_np) four(pthread_clockjoin_np)        \
	two(pthread_once) one(mtx_lock) two(mtx_timedlock) one(mtx_unlock)              \
	two(cnd_wait) three(cnd_timedwait) two(thrd_join) two(call_once)

/* calls.c, the same for system calls. */
#define HOOKS_CALL_ARGUMENTS(one, two, three, four, five, six, seven)                             \
	three(read) three(write) three(readv) three(writev) four(recv) six(recvfrom)             \
	three(recvmsg) five(recvmmsg) four(send) six(sendto) three(sendmsg) four(sendmmsg)       \
	three(accept) four(accept4) three(connect) three(poll) four(ppoll) five(select)          \
	six(pselect) four(epoll_wait) five(epoll_pwait) two(nanosleep) four(clock_nanosleep)     \
	one(usleep) one(sleep) one(fsync) one(fdatasync) four(__read_chk) five(__recv_chk)       \
	seven(__recvfrom_chk) four(__poll_chk) five(__ppoll_chk)

#define DECLARE_CALL(name, ...)                  \
	long hook_##name(__VA_ARGS__) HIDDEN;    \
	long cold_##name(__VA_ARGS__) HIDDEN;    \
	long early_##name(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f, \
		uintptr_t g) HIDDEN;
#define DECLARE_CALL_1(name) DECLARE_CALL(name, uintptr_t a)
#define DECLARE_CALL_2(name) DECLARE_CALL(name, uintptr_t a, uintptr_t b)
#define DECLARE_CALL_3(name) DECLARE_CALL(name, uintptr_t a, uintptr_t b, uintptr_t c)
#define DECLARE_CALL_4(name) DECLARE_CALL(name, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d)
#define DECLARE_CALL_5(name) DECLARE_CALL(name, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e)
#define DECLARE_CALL_6(name) \
	DECLARE_CALL(name, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f)
#define DECLARE_CALL_7(name)                                                                            \
	DECLARE_CALL(name, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f, \
		uintptr_t g)
HOOKS_CALL_ARGUMENTS(DECLARE_CALL_1, DECLARE_CALL_2, DECLARE_CALL_3, DECLARE_CALL_4, DECLARE_CALL_5, DECLARE_CALL_6,
	DECLARE_CALL_7)

/* The same of those that map. */
#define HOOKS_MAP_ARGUMENTS(two, five, six) six(mmap) six(mmap64) two(munmap) five(mremap)
HOOKS_MAP_ARGUMENTS(DECLARE_CALL_2, DECLARE_CALL_5, DECLARE_CALL_6)

/* signals.c */
int    hook_pthread_sigmask(uintptr_t a, uintptr_t b, uintptr_t c) HIDDEN;
int    hook_sigprocmask(uintptr_t a, uintptr_t b, uintptr_t c) HIDDEN;
int    hook_sigaction(uintptr_t a, uintptr_t b, uintptr_t c) HIDDEN;
long   hook_signal(uintptr_t a, uintptr_t b) HIDDEN;
#define DECLARE_EARLY(name) long early_##name(uintptr_t a, uintptr_t b, uintptr_t c) HIDDEN;
HOOKS_SIGNAL_NAMES(DECLARE_EARLY)

#define DECLARE_WAIT(name, ...)                 \
	int hook_##name(__VA_ARGS__) HIDDEN;    \
	int cold_##name(__VA_ARGS__) HIDDEN;    \
	int early_##name(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d) HIDDEN;
#define DECLARE_WAIT_1(name) DECLARE_WAIT(name, uintptr_t a)
#define DECLARE_WAIT_2(name) DECLARE_WAIT(name, uintptr_t a, uintptr_t b)
#define DECLARE_WAIT_3(name) DECLARE_WAIT(name, uintptr_t a, uintptr_t b, uintptr_t c)
#define DECLARE_WAIT_4(name) DECLARE_WAIT(name, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d)
HOOKS_WAIT_ARGUMENTS(DECLARE_WAIT_1, DECLARE_WAIT_2, DECLARE_WAIT_3, DECLARE_WAIT_4)
HOOKS_OLD_ARGUMENTS(DECLARE_WAIT_2, DECLARE_WAIT_3)

extern uint64_t hooks_waiting[HOOKS_WAITING] HIDDEN;

/* cold.c: the same calls when they may be a sample. */
void  *cold_malloc(size_t size) HIDDEN;
void  *cold_calloc(size_t count, size_t size) HIDDEN;
void  *cold_realloc(void *block, size_t size) HIDDEN;
void  *cold_reallocarray(void *block, size_t size) HIDDEN;
void   cold_free(void *block) HIDDEN;
void   cold_cfree(void *block) HIDDEN;
void   cold_free_sized(void *block) HIDDEN;
void   cold_free_aligned_sized(void *block) HIDDEN;
int    cold_posix_memalign(void **ret, size_t align, size_t size) HIDDEN;
void  *cold_aligned_alloc(size_t align, size_t size) HIDDEN;
void  *cold_memalign(size_t align, size_t size) HIDDEN;
void  *cold_valloc(size_t size) HIDDEN;
void  *cold_pvalloc(size_t size) HIDDEN;
size_t cold_malloc_usable_size(void *block) HIDDEN;
int    cold_pthread_create(void *thread, const void *attributes, void *routine, void *arg) HIDDEN;
int    cold_thrd_create(void *thread, void *routine, void *arg) HIDDEN;
int    cold_release(uint32_t name, void *block) HIDDEN;

/* table.c */
void   table_set_state(uint32_t state) HIDDEN;

/* next.c */
int    next_resolve(void) HIDDEN;
void  *next_behind(const char *name) HIDDEN;
/* The function behind a wait or a system call, at the first call of `early`; NULL, ENOSYS: none. */
void  *next_early(uint32_t name, const void *early) HIDDEN;

/* operators.c: of what lookup.c has found, by name. */
struct lookup;
void   operators_fill_in(struct lookup *behind) HIDDEN;
void   operators_classify(const struct lookup *behind) HIDDEN;

#endif
