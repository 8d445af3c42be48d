/*
 * program_signals.c - what a program sees of its signal masks and handlers while it is profiled.
 *
 *     program_signals CASE    prints the names of what went wrong, then "done"; where there is a profile
 *                   "profile" for each try, and reads whether to try "again"
 *
 * LINKED: it starts the profiler itself, and writes its profiles; else the agent has, or nobody.  Then it prints "start"
 * and reads a line before it goes on, and whoever reads "profile" takes one.  For program_signals.t, which compiles
 * it for POSIX alone, too: signal() is another function there.
 */
#ifndef _XOPEN_SOURCE
#define _GNU_SOURCE
#endif
#ifdef LINKED
#include <component/profiler.h>
#endif

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long sink;
static volatile bool          enough;

#define CHECK(condition) ((condition) ? (void)0 : (void)printf("not so, line %d: %s\n", __LINE__, #condition))

static bool
again(const char *what)
{
	char word[16];

	puts(what);
	fflush(stdout);
	if (!fgets(word, sizeof(word), stdin))
		abort();
	return !strcmp(word, "again\n");
}

static void
start(void)
{
#ifdef LINKED
	if (component_profiler_start("127.0.0.1:0") < 0)
		abort();
#else
	again("start");
#endif
}

/* Written to "profile" where we have the library, until the test has seen enough: on a busy machine a
 * second may have no time for us, and the next try takes longer. */
static void *
window(void *arg)
{
#ifdef LINKED
	struct component_profile_write_options o = COMPONENT_PROFILE_WRITE_OPTIONS_INIT;
	int                                    fd;

	o.seconds = 1;
	do {
		fd = open("profile", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		if (component_profile_write("profile", fd, &o) < 0)
			abort();
		close(fd);
		o.seconds *= o.seconds < 16 ? 2 : 1;
	} while (again("profile"));
#else
	while (again("profile"))
		;
#endif
	enough = true;
	return arg;
}

static bool
is_in_window(void)
{
	DIR           *tasks = opendir("/proc/self/task");
	struct dirent *task;
	bool           found = false;

	while (!found && (task = readdir(tasks))) {
		char  path[300], name[32] = "";
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", task->d_name);
		f = fopen(path, "r");
		found = f && fgets(name, sizeof(name), f) && !strcmp(name, "component-cpu\n");
		if (f)
			fclose(f);
	}
	closedir(tasks);
	return found;
}

/* Starts window(), and comes back once samples are taken. */
static pthread_t
window_begin(void)
{
	pthread_t w;

	pthread_create(&w, NULL, window, NULL);
	while (!is_in_window())
		sched_yield();
	return w;
}

static bool
same(const sigset_t *a, const sigset_t *b)
{
	for (int i = 1; i <= SIGRTMAX; i++)
		if (i != SIGKILL && i != SIGSTOP && (i < 32 || i >= SIGRTMIN) && sigismember(a, i) != sigismember(b, i)) {
			printf("signal %d: %d and %d\n", i, sigismember(a, i), sigismember(b, i));
			return false;
		}
	return true;
}

static __attribute__((noinline)) void
compute_with_all_blocked(void)
{
	while (!enough)
		sink++;
}

static void *
block_and_compute(void *arg)
{
	sigset_t all, seen;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	pthread_sigmask(SIG_BLOCK, NULL, &seen);
	CHECK(same(&all, &seen));
	compute_with_all_blocked();
	return arg;
}

static void *
inherit_and_compute(void *arg)
{
	sigset_t all, seen;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, NULL, &seen);
	CHECK(same(&all, &seen));
	compute_with_all_blocked();
	return arg;
}

/* A thread that blocks all of them, and one that was born with all blocked. */
static void
blocked(bool before)
{
	pthread_t a, b, w;
	sigset_t  all, none;

	sigemptyset(&none);
	sigfillset(&all);
	if (!before)
		start();
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	if (before)
		start();
	pthread_create(&b, NULL, inherit_and_compute, NULL);
	pthread_sigmask(SIG_SETMASK, &none, NULL);
	pthread_create(&a, NULL, block_and_compute, NULL);
	pthread_create(&w, NULL, window, NULL);
	pthread_join(w, NULL);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
}

static sigjmp_buf jump;

static void
on_usr1(int number)
{
	sigset_t all;

	(void)number;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL); /* undone by the kernel when this returns */
}

static void
on_usr2(int number)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	siglongjmp(jump, number);
}

