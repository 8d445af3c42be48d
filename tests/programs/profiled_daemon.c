/*
 * profiled_daemon.c - a small daemon with the profiler's door (d), driven by lines on
 * its standard input, for the tests of the server.
 *
 *     profiled_daemon [--burn] [--NAME VALUE]...   options of the server, see main()
 *
 * Each line is a command and is answered by one line; the log goes to stderr.
 */
#include <config.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <component/labels.h>
#include <component/profiler.h>

#define FDS_MAX 4096

static volatile unsigned long burned;

__attribute__((noinline)) static void
burn_cycles(void)
{
	for (int i = 0; i < 1000000; i++)
		burned += (unsigned long)i;
}

static void *
burner(void *arg)
{
	for (;;)
		burn_cycles();
	return arg;
}

/* One thread holds a lock until another one sleeps in front of it. */
static pthread_mutex_t contended = PTHREAD_MUTEX_INITIALIZER;
static _Atomic pid_t   contender;

__attribute__((noinline)) static void
wait_for_contended(void)
{
	pthread_mutex_lock(&contended);
	pthread_mutex_unlock(&contended);
	__asm__ volatile("");
}

static void *
contender_run(void *arg)
{
	contender = gettid();
	wait_for_contended();
	return arg;
}

__attribute__((noinline)) static void
hold_contended(void)
{
	struct timespec moment = { 0, 2000000 };
	char            path[64], text[512], *at = NULL;
	pthread_t       t;
	FILE           *f;

	contender = 0;
	pthread_mutex_lock(&contended);
	pthread_create(&t, NULL, contender_run, NULL);
	while (!at || at[2] != 'S') {
		nanosleep(&moment, NULL);
		snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)contender);
		f = contender ? fopen(path, "re") : NULL;
		at = f && fgets(text, sizeof(text), f) ? strrchr(text, ')') : NULL;
		if (f)
			fclose(f);
	}
	nanosleep(&moment, NULL);
	pthread_mutex_unlock(&contended);
	pthread_join(t, NULL);
}

static void
print_log(void *arg, enum component_log_level level, const char *message, const struct component_log_field *fields,
	size_t count)
{
	static const char *const names[] = { "error", "warning", "info", "debug" };
	char                     line[2048];
	size_t                   n;

	(void)arg;
	n = (size_t)snprintf(line, sizeof(line), "%s: %s", names[level], message);
	for (size_t i = 0; i < count && n < sizeof(line); i++)
		n += (size_t)snprintf(line + n, sizeof(line) - n, " %s=%s", fields[i].key, fields[i].value);
	fprintf(stderr, "%s\n", line);
}

static struct component_profiler_options options = COMPONENT_PROFILER_OPTIONS_INIT;

static void
say(int r, const struct component_error *err)
{
	printf("%d %s\n", r, err ? err->text : "");
	fflush(stdout);
}

static void
do_start(void)
{
	struct component_error err = COMPONENT_ERROR_INIT;
	int                    r = component_profiler_start_options(&options, &err);

	say(r, &err);
}

/* ADDRESS [PORT-FILE] */
static void
do_change(const char *words)
{
	struct component_profiler_options changed = options;
	struct component_error            err = COMPONENT_ERROR_INIT;
	char                              address[256], port_file[256];
	int                               n = sscanf(words, "%255s %255s", address, port_file), r;

	changed.address = n > 0 ? address : NULL;
	if (n > 1)
		changed.port_file = port_file;
	r = component_profiler_change(&changed, &err);
	say(r, &err);
}

/* The library calls it, too. */
static bool bind_refused;

__attribute__((visibility("default"))) int
bind(int fd, const struct sockaddr *address, socklen_t size)
{
	if (!bind_refused)
		return (int)syscall(SYS_bind, fd, address, size);
	errno = EACCES;
	return -1;
}

