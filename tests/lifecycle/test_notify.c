/*
 * test_notify.c - what the service manager hears: ready when all checks pass,
 * reloading, stopping, and signs of life from the loop alone.
 */
#include <config.h>

#include "fixture.h"

#include <sys/socket.h>
#include <sys/un.h>

#include "notify.h"

static int manager = -1;

static void
listen_at(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t             length = strlen(path);
	socklen_t          size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);

	memcpy(address.sun_path, path, length);
	if (path[0] == '@')
		address.sun_path[0] = '\0';
	manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(manager, (struct sockaddr *)&address, size + (path[0] != '@')), 0);
	assert_int_equal(setenv("NOTIFY_SOCKET", path, 1), 0);
}

/* The next message, "" when there is none. */
static const char *
heard(void)
{
	static char buf[4096];
	ssize_t     size = recv(manager, buf, sizeof(buf) - 1, 0);

	buf[size > 0 ? size : 0] = '\0';
	return buf;
}

static const struct component_spec spec = { .size = sizeof(spec), .name = "daemon", .summary = "A daemon." };

static struct component *
made(const char *const *options)
{
	struct component_error err = COMPONENT_ERROR_INIT;
	struct component      *c = NULL;

	assert_int_equal(component_new(&spec, &c, &err), 0);
	if (life_parse(c, &err, options) != 0)
		fail_msg("%s", err.text);
	return c;
}

static int
clean(void **state)
{
	if (manager >= 0)
		close(manager);
	manager = -1;
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
	return life_teardown(state);
}

static void
a_whole_life_at(const char *path)
{
	struct component *c;
	long long         usec = 0;
	int64_t           before;

	listen_at(path);
	c = made(NULL);
	assert_string_equal(heard(), "");
	assert_int_equal(component_start(c, NULL), 0);
	assert_string_equal(heard(), "READY=1\nSTATUS=running");
	assert_string_equal(heard(), "");

	before = now_ns() / 1000;
	assert_int_equal(component_reload(c, NULL), 0);
	assert_int_equal(sscanf(heard(), "RELOADING=1\nMONOTONIC_USEC=%lld", &usec), 1);
	assert_true(usec >= before && usec <= now_ns() / 1000);
	assert_string_equal(heard(), "READY=1\nSTATUS=running");

	component_hold(c, "work");
	component_stop(c);
	life_turn(c, 1000);
	assert_string_equal(heard(), "STOPPING=1\nSTATUS=stopping");
	assert_string_equal(heard(), "STATUS=stopping: waiting for work");
	component_release(c, "work");
	assert_int_equal(life_run(c), 0);
	assert_string_equal(heard(), "");
	assert_string_equal(getenv("NOTIFY_SOCKET"), path);
	component_free(c);
}

static void
a_manager_hears_ready_reloading_and_stopping(void **state)
{
	(void)state;
	a_whole_life_at(life_path("notify"));
}

static void
a_manager_may_listen_at_an_abstract_name(void **state)
{
	char path[64];

	(void)state;
	snprintf(path, sizeof(path), "@component-test-%d", getpid());
	a_whole_life_at(path);
}

static int
check_flag(struct component *c, void *arg, struct component_error *err)
{
	(void)c;
	(void)err;
	return *(bool *)arg ? 0 : -EAGAIN;
}

static void
ready_is_told_when_all_checks_pass_and_only_once(void **state)
{
	struct component *c;
	bool              synced = false;
	int64_t           end;

	(void)state;
	listen_at(life_path("notify"));
	c = made(NULL);
	assert_int_equal(component_check_add(c, "synced", check_flag, &synced), 0);
	assert_int_equal(component_start(c, NULL), 0);
	end = now_ns() + 250 * MS;
	while (now_ns() < end)
		life_turn(c, 20);
	assert_int_equal(component_reload(c, NULL), 0);
	assert_string_equal(heard(), "");
	synced = true;
	end = now_ns() + DEADLINE_MS * MS;
	while (strcmp(heard(), "READY=1\nSTATUS=running") && now_ns() < end)
		life_turn(c, 1000);
	assert_true(now_ns() < end);
	synced = false;
	end = now_ns() + 250 * MS;
	while (now_ns() < end)
		life_turn(c, 20);
	assert_string_equal(heard(), "");
	component_free(c);
}

static void
without_a_manager_nothing_is_sent_and_nothing_fails(void **state)
{
	struct component *c = made(NULL);

	(void)state;
	assert_int_equal(component_start(c, NULL), 0);
	assert_int_equal(component_reload(c, NULL), 0);
	component_free(c);

	/* Or with one that has gone. */
	assert_int_equal(setenv("NOTIFY_SOCKET", life_path("notify"), 1), 0);
	c = made(NULL);
	assert_int_equal(component_start(c, NULL), 0);
	assert_int_equal(component_reload(c, NULL), 0);
	component_free(c);
}