/* Random sets: what is read back is what was set, whatever way it went. */
static void
compare(void)
{
	sigset_t         want, set, old, now;
	struct sigaction act = { .sa_handler = on_usr1 };
	unsigned         seed = 1;
	int              how;

	start();
	sigemptyset(&want);
	sigprocmask(SIG_SETMASK, &want, NULL);
	for (int n = 0; n < 3000; n++) {
		unsigned kind = (unsigned)rand_r(&seed) % 4;

		sigemptyset(&set);
		if (kind == 0)
			sigfillset(&set);
		for (int i = 1; kind == 1 && i <= SIGRTMAX; i++)
			if (rand_r(&seed) & 1)
				sigaddset(&set, i);
		if (kind == 2)
			sigaddset(&set, SIGPROF);
		/* The one that stands for two: on its own it is not kept. */
		if (kind == 1 && !sigismember(&set, SIGPROF))
			sigdelset(&set, SIGSTKFLT);
		else if (kind == 1)
			sigaddset(&set, SIGSTKFLT);
		how = kind == 2 && (rand_r(&seed) & 1) ? SIG_UNBLOCK : kind == 0 || kind == 2 ? SIG_BLOCK : SIG_SETMASK;
		if (how == SIG_UNBLOCK)
			sigaddset(&set, SIGSTKFLT);
		if ((n & 1 ? pthread_sigmask : sigprocmask)(how, &set, &old))
			printf("not set\n");
		CHECK(same(&old, &want));
		for (int i = 1; i <= SIGRTMAX; i++)
			if (how != SIG_UNBLOCK && sigismember(&set, i))
				sigaddset(&want, i);
			else if (how == SIG_SETMASK || sigismember(&set, i))
				sigdelset(&want, i);
		pthread_sigmask(SIG_BLOCK, NULL, &now);
		CHECK(same(&now, &want));
		pthread_sigmask(SIG_SETMASK, &now, &old);
		CHECK(same(&old, &want));
	}
	sigemptyset(&want);
	sigprocmask(SIG_SETMASK, &want, NULL);
	sigaction(SIGUSR1, &act, NULL);
	act.sa_handler = on_usr2;
	sigaction(SIGUSR2, &act, NULL);
	raise(SIGUSR1);
	sigprocmask(SIG_BLOCK, NULL, &now);
	CHECK(same(&now, &want));
	if (sigsetjmp(jump, 1) == 0)
		raise(SIGUSR2);
	sigprocmask(SIG_BLOCK, NULL, &now);
	CHECK(same(&now, &want));
	CHECK(sigprocmask(99, &want, NULL) == -1);
	CHECK(pthread_sigmask(99, &want, NULL) != 0);
}

static void
compute_until_enough(void)
{
	while (!enough)
		sink++;
}

static void
reset(void)
{
	struct sigaction now;
	pthread_t        w;

	start();
	w = window_begin();
	for (int i = 1; i <= SIGRTMAX; i++)
		signal(i, SIG_DFL);
	CHECK(sigaction(SIGPROF, NULL, &now) == 0 && !(now.sa_flags & SA_SIGINFO) && now.sa_handler == SIG_DFL);
	CHECK(signal(SIGPROF, SIG_DFL) == SIG_DFL);
	compute_until_enough();
	pthread_join(w, NULL);
	CHECK(signal(SIGPROF, SIG_IGN) == SIG_DFL);
	CHECK(signal(SIGPROF, SIG_DFL) == SIG_IGN);
}

static volatile sig_atomic_t runs;

static void
on_own(int number)
{
	(void)number;
	runs++;
}

static void
take(int flags)
{
	struct sigaction own = { .sa_handler = on_own, .sa_flags = flags }, before;

	CHECK(sigaction(SIGPROF, &own, &before) == 0 && before.sa_handler == SIG_DFL);
}

static void
take_by_signal(int flags)
{
	(void)flags;
	CHECK(signal(SIGPROF, on_own) == SIG_DFL);
}

/* A handler that comes in the middle of a window gets what the program sends, and nothing else. */
static void
taken(void (*by)(int flags), int flags)
{
	pthread_t w;

	start();
	w = window_begin();
	by(flags);
	compute_until_enough();
	pthread_join(w, NULL);
	CHECK(runs == 0);
	raise(SIGPROF);
	CHECK(runs == 1);
}

static void
compute_in_window(void)
{
	pthread_t w;

	enough = false;
	pthread_create(&w, NULL, window, NULL);
	compute_until_enough();
	pthread_join(w, NULL);
}