static void
do_toggle(int rounds)
{
	struct component_error err = COMPONENT_ERROR_INIT;
	int                    r = 0;

	for (int i = 0; i < rounds && !r; i++) {
		r = component_profiler_start_options(&options, &err);
		if (!r)
			r = component_profiler_stop();
	}
	say(r, &err);
}

/* Keeps the thread that reads commands, the daemon's own loop, busy. */
static void
do_block(int seconds)
{
	struct timespec until = { .tv_sec = seconds };

	say(0, NULL);
	while (nanosleep(&until, &until) && errno == EINTR)
		;
}

/* A child that stays until its pipe is closed.  With back, it serves first. */
static void
do_fork(bool back, int rate)
{
	static int hold[2];
	int        r = 0;
	pid_t      pid;
	char       byte;

	fflush(NULL);
	if (pipe2(hold, O_CLOEXEC))
		exit(1);
	pid = fork();
	if (pid == 0) {
		close(hold[1]);
		if (rate)
			component_profiler_set_heap_rate((uint64_t)rate);
		if (back)
			r = component_after_fork();
		printf("%d %d %d\n", r, (int)getpid(), component_profiler_running());
		fflush(stdout);
		while (read(hold[0], &byte, 1) < 0 && errno == EINTR)
			;
		component_profiler_stop();
		_exit(0);
	}
	close(hold[0]);
	(void)signal(SIGCHLD, SIG_IGN);
}

/* Children that look whether the daemon's own descriptors are still theirs, and end. */
static void
do_forks(int rounds)
{
	int   own[2], status, bad = 0;
	pid_t pid;

	if (pipe2(own, O_CLOEXEC | O_NONBLOCK))
		exit(1);
	for (int i = 0; i < rounds; i++) {
		pid = fork();
		if (pid == 0)
			_exit(fcntl(own[0], F_GETFD) < 0 || fcntl(own[1], F_GETFD) < 0 || fcntl(0, F_GETFD) < 0 ||
				component_profiler_running());
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
			bad++;
	}
	close(own[0]);
	close(own[1]);
	say(bad, NULL);
}

/* As daemon(3) does it: the parent goes, the child serves on the same address. */
static void
do_daemonize(void)
{
	int r;

	fflush(NULL);
	if (fork() > 0)
		_exit(0);
	r = component_after_fork();
	printf("%d %d\n", r, (int)getpid());
	fflush(stdout);
}

