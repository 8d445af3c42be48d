/*
 * wait_state.c - what a thread waits for, in a word.
 *
 * The name of its system call; or, since all of the C library's locks wait in futex,
 * the word that Go has for the same wait, by the function among the innermost frames.
 *
 * What a stranger would get wrong: a library without internal symbols shows but the
 * exported pthread_mutex_lock, some frames up; with them it begins with underscores.
 *
 * Tests: tests/threads/goroutine.t, tests/encode/test_text.c.
 */
#include <config.h>

#include "wait_state.h"

#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#define INNER_FRAMES 8 /* a lock's own functions are among these */

struct call {
	int         number;
	const char *name;
};

/* Calls in which threads are found. */
static const struct call calls[] = {
	{ SYS_accept, "accept" }, { SYS_accept4, "accept4" }, { SYS_clock_nanosleep, "clock_nanosleep" },
	{ SYS_close, "close" }, { SYS_connect, "connect" }, { SYS_epoll_pwait, "epoll_wait" },
	{ SYS_fallocate, "fallocate" }, { SYS_fcntl, "fcntl" }, { SYS_fdatasync, "fdatasync" },
	{ SYS_flock, "flock" }, { SYS_fsync, "fsync" }, { SYS_ftruncate, "ftruncate" }, { SYS_futex, "futex" },
	{ SYS_getdents64, "getdents64" }, { SYS_io_getevents, "io_getevents" }, { SYS_ioctl, "ioctl" },
	{ SYS_madvise, "madvise" }, { SYS_mmap, "mmap" }, { SYS_mprotect, "mprotect" }, { SYS_msgrcv, "msgrcv" },
	{ SYS_msgsnd, "msgsnd" }, { SYS_munmap, "munmap" }, { SYS_nanosleep, "nanosleep" }, { SYS_openat, "openat" },
	{ SYS_ppoll, "ppoll" }, { SYS_pread64, "pread64" }, { SYS_preadv, "preadv" }, { SYS_pselect6, "pselect" },
	{ SYS_pwrite64, "pwrite64" }, { SYS_pwritev, "pwritev" }, { SYS_read, "read" }, { SYS_readv, "readv" },
	{ SYS_recvfrom, "recvfrom" }, { SYS_recvmmsg, "recvmmsg" }, { SYS_recvmsg, "recvmsg" },
	{ SYS_restart_syscall, "restart_syscall" }, { SYS_rt_sigsuspend, "rt_sigsuspend" },
	{ SYS_rt_sigtimedwait, "rt_sigtimedwait" }, { SYS_sched_yield, "sched_yield" }, { SYS_semop, "semop" },
	{ SYS_semtimedop, "semtimedop" }, { SYS_sendmmsg, "sendmmsg" }, { SYS_sendmsg, "sendmsg" },
	{ SYS_sendto, "sendto" }, { SYS_sendfile, "sendfile" }, { SYS_splice, "splice" },
	{ SYS_sync_file_range, "sync_file_range" }, { SYS_wait4, "wait4" }, { SYS_waitid, "waitid" },
	{ SYS_write, "write" }, { SYS_writev, "writev" },
#ifdef SYS_epoll_wait
	{ SYS_epoll_wait, "epoll_wait" },
#endif
#ifdef SYS_epoll_pwait2
	{ SYS_epoll_pwait2, "epoll_wait" },
#endif
#ifdef SYS_futex_waitv
	{ SYS_futex_waitv, "futex_waitv" },
#endif
#ifdef SYS_io_uring_enter
	{ SYS_io_uring_enter, "io_uring_enter" },
#endif
#ifdef SYS_pause
	{ SYS_pause, "pause" },
#endif
#ifdef SYS_poll
	{ SYS_poll, "poll" },
#endif
#ifdef SYS_select
	{ SYS_select, "select" },
#endif
#ifdef SYS_open
	{ SYS_open, "open" },
#endif
};

struct wait {
	const char *begins; /* of a function's name, underscores left out */
	const char *state;
};

