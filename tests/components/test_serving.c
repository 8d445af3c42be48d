/*
 * test_serving.c - what a component that serves has said is true at that moment, and what it had
 * is gone when its start fails or it ends.
 */
#include <config.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <component/component.h>
#include <component/profiler.h>

#include "../lifecycle/fixture.h"

#define DESCRIPTORS 256 /* that a child looks at */

static char address[sizeof("unix:") + 256];

static struct sockaddr_un
where(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", life_path("socket"));
	return a;
}

/* A connection with the request sent. */
static int
asked(const char *what)
{
	struct sockaddr_un a = where();
	char               request[128];
	int                fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int                n = snprintf(request, sizeof(request), "GET %s HTTP/1.0\r\nHost: localhost\r\n\r\n", what);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(send(fd, request, (size_t)n, MSG_NOSIGNAL), n);
	return fd;
}

/* Its status. */
static int
answered(int fd)
{
	char answer[64] = "";
	int  status = 0;

	assert_true(recv(fd, answer, sizeof(answer) - 1, MSG_WAITALL) > 0);
	assert_int_equal(sscanf(answer, "HTTP/1.%*d %d", &status), 1);
	close(fd);
	return status;
}

static struct component *
made(const struct component_spec *spec)
{
	struct component_error err = COMPONENT_ERROR_INIT;
	struct component      *c = NULL;

	assert_int_equal(component_new(spec, &c, &err), 0);
	return c;
}

static void
parsed(struct component *c, const char *option, const char *more)
{
	struct component_error err = COMPONENT_ERROR_INIT;
	char                   text[320];
	const char *const      options[] = { text, more, NULL };

	snprintf(address, sizeof(address), "unix:%s", life_path("socket"));
	snprintf(text, sizeof(text), "--%s=%s", option, address);
	if (life_parse(c, &err, options) != 0)
		fail_msg("%s", err.text);
}

static const struct component_spec plain = { .size = sizeof(plain), .name = "daemon", .summary = "A daemon." };

/* ---- the start ---- */

static int status_when_said;

static void
on_log(void *arg, enum component_log_level level, const char *message, const struct component_log_field *fields, size_t count)
{
	(void)arg;
	(void)level;
	(void)fields;
	(void)count;
	if (!strncmp(message, "starting profiling server", strlen("starting profiling server")))
		status_when_said = answered(asked("/debug/pprof/cmdline"));
}

static void
where_health_has_the_address_profiles_are_there_when_it_is_said(void **state)
{
	struct component_profiler_options o = COMPONENT_PROFILER_OPTIONS_INIT;
	struct component_error            err = COMPONENT_ERROR_INIT;
	struct component                 *c = made(&plain);

	(void)state;
	assert_int_equal(component_use(c, component_health(), &err), 0);
	parsed(c, "health-probe-bind-address", NULL);
	assert_int_equal(component_start(c, &err), 0);
	assert_int_equal(answered(asked("/debug/pprof/cmdline")), 404);
	o.address = address;
	o.log = on_log;
	if (component_profiler_start_options(&o, &err) != 0)
		fail_msg("%s", err.text);
	assert_int_equal(status_when_said, 200);
	component_profiler_stop();
	component_free(c);
}

static bool freed;

static int
own_init(struct component *c, void **ret, struct component_error *err)
{
	(void)c;
	(void)err;
	*ret = &freed;
	return 0;
}

static void
own_free(void *state)
{
	*(bool *)state = true;
}

static int
start_in_vain(struct component *c, struct component_error *err)
{
	(void)c;
	assert_true(component_profiler_running());
	component_error_set(err, "in vain");
	return -EIO;
}

static void
a_start_that_fails_ends_profiling_and_frees_all(void **state)
{
	static const struct component_spec fails = { .size = sizeof(fails), .name = "daemon", .summary = "A daemon.", .start = start_in_vain };
	static const struct component_part own = { .size = sizeof(own), .name = "own", .init = own_init, .free = own_free };
	struct component_error             err = COMPONENT_ERROR_INIT;
	struct component                  *c = made(&fails);

	(void)state;
	assert_int_equal(component_use(c, &own, &err), 0);
	assert_int_equal(component_use(c, component_profiling(), &err), 0);
	parsed(c, "profiling-bind-address", "--enable-pprof");
	assert_int_equal(component_start(c, &err), -EIO);
	assert_string_equal(err.text, "in vain");
	assert_false(component_profiler_running());
	assert_int_equal(access(where().sun_path, F_OK), -1);
	component_free(c);
	assert_true(freed);
}