/* Takes all descriptors but spare, or gives them back with -1. */
static void
do_exhaust(int spare)
{
	static int fds[FDS_MAX], count;

	if (spare < 0) {
		while (count > 0)
			close(fds[--count]);
	} else {
		while (count < FDS_MAX && (fds[count] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
			count++;
		while (spare-- > 0 && count > 0)
			close(fds[--count]);
	}
	say(count, NULL);
}

/* A number becomes its, which is another one so far. */
static void
do_take(int number, int its)
{
	say(dup2(its, number) < 0, NULL);
	if (its != number)
		close(its);
}

__attribute__((noinline)) static void
do_alloc(int size)
{
	static void *kept;

	kept = realloc(kept, (size_t)size);
	say(kept ? 0 : -ENOMEM, NULL);
}

/* Bytes in use, mappings of malloc's own, and at last, as asking moves it: is a block of
 * 160 KiB still one of those?  Freeing a larger one that was moves the threshold for good. */
static void
do_malloc(bool at_last)
{
	struct mallinfo2 m = mallinfo2(), more = m;
	void            *p = at_last ? malloc(160 << 10) : NULL;

	if (p)
		more = mallinfo2();
	free(p);
	printf("%zu %zu %zu\n", m.uordblks, m.hblks, more.hblks - m.hblks);
	fflush(stdout);
}

/* A plugin: loaded, asked to work, unloaded.  Answers where its function is. */
static void *plugin;
static int (*plugin_work)(int n);

static void
do_load(char *path)
{
	path[strcspn(path, "\n")] = '\0';
	plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	plugin_work = plugin ? (int (*)(int))dlsym(plugin, "plugin_work") : NULL;
	printf("%p %s\n", (void *)plugin_work, plugin ? "" : dlerror());
	fflush(stdout);
}

__attribute__((noinline)) static void
do_call(int n)
{
	say(plugin_work(n), NULL);
}

static void
do_reload(void)
{
	struct component_error err = COMPONENT_ERROR_INIT;
	int                    r = component_profiler_reload(&err);

	say(r, &err);
}

static struct component_profile *own;

static void
do_profile(const char *name)
{
	struct component_error err = COMPONENT_ERROR_INIT;
	int                    r = component_profile_new(name, &own, &err);

	say(r, &err);
}

__attribute__((noinline)) static void
do_begin(int value)
{
	say(component_profile_add(own, (const void *)(intptr_t)value, 0), NULL);
}

/* As parameters: "idle=0 cum=1"; what it points to stays in words. */
static void
asked_more(char *words, struct component_profile_write_options *o)
{
	for (char *save, *word = strtok_r(words, " \n", &save); word; word = strtok_r(NULL, " \n", &save)) {
		char *value = word + strcspn(word, "=");

		*value++ = '\0';
		if (!strcmp(word, "idle"))
			o->without_idle = *value == '0';
		else if (!strcmp(word, "cum"))
			o->cum = *value == '1';
		else if (!strcmp(word, "n"))
			o->rows = (unsigned)strtoul(value, NULL, 10);
		else if (!strcmp(word, "focus"))
			o->focus = value;
		else if (!strcmp(word, "ignore"))
			o->ignore = value;
		else if (!strcmp(word, "sample_index"))
			o->sample_index = value;
	}
}

/* write FILE NAME SECONDS DEBUG FORMAT ("-": none) MORE */
static void
do_write(const char *line)
{
	struct component_profile_write_options o = COMPONENT_PROFILE_WRITE_OPTIONS_INIT;
	struct component_error                 err = COMPONENT_ERROR_INIT;
	char                                   file[512] = "", name[128] = "", format[16] = "-", words[1024];
	int                                    more = 0, fd, r;

	sscanf(line, "write %511s %127s %lf %d %15s%n", file, name, &o.seconds, &o.debug, format, &more);
	snprintf(words, sizeof(words), "%s", line + more);
	asked_more(words, &o);
	if (strcmp(format, "-") != 0)
		o.format = format;
	o.err = &err;
	fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	r = component_profile_write(name, fd, &o);
	close(fd);
	say(r, &err);
}

static pthread_mutex_t   left = PTHREAD_MUTEX_INITIALIZER, right = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;

__attribute__((noinline)) static void
lock_second(pthread_mutex_t *m)
{
	pthread_mutex_lock(m);
	burned++;
}

static void *
takes_left_then_right(void *arg)
{
	prctl(PR_SET_NAME, "left,]hand");
	pthread_mutex_lock(&left);
	pthread_barrier_wait(&both);
	lock_second(&right);
	return arg;
}

static void *
takes_right_then_left(void *arg)
{
	prctl(PR_SET_NAME, "righthand");
	pthread_mutex_lock(&right);
	pthread_barrier_wait(&both);
	lock_second(&left);
	return arg;
}

__attribute__((noinline)) static void
start_deadlock(void)
{
	pthread_t thread;
	int       r;

	pthread_barrier_init(&both, NULL, 2);
	r = pthread_create(&thread, NULL, takes_left_then_right, NULL);
	if (!r)
		r = pthread_create(&thread, NULL, takes_right_then_left, NULL);
	say(-r, NULL);
}

/* Memory that nobody will free, in blocks of 1 KiB. */
static void *leaked;

__attribute__((noinline)) static void
do_leak(int blocks)
{
	void **block = NULL;

	while (blocks-- > 0 && (block = malloc(1024))) {
		*block = leaked;
		leaked = block;
	}
	say(block ? 0 : -ENOMEM, NULL);
}

/* Threads that nobody will end. */
static void *
parked(void *arg)
{
	for (;;)
		pause();
	return arg;
}

__attribute__((noinline)) static void
do_park(int count)
{
	pthread_t thread;
	int       r = 0;

	while (count-- > 0 && !r)
		r = pthread_create(&thread, NULL, parked, NULL);
	say(-r, NULL);
}

/* Works, and takes no signal. */
static void *
deaf(void *arg)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	prctl(PR_SET_NAME, "deaf");
	return burner(arg);
}

static void
start_thread_of(void *(*run)(void *))
{
	pthread_t thread;

	say(-pthread_create(&thread, NULL, run, NULL), NULL);
}

/* Work on a tenant's behalf: some memory that is kept, a thread that computes, and one that
 * waits; both begin with the labels of who makes them. */
static void *kept[64];

__attribute__((noinline)) static void *
allocate_for_tenant(size_t size)
{
	void *p = malloc(size);

	__asm__ volatile("" : "+r"(p)); /* no tail call */
	return p;
}

static void *
wait_for_ever(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void
do_tenant(const char *name, bool burns)
{
	pthread_t thread;
	int       r;

	COMPONENT_LABEL_SCOPE("tenant", name);
	COMPONENT_LABEL_SCOPE("kind", burns ? "burns" : "waits");
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		free(kept[i]);
		kept[i] = allocate_for_tenant(1 << 16);
	}
	r = pthread_create(&thread, NULL, burns ? burner : wait_for_ever, NULL);
	say(-r, NULL);
}

/* Each of these says whether the command was one of its own; n is the number behind the word. */

static bool
command_of_the_server(const char *word, int n, char *line)
{
	char url[512];

	if (!strcmp(word, "start"))
		do_start();
	else if (!strcmp(word, "stop"))
		say(component_profiler_stop(), NULL);
	else if (!strcmp(word, "toggle"))
		do_toggle(n);
	else if (!strcmp(word, "reload"))
		do_reload();
	else if (!strcmp(word, "rate"))
		say(component_profiler_set_heap_rate((uint64_t)n), NULL);
	else if (!strcmp(word, "write"))
		do_write(line);
	else if (!strcmp(word, "change"))
		do_change(line + strlen("change"));
	else if (!strcmp(word, "nobind")) {
		bind_refused = n != 0;
		say(0, NULL);
	} else if (!strcmp(word, "running")) {
		component_profiler_url(url, sizeof(url));
		printf("%d %s\n", component_profiler_running(), url);
		fflush(stdout);
	} else
		return false;
	return true;
}

static bool
command_of_descriptors(const char *word, int n)
{
	struct rlimit limit;

	if (!strcmp(word, "exhaust"))
		do_exhaust(n);
	else if (!strcmp(word, "take"))
		do_take(n, open("/dev/null", O_RDONLY | O_CLOEXEC));
	else if (!strcmp(word, "takeevent"))
		do_take(n, eventfd(0, EFD_CLOEXEC));
	else if (!strcmp(word, "takeepoll"))
		do_take(n, epoll_create1(EPOLL_CLOEXEC));
	else if (!strcmp(word, "give"))
		say(close(n), NULL);
	else if (!strcmp(word, "closefrom")) {
		for (int fd = 3; fd < 1024; fd++)
			close(fd);
		say(0, NULL);
	} else if (!strcmp(word, "closestdio")) {
		say(0, NULL);
		close(2);
	} else if (!strcmp(word, "nofile")) {
		getrlimit(RLIMIT_NOFILE, &limit);
		limit.rlim_cur = (rlim_t)n;
		say(setrlimit(RLIMIT_NOFILE, &limit), NULL);
	} else
		return false;
	return true;
}

static bool
command_of_forks(const char *word, int n)
{
	if (!strcmp(word, "fork"))
		do_fork(false, 0);
	else if (!strcmp(word, "forkback"))
		do_fork(true, n);
	else if (!strcmp(word, "forks"))
		do_forks(n);
	else if (!strcmp(word, "daemonize"))
		do_daemonize();
	else
		return false;
	return true;
}

/* What a daemon may do that profiles show. */
static bool
command_of_work(const char *word, int n, char *line)
{
	char name[128] = "";

	if (!strcmp(word, "alloc"))
		do_alloc(n);
	else if (!strcmp(word, "leak"))
		do_leak(n);
	else if (!strcmp(word, "malloc"))
		do_malloc(n != 0);
	else if (!strcmp(word, "load"))
		do_load(line + strlen("load "));
	else if (!strcmp(word, "call"))
		do_call(n);
	else if (!strcmp(word, "unload"))
		say(dlclose(plugin), NULL);
	else if (sscanf(line, "profile %127s", name) == 1)
		do_profile(name);
	else if (!strcmp(word, "begin"))
		do_begin(n);
	else if (!strcmp(word, "end"))
		say(component_profile_remove(own, (const void *)(intptr_t)n), NULL);
	else if (sscanf(line, "tenant %127s", name) == 1)
		do_tenant(name, true);
	else if (sscanf(line, "waits %127[^\n]", name) == 1)
		do_tenant(name, false);
	else
		return false;
	return true;
}

static bool
command_of_threads(const char *word, int n)
{
	if (!strcmp(word, "block"))
		do_block(n);
	else if (!strcmp(word, "park"))
		do_park(n);
	else if (!strcmp(word, "deadlock"))
		start_deadlock();
	else if (!strcmp(word, "dump"))
		say(component_dump_threads(STDERR_FILENO), NULL);
	else if (!strcmp(word, "deaf"))
		start_thread_of(deaf);
	else if (!strcmp(word, "contend")) {
		for (int i = 0; i < n; i++)
			hold_contended();
		say(0, NULL);
	} else
		return false;
	return true;
}

static void
command(char *line)
{
	char word[32] = "";
	int  n = 0;

	sscanf(line, "%31s %d", word, &n);
	if (!command_of_the_server(word, n, line) && !command_of_descriptors(word, n) && !command_of_forks(word, n) &&
		!command_of_work(word, n, line) && !command_of_threads(word, n))
		say(-EINVAL, NULL);
}

static void
option(const char *name, char *value)
{
	static const char *hosts[9], *redact[9];
	static size_t      host_count, redact_count;

	if (!strcmp(name, "--address"))
		options.address = value;
	else if (!strcmp(name, "--socket"))
		options.debug_socket_path = value;
	else if (!strcmp(name, "--token-file"))
		options.token_file = value;
	else if (!strcmp(name, "--port-file"))
		options.port_file = value;
	else if (!strcmp(name, "--max-seconds"))
		options.max_seconds = atoll(value);
	else if (!strcmp(name, "--max-requests"))
		options.max_requests = atoll(value);
	else if (!strcmp(name, "--heap-rate"))
		options.heap_rate_bytes = (uint64_t)atoll(value);
	else if (!strcmp(name, "--unwinder"))
		options.unwinder = !strcmp(value, "libunwind") ? COMPONENT_UNWINDER_LIBUNWIND :
				   !strcmp(value, "frame-pointer") ? COMPONENT_UNWINDER_FRAME_POINTER :
								     COMPONENT_UNWINDER_TABLES;
	else if (!strcmp(name, "--allowed-host") && host_count < 8)
		hosts[host_count++] = value;
	else if (!strcmp(name, "--redact") && redact_count < 8)
		redact[redact_count++] = value;
	else if (strcmp(name, "--secret"))
		exit(2);
	options.allowed_hosts = hosts;
	options.redact = redact;
}

int
main(int argc, char **argv)
{
	char      line[1024];
	pthread_t thread;

	options.log = print_log;
	options.address = "127.0.0.1:0";
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--burn"))
			pthread_create(&thread, NULL, burner, NULL);
		else if (i + 1 < argc)
			option(argv[i], argv[i + 1]), i++;
	}
	while (fgets(line, sizeof(line), stdin))
		command(line);
	component_profiler_stop();
	return 0;
}