/* A wait on a condition takes its mutex again at the end: first come, first served. */
static const struct wait waits[] = {
	{ "pthread_mutex_", "sync.Mutex.Lock" },     { "mtx_", "sync.Mutex.Lock" },
	{ "pthread_rwlock_rd", "sync.RWMutex.RLock" }, { "pthread_rwlock_timedrd", "sync.RWMutex.RLock" },
	{ "pthread_rwlock_clockrd", "sync.RWMutex.RLock" }, { "pthread_rwlock_", "sync.RWMutex.Lock" },
	{ "pthread_cond_", "sync.Cond.Wait" },       { "cnd_", "sync.Cond.Wait" },
	{ "sem_", "semacquire" },		     { "new_sem_", "semacquire" },
	{ "pthread_barrier_", "sync.WaitGroup.Wait" }, { "pthread_join", "sync.WaitGroup.Wait" },
	{ "pthread_timedjoin", "sync.WaitGroup.Wait" }, { "pthread_clockjoin", "sync.WaitGroup.Wait" },
	{ "thrd_join", "sync.WaitGroup.Wait" },	     { "pthread_once", "sync.Once.Do" },
	{ "call_once", "sync.Once.Do" },
};

static const char *
wait_of(const char *function)
{
	function += strspn(function, "_");
	for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++)
		if (strncmp(function, waits[i].begins, strlen(waits[i].begins)) == 0)
			return waits[i].state;
	return NULL;
}

static const char *
lock_state(const struct dump *d, const struct dump_thread *t, struct symbols *s)
{
	struct symbol_frame frames[SYMBOLS_FRAMES_MAX];

	for (uint32_t i = 0; i < t->count && i < INNER_FRAMES; i++) {
		unsigned n = symbols_frames(s, d->pcs[t->first + i], frames, SYMBOLS_FRAMES_MAX);

		for (unsigned k = 0; k < n; k++) {
			const char *state = wait_of(frames[k].name);

			if (state)
				return state;
		}
	}
	return NULL;
}

/* A signal tells not what it has interrupted: the innermost function does, if it is the
 * wrapper of a call. */
static const char *
call_of(const struct dump *d, const struct dump_thread *t, struct symbols *s)
{
	static const char  internal[] = "GI_", libc[] = "libc_";
	struct symbol_frame frame;
	const char         *name;

	if (!t->count || !symbols_frames(s, d->pcs[t->first], &frame, 1))
		return NULL;
	name = frame.name + strspn(frame.name, "_");
	if (strncmp(name, internal, strlen(internal)) == 0)
		name += strlen(internal);
	if (strncmp(name, libc, strlen(libc)) == 0)
		name += strlen(libc);
	name += strspn(name, "_");
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (strcmp(calls[i].name, name) == 0)
			return calls[i].name;
	return NULL;
}

const char *
wait_state(const struct dump *d, const struct dump_thread *t, struct symbols *s, char *buf, size_t size)
{
	bool        ran = t->how == DUMP_SIGNALLED && t->state == 'R'; /* so it waits for nothing, though pthread_once() or a sem_parse() may be on its stack */
	const char *state = NULL;

	if (t->how == DUMP_SILENT) {
		snprintf(buf, size, "%s, state %c", t->filtered ? "not asked (seccomp)" : "no answer", t->state ? t->state : '?');
		return buf;
	}
	if (t->how == DUMP_SELF)
		return "running";
	if (t->syscall == SYS_futex || (t->syscall == DUMP_NO_SYSCALL && !ran))
		state = lock_state(d, t, s);
	if (t->syscall == DUMP_NO_SYSCALL && !state)
		state = call_of(d, t, s);
	for (size_t i = 0; !state && i < sizeof(calls) / sizeof(calls[0]); i++)
		if (calls[i].number == t->syscall)
			state = calls[i].name;
	if (state)
		return state;
	if (t->syscall == DUMP_NO_SYSCALL)
		return t->how == DUMP_SIGNALLED && t->state != 'S' && t->state != 'D' ? "running" : "waiting";
	snprintf(buf, size, "syscall %d", (int)t->syscall);
	return buf;
}