static void
signs_of_life_come_from_the_loop_at_half_the_time(void **state)
{
	struct component *c;
	int64_t           begin;
	int               beats = 0;
	char              pid[16];

	(void)state;
	listen_at(life_path("notify"));
	snprintf(pid, sizeof(pid), "%d", getpid());
	assert_int_equal(setenv("WATCHDOG_USEC", "100000", 1), 0);
	assert_int_equal(setenv("WATCHDOG_PID", pid, 1), 0);
	c = made(NULL);
	assert_int_equal(component_start(c, NULL), 0);
	assert_string_equal(heard(), "READY=1\nSTATUS=running");
	/* The loop does not turn, so nothing is heard. */
	assert_int_equal(poll(&(struct pollfd){ manager, POLLIN, 0 }, 1, 150), 0);
	begin = now_ns();
	while (beats < 4) { /* the first one was due, the second one may be soon */
		life_turn(c, 1000);
		beats += !strcmp(heard(), "WATCHDOG=1");
		assert_true(now_ns() - begin < DEADLINE_MS * MS);
	}
	assert_true(now_ns() - begin >= 2 * 50 * MS);
	component_free(c);
}

static int64_t
watchdog_of(const char *usec, const char *pid, const char **ret_name)
{
	struct notify n;
	int           result;

	setenv("WATCHDOG_USEC", usec, 1);
	if (pid)
		setenv("WATCHDOG_PID", pid, 1);
	else
		unsetenv("WATCHDOG_PID");
	result = notify_init(&n, ret_name);
	return result < 0 ? result : n.watchdog_ns;
}

static void
a_watchdog_that_is_not_ours_or_makes_no_sense_is_none(void **state)
{
	const char *name = NULL;

	(void)state;
	assert_int_equal(setenv("NOTIFY_SOCKET", "/nowhere", 1), 0);
	assert_int_equal(watchdog_of("3000000", NULL, &name), 3000000000LL);
	assert_int_equal(watchdog_of("3000000", "1", &name), 0);
	assert_int_equal(watchdog_of("", NULL, &name), 0);
	assert_null(name);
	assert_int_equal(watchdog_of("0", NULL, &name), -EINVAL);
	assert_int_equal(watchdog_of("-1", NULL, &name), -EINVAL);
	assert_int_equal(watchdog_of("1s", NULL, &name), -EINVAL);
	assert_int_equal(watchdog_of("99999999999999999999", NULL, &name), -EINVAL);
	assert_string_equal(name, "WATCHDOG_USEC");
	assert_int_equal(watchdog_of("1", "x", &name), -EINVAL);
	assert_string_equal(name, "WATCHDOG_PID");
}

static void
a_socket_name_that_makes_no_sense_is_logged_and_ignored(void **state)
{
	static const char *const names[] = { "relative", "@", "/" };
	char                     long_name[200];
	struct component        *c;
	struct notify            n;
	const char              *name = NULL;

	(void)state;
	for (size_t i = 0; i < COUNT(names); i++) {
		assert_int_equal(setenv("NOTIFY_SOCKET", names[i], 1), 0);
		assert_int_equal(notify_init(&n, &name), -EINVAL);
	}
	memset(long_name, '/', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	assert_int_equal(setenv("NOTIFY_SOCKET", long_name, 1), 0);
	assert_int_equal(notify_init(&n, &name), -EINVAL);
	assert_string_equal(name, "NOTIFY_SOCKET");
	c = made(NULL);
	assert_int_equal(component_start(c, NULL), 0);
	assert_non_null(strstr(life_log(), "ignored variable=NOTIFY_SOCKET"));
	component_free(c);
}

static void
a_manager_that_does_not_read_stops_nothing(void **state)
{
	struct component *c;
	int64_t           begin;

	(void)state;
	listen_at(life_path("notify"));
	c = made(NULL);
	assert_int_equal(component_start(c, NULL), 0);
	begin = now_ns();
	for (int i = 0; i < 2000; i++)
		assert_int_equal(component_reload(c, NULL), 0);
	assert_true(now_ns() - begin < DEADLINE_MS * MS);
	component_free(c);
}

static void
a_manager_that_reads_late_hears_that_a_reload_has_ended(void **state)
{
	struct component *c;
	struct notify     n;
	const char       *name;
	int64_t           end = now_ns() + DEADLINE_MS * MS;

	(void)state;
	listen_at(life_path("notify"));
	c = made(NULL);
	assert_int_equal(component_start(c, NULL), 0);
	assert_int_equal(notify_init(&n, &name), 0);
	while (notify_send(&n, "STATUS=something") == 0)
		;
	assert_string_equal(heard(), "READY=1\nSTATUS=running");
	assert_int_equal(component_reload(c, NULL), 0); /* there is room for its beginning alone */
	while (!strcmp(heard(), "STATUS=something"))
		;
	while (strcmp(heard(), "READY=1\nSTATUS=running") && now_ns() < end)
		life_turn(c, 1000);
	assert_true(now_ns() < end);
	component_free(c);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, life_setup, clean)
		TEST(a_manager_hears_ready_reloading_and_stopping),
		TEST(a_manager_may_listen_at_an_abstract_name),
		TEST(ready_is_told_when_all_checks_pass_and_only_once),
		TEST(without_a_manager_nothing_is_sent_and_nothing_fails),
		TEST(signs_of_life_come_from_the_loop_at_half_the_time),
		TEST(a_watchdog_that_is_not_ours_or_makes_no_sense_is_none),
		TEST(a_socket_name_that_makes_no_sense_is_logged_and_ignored),
		TEST(a_manager_that_does_not_read_stops_nothing),
		TEST(a_manager_that_reads_late_hears_that_a_reload_has_ended),
	};

	unsetenv("NOTIFY_SOCKET");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