/* The handler stays between windows, and who asks for it finds none; nor does who brings back what was there. */
static void
asked(void)
{
	struct sigaction own = { .sa_handler = on_own }, before, now;

	start();
	compute_in_window();
	CHECK(sigaction(SIGPROF, NULL, &now) == 0 && now.sa_handler == SIG_DFL && !(now.sa_flags & SA_SIGINFO));
	CHECK(sigaction(SIGPROF, &own, &before) == 0 && before.sa_handler == SIG_DFL);
	raise(SIGPROF);
	CHECK(runs == 1);
	CHECK(sigaction(SIGPROF, &before, &now) == 0 && now.sa_handler == on_own);
	CHECK(sigaction(SIGPROF, NULL, &now) == 0 && now.sa_handler == SIG_DFL);
	compute_in_window();
}

static void
on_alternate(int number)
{
	volatile char room[2000];

	/* Not memset(): to bind it takes more stack than there is. */
	for (size_t i = 0; i < sizeof(room); i++)
		room[i] = (char)number;
	compute_until_enough();
	sink += (unsigned long)room[5];
}

/* There is room for one frame of the kernel and the handler's own, and for no second frame. */
static void
alternate(bool handler_first)
{
	size_t           frame = getauxval(AT_MINSIGSTKSZ), page = (size_t)sysconf(_SC_PAGESIZE);
	size_t           size = ((frame ? frame : MINSIGSTKSZ) + 2000 + 1500 + page - 1) / page * page;
	size_t           used = (frame ? frame : MINSIGSTKSZ) + 2000 + 1500;
	void            *memory = NULL;
	stack_t          stack = { .ss_size = used };
	struct sigaction act = { .sa_handler = on_alternate, .sa_flags = SA_ONSTACK }, now;
	pthread_t        w;

	CHECK(posix_memalign(&memory, page, page + size) == 0 && mprotect(memory, page, PROT_NONE) == 0);
	stack.ss_sp = (char *)memory + page + size - used;
	sigaltstack(&stack, NULL);
	if (handler_first)
		sigaction(SIGUSR1, &act, NULL);
	start();
	w = window_begin();
	if (!handler_first)
		sigaction(SIGUSR1, &act, NULL);
	sigaction(SIGUSR1, NULL, &now);
	CHECK(sigismember(&now.sa_mask, SIGPROF) == 0);
	CHECK(now.sa_handler == on_alternate && now.sa_flags & SA_ONSTACK);
	raise(SIGUSR1);
	pthread_join(w, NULL);
}

static void *
compute(void *arg)
{
	compute_until_enough();
	return arg;
}

/* A program that waits for our signals: it gets those that it was sent, and no other. */
static void
waits_for(int number)
{
	sigset_t  set;
	pthread_t a, w;
	int       fd;
	struct signalfd_siginfo info;
#ifdef LINKED
	struct component_profile_write_options o = COMPONENT_PROFILE_WRITE_OPTIONS_INIT;
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
#endif

	sigemptyset(&set);
	sigaddset(&set, number);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_NONBLOCK);
	start();
	pthread_create(&a, NULL, compute, NULL);
	pthread_create(&w, NULL, window, NULL);
#ifdef LINKED
	o.debug = 2;
	for (int i = 0; i < 3; i++)
		component_profile_write("goroutine", null, &o);
#endif
	pthread_join(w, NULL);
	CHECK(read(fd, &info, sizeof(info)) < 0);
	kill(getpid(), number);
	CHECK(read(fd, &info, sizeof(info)) == sizeof(info) && info.ssi_signo == (unsigned)number);
}

int
main(int argc, char **argv)
{
	const char *which = argc > 1 ? argv[1] : "";

	if (!strcmp(which, "blocked"))
		blocked(false);
	else if (!strcmp(which, "blocked-before"))
		blocked(true);
	else if (!strcmp(which, "compare"))
		compare();
	else if (!strcmp(which, "reset"))
		reset();
	else if (!strcmp(which, "taken"))
		taken(take, 0);
	else if (!strcmp(which, "taken-once"))
		taken(take, (int)SA_RESETHAND);
	else if (!strcmp(which, "taken-by-signal"))
		taken(take_by_signal, 0);
	else if (!strcmp(which, "asked"))
		asked();
	else if (!strcmp(which, "alternate"))
		alternate(false);
	else if (!strcmp(which, "alternate-before"))
		alternate(true);
	else if (!strcmp(which, "urg"))
		waits_for(SIGURG);
	else if (!strcmp(which, "prof"))
		waits_for(SIGPROF);
	puts("done");
	fflush(stdout);
	_exit(0);
}