/* ---- children forked at the start ---- */

static atomic_bool starts_watched;
static atomic_uint forked_at[3]; /* sockets that listen, the loader, a loop that is made */
static atomic_uint had_at_start;

static int
sockets(void)
{
	int       count = 0, type;
	socklen_t size = sizeof(type);

	for (int fd = 0; fd < DESCRIPTORS; fd++)
		count += !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size);
	return count;
}

static int sockets_before;

static void
fork_here(int where)
{
	int   status;
	pid_t pid;

	if (!atomic_load(&starts_watched))
		return;
	pid = fork();
	if (pid == 0)
		_exit(sockets() - sockets_before);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	atomic_fetch_add(&had_at_start, (unsigned)WEXITSTATUS(status));
	atomic_fetch_add(&forked_at[where], 1);
}

__attribute__((visibility("default"))) int
listen(int fd, int backlog)
{
	fork_here(0);
	return (int)syscall(SYS_listen, fd, backlog);
}

__attribute__((visibility("default"))) void *
dlopen(const char *path, int flags)
{
	static __typeof__(dlopen) *real;

	if (!real)
		real = (__typeof__(real))dlsym(RTLD_NEXT, "dlopen");
	fork_here(1);
	return real(path, flags);
}

/* libevent's, on the server's thread. */
__attribute__((visibility("default"))) int
epoll_create1(int flags)
{
	fork_here(2);
	return (int)syscall(SYS_epoll_create1, flags);
}

static void
no_child_gets_what_a_server_has_that_is_about_to_begin(void **state)
{
	struct component_error err = COMPONENT_ERROR_INIT;
	struct component      *c = made(&plain);

	(void)state;
	assert_int_equal(component_use(c, component_health(), &err), 0);
	assert_int_equal(component_use(c, component_profiling(), &err), 0);
	parsed(c, "health-probe-bind-address", "--enable-pprof");
	sockets_before = sockets();
	atomic_store(&starts_watched, true);
	assert_int_equal(component_start(c, &err), 0);
	atomic_store(&starts_watched, false);
	component_free(c);
	for (size_t i = 0; i < 3; i++)
		assert_true(atomic_load(&forked_at[i]) > 0);
	assert_int_equal(atomic_load(&had_at_start), 0);
}

/* ---- the end ---- */

static atomic_bool     ended;
static atomic_uint     forked; /* children so far */
static atomic_bool     unlinks_watched, unlinked;

/* While the socket's file is removed, children are forked: that is when the end is half done. */
__attribute__((visibility("default"))) int
unlink(const char *path)
{
	unsigned before = atomic_load(&forked);

	if (atomic_load(&unlinks_watched) && !strcmp(path, where().sun_path)) {
		WAIT_FOR(atomic_load(&forked) >= before + 2);
		atomic_store(&unlinked, true);
	}
	return unlinkat(AT_FDCWD, path, 0);
}

/* How many sockets of that name this process has: listeners, and ends of connections that were accepted. */
static int
served(const struct sockaddr_un *name)
{
	int count = 0;

	for (int fd = 0; fd < DESCRIPTORS; fd++) {
		struct sockaddr_un a = { .sun_family = 0 };
		socklen_t          size = sizeof(a);

		if (!getsockname(fd, (struct sockaddr *)&a, &size) && a.sun_family == AF_UNIX &&
			!strcmp(a.sun_path, name->sun_path))
			count++;
	}
	return count;
}

/* Forks until the end, and gives what the children had. */
static void *
forks(void *arg)
{
	struct sockaddr_un name = where();
	intptr_t           sum = 0;
	int                status;
	pid_t              pid;

	(void)arg;
	while (!atomic_load(&ended)) {
		pid = fork();
		if (pid == 0)
			_exit(served(&name));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status));
		sum += WEXITSTATUS(status);
		atomic_fetch_add(&forked, 1);
	}
	return (void *)sum;
}

