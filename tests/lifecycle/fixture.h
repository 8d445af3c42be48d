/*
 * fixture.h - what the tests of a component's life share: a component with a log
 * file in a directory of its own, driven as a daemon's poll() loop would.
 */
#ifndef TESTS_LIFECYCLE_FIXTURE_H
#define TESTS_LIFECYCLE_FIXTURE_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <component/component.h>

#include "tree.h"
#include "waiting.h"

#define MS 1000000LL
#define DEADLINE_MS 60000

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static char life_dir[64];

static inline const char *
life_path(const char *name)
{
	return tree_path(life_dir, name);
}

static inline const char *
life_read(const char *path)
{
	static char buf[65536];
	int         fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t     size = fd < 0 ? 0 : read(fd, buf, sizeof(buf) - 1);

	buf[size > 0 ? size : 0] = '\0';
	if (fd >= 0)
		close(fd);
	return buf;
}

static inline const char *
life_log(void)
{
	return life_read(life_path("log"));
}

/* Parses the given options after a --log-file of ours. */
static inline int
life_parse(struct component *c, struct component_error *err, const char *const *options)
{
	static char log_option[300];
	char       *argv[16] = { (char *)(uintptr_t)"daemon", log_option };
	int         argc = 2;

	snprintf(log_option, sizeof(log_option), "--log-file=%s", life_path("log"));
	for (; options && *options; options++)
		argv[argc++] = (char *)(uintptr_t)*options;
	return component_parse(c, argc, argv, err);
}

#define OPTIONS(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* One turn of a daemon's own loop. */
static inline void
life_turn(struct component *c, int ms)
{
	struct pollfd p = { component_fd(c), POLLIN, 0 };

	if (poll(&p, 1, ms) == 1)
		assert_int_equal(component_dispatch(c), 0);
}

static inline int
life_run(struct component *c)
{
	int64_t end = now_ns() + DEADLINE_MS * MS;
	int     status = -1;

	while (!component_finished(c, &status) && now_ns() < end)
		life_turn(c, 1000);
	assert_true(component_finished(c, NULL));
	return status;
}

static inline int
life_setup(void **state)
{
	(void)state;
	snprintf(life_dir, sizeof(life_dir), "/tmp/test_life.XXXXXX");
	return mkdtemp(life_dir) ? 0 : -1;
}

static inline int
life_teardown(void **state)
{
	static const char *const names[] = { "log", "log.1", "pid", "pid2", "config.yaml", "notify" };

	(void)state;
	for (size_t i = 0; i < COUNT(names); i++)
		unlink(life_path(names[i]));
	return rmdir(life_dir);
}

#endif
