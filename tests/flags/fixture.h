/*
 * fixture.h - what the units of flags share: a daemon with a row of each type.
 *
 * fixture_new() sets the variables back and makes the object with an environment of
 * its own; fixture_parse() takes the words behind the program's name.
 */
#ifndef TESTS_FLAGS_FIXTURE_H
#define TESTS_FLAGS_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <component/flags.h>

#include "registry.h"

#define WORDS_MAX 32
#define SECONDS   COMPONENT_SECONDS(1)
#define COUNT(a)  (sizeof(a) / sizeof((a)[0]))

static const char *const fixture_formats[] = { "text", "logfmt", "json", NULL };
static const char *const fixture_star[] = { "*", NULL };

struct fixture_options {
	bool                  pprof;
	const char           *address;
	int64_t               port;
	uint64_t              rate;
	int64_t               grace;
	struct component_list controllers;
	double                qps;
	const char           *token;
	const char           *file;
	int64_t               v;
	int                   format;
	bool                  leader;
};

static const struct fixture_options fixture_defaults = {
	.address = "127.0.0.1:6060", .port = -1, .rate = 512 * 1024, .grace = 25 * SECONDS,
	.controllers = { fixture_star, 1 }, .qps = 10, .token = "", .file = "", .leader = true,
};

static struct fixture_options opt;

/* clang-format off */
static const struct component_flag fixture_rows[] = {
	COMPONENT_FLAG_BOOL("enable-pprof", &opt.pprof, "Serve runtime profiles at host:port/debug/pprof/.",
		.section = "Profiling", .env = "ENABLE_PROFILING", .alias = "enable-profiling", .key = "profiling.enabled",
		.bits = COMPONENT_FLAG_BOOL_WORD | COMPONENT_FLAG_RELOADABLE),
	COMPONENT_FLAG_ADDRESS("profiling-bind-address", &opt.address,
		"Where to serve profiles, for example 127.0.0.1:6060, :6060, [::1]:6060 or unix:/run/x.sock. "
		"No effect unless profiling is enabled.",
		.section = "Profiling", .env = "PPROF_BIND_ADDRESS", .key = "profiling.address", .enables = "enable-pprof",
		.needs = "enable-pprof", .bits = COMPONENT_FLAG_RELOADABLE),
	COMPONENT_FLAG_INT("profile-port", &opt.port, "Serve profiles on this port of 127.0.0.1.",
		.section = "Profiling", .min = -1, .max = 65535, .bits = COMPONENT_FLAG_HIDDEN),
	COMPONENT_FLAG_SIZE("heap-profile-rate", &opt.rate, "Mean bytes between sampled allocations; 0 is off.",
		.section = "Profiling", .bits = COMPONENT_FLAG_RELOADABLE),
	COMPONENT_FLAG_STRING("profiling-token", &opt.token, "Require this token.",
		.section = "Profiling", .bits = COMPONENT_FLAG_SECRET | COMPONENT_FLAG_RELOADABLE),
	COMPONENT_FLAG_DURATION("graceful-shutdown-timeout", &opt.grace, "How long to finish work after a stop signal.",
		.section = "Lifecycle"),
	COMPONENT_FLAG_LIST("controllers", &opt.controllers, "Controllers to run.",
		.section = "Controllers", .bits = COMPONENT_FLAG_RELOADABLE),
	COMPONENT_FLAG_NUMBER("rate-limiter-qps", &opt.qps, "Retries a second over all keys.",
		.section = "Controllers", .min = 0, .max = 1000, .bits = COMPONENT_FLAG_RELOADABLE),
	COMPONENT_FLAG_BOOL("leader-elect", &opt.leader, "Run only while holding the lock.",
		.section = "Controllers", .deprecated = "elect"),
	COMPONENT_FLAG_INT("v", &opt.v, "Verbosity; higher prints more.",
		.section = "Logging", .letter = 'v', .env = "LOG_LEVEL", .words = "error=0 info=0 debug=4",
		.bits = COMPONENT_FLAG_RELOADABLE),
	COMPONENT_FLAG_ENUM("logging-format", &opt.format, "Shape of log lines.",
		.section = "Logging", .choices = fixture_formats, .env = "LOG_FORMAT", .bits = COMPONENT_FLAG_RELOADABLE),
	COMPONENT_FLAG_STRING("log-file", &opt.file, "Append logs to this file.", .section = "Logging"),
	COMPONENT_FLAG_END
};
/* clang-format on */

static const struct component_flags_spec fixture_spec = COMPONENT_FLAGS_SPEC(
	.name = "backend-controller", .summary = "Turns applications into operations.", .version = "1.2.3");

static struct component_error fixture_err;

/* env: NULL at the end; NULL for none. */
static inline struct component_flags *
fixture_new(const char *const *env)
{
	static const char *const none[] = { NULL };
	struct component_flags *f = NULL;

	opt = fixture_defaults;
	fixture_err.text[0] = '\0';
	assert_int_equal(component_flags_new(&fixture_spec, &f, &fixture_err), 0);
	assert_int_equal(component_flags_add(f, fixture_rows, &fixture_err), 0);
	f->environment = env ? env : none;
	f->secure = false;
	f->width = 80;
	return f;
}

/* words: NULL at the end. */
static inline int
fixture_parse(struct component_flags *f, const char *const *words)
{
	char *argv[WORDS_MAX] = { (char *)"backend-controller" };
	int   argc = 1;

	for (; *words; words++)
		argv[argc++] = (char *)*words;
	return component_flags_parse(f, argc, argv, &fixture_err);
}

#define PARSE(f, ...) fixture_parse(f, (const char *const[]){ __VA_ARGS__, NULL })
#define PARSE_NOTHING(f) fixture_parse(f, (const char *const[]){ NULL })
#define ENVIRONMENT(...) (const char *const[]){ __VA_ARGS__, NULL }

/* The faults in one string, as a person sees them but for the closing line. */
static inline const char *
fixture_faults(void)
{
	static char text[COMPONENT_ERROR_MAX];
	char       *end;

	snprintf(text, sizeof(text), "%s", fixture_err.text);
	end = strstr(text, "\nTry 'backend-controller --help' for more information.");
	assert_non_null(end);
	*end = '\0';
	return text;
}

/* A file that holds text; the name lives until the next call. */
static inline const char *
fixture_file(const char *text)
{
	static char path[64];
	size_t      size = strlen(text);
	int         fd;

	snprintf(path, sizeof(path), "/tmp/test_flags_XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, size), (ssize_t)size);
	close(fd);
	return path;
}

static inline void
fixture_rewrite(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

#endif