static void
no_child_gets_what_a_server_has_that_is_about_to_end(void **state)
{
	struct component_error err = COMPONENT_ERROR_INIT;
	struct component      *c = made(&plain);
	struct sockaddr_un     name;
	pthread_t              thread;
	void                  *had;
	int                    fd;

	(void)state;
	assert_int_equal(component_use(c, component_health(), &err), 0);
	parsed(c, "health-probe-bind-address", NULL);
	assert_int_equal(component_start(c, &err), 0);
	name = where();
	fd = asked("/readyz"); /* the loop, which is this thread's, does not answer: so the end waits for a while */
	WAIT_FOR(served(&name) >= 2);
	assert_int_equal(pthread_create(&thread, NULL, forks, NULL), 0);
	atomic_store(&unlinks_watched, true);
	component_free(c);
	atomic_store(&unlinks_watched, false);
	atomic_store(&ended, true);
	pthread_join(thread, &had);
	assert_true(atomic_load(&unlinked));
	assert_int_equal((intptr_t)had, 0);
	close(fd);
}

/* ---- children ---- */

#define CHILD_S 60 /* a child that hangs is ended by a signal */

static void
freed_in_a_child(struct component *c)
{
	int   status;
	pid_t pid = fork();

	if (pid == 0) {
		alarm(CHILD_S);
		component_free(c);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void
a_child_that_is_forked_while_somebody_asks_for_a_page_may_free_the_component(void **state)
{
	struct component_error err = COMPONENT_ERROR_INIT;
	struct component      *c = made(&plain);
	int                    fd;

	(void)state;
	assert_int_equal(component_use(c, component_profiling(), &err), 0);
	parsed(c, "profiling-bind-address", "--enable-pprof");
	assert_int_equal(component_start(c, &err), 0);
	life_turn(c, 0);
	fd = asked("/statusz"); /* the loop, which is this thread's, is asked and does not answer */
	assert_int_equal(poll(&(struct pollfd){ component_fd(c), POLLIN, 0 }, 1, -1), 1);
	for (int i = 0; i < 3; i++) /* who asks waits a moment after that */
		freed_in_a_child(c);
	close(fd);
	component_free(c);
}

static _Thread_local bool waits_in_lock;
static atomic_bool        in_lock, forks_now;

static bool
is_asleep(pid_t tid)
{
	char        path[64];
	const char *name_end;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
	name_end = strrchr(life_read(path), ')');
	return name_end && !strncmp(name_end, ") S", 3);
}

/* A thread that has a lock keeps it until another one has forked, or waits for it. */
__attribute__((visibility("default"))) int
pthread_mutex_unlock(pthread_mutex_t *lock)
{
	static int (*real)(pthread_mutex_t *lock);

	if (!real)
		real = (int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_unlock");
	if (waits_in_lock) {
		waits_in_lock = false;
		atomic_store(&in_lock, true);
		WAIT_FOR(atomic_load(&forks_now) && is_asleep(getpid()));
	}
	return real(lock);
}

static void *
begins(void *c)
{
	waits_in_lock = true;
	assert_int_equal(component_use(c, component_profiling(), NULL), 0);
	assert_false(waits_in_lock);
	return NULL;
}

static void
a_child_that_is_forked_while_the_part_begins_elsewhere_may_free_the_component(void **state)
{
	struct component_error err = COMPONENT_ERROR_INIT;
	struct component      *c = made(&plain), *other = made(&plain);
	pthread_t              thread;

	(void)state;
	assert_int_equal(component_use(c, component_profiling(), &err), 0);
	assert_int_equal(pthread_create(&thread, NULL, begins, other), 0);
	WAIT_FOR(atomic_load(&in_lock));
	atomic_store(&forks_now, true);
	freed_in_a_child(c);
	pthread_join(thread, NULL);
	component_free(other);
	component_free(c);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, life_setup, life_teardown)
		TEST(no_child_gets_what_a_server_has_that_is_about_to_begin),
		TEST(where_health_has_the_address_profiles_are_there_when_it_is_said),
		TEST(a_start_that_fails_ends_profiling_and_frees_all),
		TEST(no_child_gets_what_a_server_has_that_is_about_to_end),
		TEST(a_child_that_is_forked_while_somebody_asks_for_a_page_may_free_the_component),
		TEST(a_child_that_is_forked_while_the_part_begins_elsewhere_may_free_the_component),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
