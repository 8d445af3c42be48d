/*
 * test_log.c - log lines in three shapes: always one line, always whole, never a
 * reason to fail.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "log.h"
#include "waiting.h"

/* 2024-02-29T23:59:58.007Z */
#define LEAP_MS 1709251198007LL

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const char *
line_of(enum log_format format, int64_t ms, enum component_log_level level, const char *message,
	const struct component_log_field *fields, size_t count)
{
	static char buf[LOG_LINE_MAX + 1];
	size_t      size = log_line(buf, format, ms, level, message, fields, 0, count);

	assert_true(size <= LOG_LINE_MAX);
	buf[size] = '\0';
	return buf;
}

static void
the_three_shapes_of_a_line(void **state)
{
	static const struct component_log_field fields[] = {
		{ "url", "http://127.0.0.1:7777/debug/pprof/" }, { "seconds", "30" }, { "empty", "" },
		{ "title", "a b" },
	};
	static const char message[] = "starting profiling server on port 7777";

	(void)state;
	assert_string_equal(line_of(LOG_TEXT, LEAP_MS, COMPONENT_LOG_INFO, message, fields, 4),
		"2024-02-29T23:59:58.007Z info starting profiling server on port 7777 "
		"url=\"http://127.0.0.1:7777/debug/pprof/\" seconds=30 empty=\"\" title=\"a b\"\n");
	assert_string_equal(line_of(LOG_LOGFMT, LEAP_MS, COMPONENT_LOG_INFO, message, fields, 4),
		"time=\"2024-02-29T23:59:58.007Z\" level=info "
		"msg=\"starting profiling server on port 7777\" "
		"url=\"http://127.0.0.1:7777/debug/pprof/\" seconds=30 empty=\"\" title=\"a b\"\n");
	assert_string_equal(line_of(LOG_JSON, LEAP_MS, COMPONENT_LOG_INFO, message, fields, 4),
		"{\"time\":\"2024-02-29T23:59:58.007Z\",\"level\":\"info\","
		"\"msg\":\"starting profiling server on port 7777\","
		"\"url\":\"http://127.0.0.1:7777/debug/pprof/\",\"seconds\":\"30\",\"empty\":\"\","
		"\"title\":\"a b\"}\n");
}

static void
the_names_of_the_levels(void **state)
{
	static const char *const names[] = { "error", "warning", "info", "debug" };
	char                     want[64];

	(void)state;
	for (int i = 0; i <= COMPONENT_LOG_DEBUG; i++) {
		snprintf(want, sizeof(want), "1970-01-01T00:00:00.000Z %s m\n", names[i]);
		assert_string_equal(line_of(LOG_TEXT, 0, (enum component_log_level)i, "m", NULL, 0), want);
	}
}

static void
dates_are_those_of_the_calendar(void **state)
{
	static const struct {
		int64_t     ms;
		const char *date;
	} cases[] = {
		{ 0, "1970-01-01T00:00:00.000Z" },
		{ 951782400000, "2000-02-29T00:00:00.000Z" },
		{ 951868800000, "2000-03-01T00:00:00.000Z" },
		{ 1735689599999, "2024-12-31T23:59:59.999Z" },
		{ 4107542399000, "2100-02-28T23:59:59.000Z" },
		{ 4107542400000, "2100-03-01T00:00:00.000Z" },
		{ 253402300799999, "9999-12-31T23:59:59.999Z" },
		{ -1, "1970-01-01T00:00:00.000Z" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_memory_equal(line_of(LOG_TEXT, cases[i].ms, COMPONENT_LOG_INFO, "m", NULL, 0),
			cases[i].date, strlen(cases[i].date));
}

static void
nothing_in_a_value_makes_a_second_line_or_ends_its_quotes(void **state)
{
	static const struct {
		const char *value, *text, *logfmt, *json;
	} cases[] = {
		{ "a\nlevel=error", "\"a\\nlevel=error\"", "\"a\\nlevel=error\"", "\"a\\nlevel=error\"" },
		{ "\r\t", "\"\\r\\t\"", "\"\\r\\t\"", "\"\\r\\t\"" },
		{ "say \"x\"", "\"say \\\"x\\\"\"", "\"say \\\"x\\\"\"", "\"say \\\"x\\\"\"" },
		{ "c:\\d", "\"c:\\\\d\"", "\"c:\\\\d\"", "\"c:\\\\d\"" },
		{ "\033[31m", "\"\\x1b[31m\"", "\"\\x1b[31m\"", "\"\\u001b[31m\"" },
		{ "\x7f", "\"\\x7f\"", "\"\\x7f\"", "\"\\u007f\"" },
		{ "\xc2\x85", "\"\\x85\"", "\"\\x85\"", "\"\\u0085\"" },
		{ "\xe2\x80\xa8", "\"\\u2028\"", "\"\\u2028\"", "\"\\u2028\"" },
		{ "gr\xc3\xbc\xc3\x9f", "\"gr\xc3\xbc\xc3\x9f\"", "\"gr\xc3\xbc\xc3\x9f\"", "\"gr\xc3\xbc\xc3\x9f\"" },
		{ "\xf0\x9f\x90\xa7", "\"\xf0\x9f\x90\xa7\"", "\"\xf0\x9f\x90\xa7\"", "\"\xf0\x9f\x90\xa7\"" },
		/* Broken: alone, overlong, surrogate, too high, cut short. */
		{ "\xff", "\"\\xff\"", "\"\\xff\"", "\"\\ufffd\"" },
		{ "\xc0\xaf", "\"\\xc0\\xaf\"", "\"\\xc0\\xaf\"", "\"\\ufffd\\ufffd\"" },
		{ "\xed\xa0\x80", "\"\\xed\\xa0\\x80\"", "\"\\xed\\xa0\\x80\"", "\"\\ufffd\\ufffd\\ufffd\"" },
		{ "\xf4\x90\x80\x80", "\"\\xf4\\x90\\x80\\x80\"", "\"\\xf4\\x90\\x80\\x80\"",
		  "\"\\ufffd\\ufffd\\ufffd\\ufffd\"" },
		{ "x\xe2\x82", "\"x\\xe2\\x82\"", "\"x\\xe2\\x82\"", "\"x\\ufffd\\ufffd\"" },
		{ "a=b", "\"a=b\"", "\"a=b\"", "\"a=b\"" },
		{ "/usr/bin/x-1.2_3@h^+", "/usr/bin/x-1.2_3@h^+", "/usr/bin/x-1.2_3@h^+", "\"/usr/bin/x-1.2_3@h^+\"" },
	};
	char want[512];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct component_log_field field = { "k", cases[i].value };

		snprintf(want, sizeof(want), "1970-01-01T00:00:00.000Z info m k=%s\n", cases[i].text);
		assert_string_equal(line_of(LOG_TEXT, 0, COMPONENT_LOG_INFO, "m", &field, 1), want);
		snprintf(want, sizeof(want), "time=\"1970-01-01T00:00:00.000Z\" level=info msg=\"m\" k=%s\n",
			cases[i].logfmt);
		assert_string_equal(line_of(LOG_LOGFMT, 0, COMPONENT_LOG_INFO, "m", &field, 1), want);
		snprintf(want, sizeof(want),
			"{\"time\":\"1970-01-01T00:00:00.000Z\",\"level\":\"info\",\"msg\":\"m\",\"k\":%s}\n",
			cases[i].json);
		assert_string_equal(line_of(LOG_JSON, 0, COMPONENT_LOG_INFO, "m", &field, 1), want);
	}
}

static void
a_message_with_a_newline_is_one_line_too(void **state)
{
	(void)state;
	assert_string_equal(line_of(LOG_TEXT, 0, COMPONENT_LOG_ERROR, "say \"x\"\nand more", NULL, 0),
		"1970-01-01T00:00:00.000Z error say \"x\"\\nand more\n");
	assert_string_equal(line_of(LOG_LOGFMT, 0, COMPONENT_LOG_ERROR, "say \"x\"\nand more", NULL, 0),
		"time=\"1970-01-01T00:00:00.000Z\" level=error msg=\"say \\\"x\\\"\\nand more\"\n");
}

static void
keys_cannot_break_a_line_or_hide_its_own(void **state)
{
	static const struct component_log_field fields[] = {
		{ "level", "x" }, { "a b=\"c\"\n", "y" },
	};

	(void)state;
	assert_string_equal(line_of(LOG_LOGFMT, 0, COMPONENT_LOG_INFO, "m", fields, 2),
		"time=\"1970-01-01T00:00:00.000Z\" level=info msg=\"m\" fields.level=x a_b__c__=y\n");
}

/* Are quotes and braces closed as json wants them? */
static bool
is_json_object(const char *line)
{
	bool in_string = false;

	if (*line++ != '{')
		return false;
	for (; *line; line++) {
		if (in_string && *line == '\\')
			line++;
		else if (*line == '"')
			in_string = !in_string;
		else if (!in_string && *line == '}')
			return !strcmp(line, "}\n");
	}
	return false;
}

static void
what_is_too_long_is_cut_and_the_line_stays_whole(void **state)
{
	static char long_text[3 * LOG_LINE_MAX];

	(void)state;
	/* Every length around the limit, and characters of several bytes. */
	for (size_t length = LOG_LINE_MAX - 200; length < LOG_LINE_MAX + 20; length++) {
		for (int shape = 0; shape < 3; shape++) {
			struct component_log_field fields[] = {
				{ "first", long_text }, { "second", "x y" }, { "third", "z" },
			};
			const char *line;

			memset(long_text, shape == 1 ? '\n' : 'x', length);
			if (shape == 2)
				for (size_t i = 0; i + 2 < length; i += 3)
					memcpy(long_text + i, "\xe2\x82\xac", 3);
			long_text[length] = '\0';
			line = line_of(LOG_JSON, 0, COMPONENT_LOG_INFO, "m", fields, 3);
			assert_true(is_json_object(line));
			if (shape == 1)
				assert_non_null(strstr(line, "...\"}\n"));
			line = line_of(LOG_LOGFMT, 0, COMPONENT_LOG_INFO, "m", fields, 3);
			assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
			line = line_of(LOG_JSON, 0, COMPONENT_LOG_INFO, long_text, fields, 3);
			assert_true(is_json_object(line));
		}
	}
	memset(long_text, 'k', sizeof(long_text) - 1);
	for (int format = LOG_TEXT; format <= LOG_JSON; format++) {
		struct component_log_field field = { long_text, "value" };

		assert_null(strstr(line_of((enum log_format)format, 0, COMPONENT_LOG_INFO, "m", &field, 1), "kk"));
	}
}

/* ---- files ---- */

static char dir[64];

static const char *
path_of(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static const char *
content(const char *name)
{
	static char buf[65536];
	int         fd = open(path_of(name), O_RDONLY);
	ssize_t     size;

	assert_true(fd >= 0);
	size = read(fd, buf, sizeof(buf) - 1);
	assert_true(size >= 0);
	buf[size] = '\0';
	close(fd);
	return buf;
}

static void
a_file_is_appended_to_and_opened_again_by_its_name(void **state)
{
	struct component_error err = COMPONENT_ERROR_INIT;
	struct log             log;
	char                   moved[256];

	(void)state;
	log_init(&log);
	assert_int_equal(log_open(&log, path_of("a.log"), &err), 0);
	assert_true(fcntl(log.fd, F_GETFD) & FD_CLOEXEC);
	log_write(&log, COMPONENT_LOG_INFO, "one", NULL, 0);
	snprintf(moved, sizeof(moved), "%s", path_of("a.log.1"));
	assert_int_equal(rename(path_of("a.log"), moved), 0);
	log_write(&log, COMPONENT_LOG_INFO, "two", NULL, 0);
	assert_int_equal(log_reopen(&log, &err), 0);
	assert_true(fcntl(log.fd, F_GETFD) & FD_CLOEXEC);
	log_write(&log, COMPONENT_LOG_INFO, "three", NULL, 0);
	assert_non_null(strstr(content("a.log.1"), "one"));
	assert_non_null(strstr(content("a.log.1"), "two"));
	assert_non_null(strstr(content("a.log"), "three"));
	assert_null(strstr(content("a.log"), "two"));
	log_close(&log);
}

static void
a_file_that_cannot_be_opened_is_told_and_the_old_one_stays(void **state)
{
	struct component_error err = COMPONENT_ERROR_INIT;
	struct log             log;

	(void)state;
	log_init(&log);
	assert_int_equal(log_open(&log, path_of("no/such/dir"), &err), -ENOENT);
	assert_non_null(strstr(err.text, "--log-file"));
	assert_non_null(strstr(err.text, "no/such/dir"));
	assert_int_equal(log_open(&log, path_of("b.log"), &err), 0);
	free(log.path);
	log.path = strdup(path_of("gone/b.log"));
	assert_int_equal(log_reopen(&log, &err), -ENOENT);
	log_write(&log, COMPONENT_LOG_INFO, "still here", NULL, 0);
	assert_non_null(strstr(content("b.log"), "still here"));
	log_close(&log);
}

static void
a_relative_name_means_the_directory_of_the_start(void **state)
{
	struct log log;
	char       cwd[4096];

	(void)state;
	assert_non_null(getcwd(cwd, sizeof(cwd)));
	assert_int_equal(chdir(dir), 0);
	log_init(&log);
	assert_int_equal(log_open(&log, "rel.log", NULL), 0);
	assert_int_equal(chdir("/"), 0);
	assert_int_equal(unlink(path_of("rel.log")), 0);
	assert_int_equal(log_reopen(&log, NULL), 0);
	log_write(&log, COMPONENT_LOG_INFO, "here", NULL, 0);
	assert_non_null(strstr(content("rel.log"), "here"));
	log_close(&log);
	assert_int_equal(chdir(cwd), 0);
}

static void
lines_above_the_level_are_not_written(void **state)
{
	struct log log;

	(void)state;
	log_init(&log);
	assert_int_equal(log_open(&log, path_of("level.log"), NULL), 0);
	log_write(&log, COMPONENT_LOG_DEBUG, "hidden", NULL, 0);
	log.level = COMPONENT_LOG_DEBUG;
	log_write(&log, COMPONENT_LOG_DEBUG, "shown", NULL, 0);
	log.level = COMPONENT_LOG_ERROR;
	log_write(&log, COMPONENT_LOG_WARNING, "hidden", NULL, 0);
	assert_null(strstr(content("level.log"), "hidden"));
	assert_non_null(strstr(content("level.log"), "shown"));
	log_close(&log);
}

#define WRITERS 4
#define WRITES 500

static void *
write_many(void *arg)
{
	char                       text[2001];
	struct component_log_field field = { "k", text };

	memset(text, 'a', 2000);
	for (int i = 0; i < WRITES; i++) {
		text[200 + i % 1800] = '\0';
		log_write(arg, COMPONENT_LOG_INFO, "begin", &field, 1);
		text[200 + i % 1800] = 'a';
	}
	return NULL;
}

static void
lines_of_threads_do_not_mix_in_a_pipe(void **state)
{
	pthread_t threads[WRITERS];
	struct log log;
	int       ends[2], lines = 0;
	char     *line = NULL;
	size_t    size = 0;
	ssize_t   length;
	FILE     *in;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	log_init(&log);
	log.fd = ends[1];
	for (int i = 0; i < WRITERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, write_many, &log), 0);
	in = fdopen(ends[0], "r");
	while (lines < WRITERS * WRITES && (length = getline(&line, &size, in)) > 0) {
		size_t tail = strspn(line + 39, "a");

		assert_memory_equal(line + 24, " info begin k=aa", 15);
		assert_int_equal(39 + tail + 1, length);
		lines++;
	}
	assert_int_equal(lines, WRITERS * WRITES);
	for (int i = 0; i < WRITERS; i++)
		pthread_join(threads[i], NULL);
	free(line);
	fclose(in);
	close(ends[1]);
}

/* ---- failing ---- */

static void
a_reader_that_went_away_neither_kills_nor_leaves_a_signal(void **state)
{
	struct log log;
	sigset_t   pending;
	int        ends[2];

	(void)state;
	signal(SIGPIPE, SIG_DFL);
	assert_int_equal(pipe(ends), 0);
	close(ends[0]);
	log_init(&log);
	log.fd = ends[1];
	errno = 42;
	log_write(&log, COMPONENT_LOG_INFO, "nobody reads", NULL, 0);
	assert_int_equal(errno, 42);
	sigpending(&pending);
	assert_false(sigismember(&pending, SIGPIPE));
	assert_int_equal(log.lost, 1);
	close(ends[1]);
}

static void
a_file_that_may_not_grow_neither_kills_nor_leaves_a_signal(void **state)
{
	struct log    log;
	struct rlimit limit;
	sigset_t      pending;
	int           fd = memfd_create("log", MFD_CLOEXEC);

	(void)state;
	assert_true(fd >= 0);
	signal(SIGXFSZ, SIG_DFL);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	log_init(&log);
	log.fd = fd;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 0, limit.rlim_max }), 0);
	log_write(&log, COMPONENT_LOG_INFO, "too much", NULL, 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	sigpending(&pending);
	assert_false(sigismember(&pending, SIGXFSZ));
	assert_int_equal(log.lost, 1);
	close(fd);
}

static void
lines_lost_to_a_full_pipe_are_counted_and_told(void **state)
{
	struct log log;
	char       buf[65536], *at;
	int        ends[2];
	ssize_t    size;
	unsigned   lost;

	(void)state;
	assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
	log_init(&log);
	log.fd = ends[1];
	for (int i = 0; i < 4000; i++)
		log_write(&log, COMPONENT_LOG_INFO, "filling", NULL, 0);
	lost = log.lost;
	assert_true(lost > 0);
	while (read(ends[0], buf, sizeof(buf)) > 0)
		;
	log_write(&log, COMPONENT_LOG_INFO, "room again", NULL, 0);
	size = read(ends[0], buf, sizeof(buf) - 1);
	assert_true(size > 0);
	buf[size] = '\0';
	assert_non_null(strstr(buf, "room again"));
	at = strstr(buf, "log lines were lost lines=");
	assert_non_null(at);
	assert_int_equal(atoi(at + 26), lost);
	assert_int_equal(log.lost, 0);
	close(ends[0]);
	close(ends[1]);
}

static void
a_line_that_must_not_block_does_not_wait_for_a_reader_who_sleeps(void **state)
{
	struct log      log;
	int64_t         begin;
	char            fill[4096] = "";
	int             ends[2];

	(void)state;
	assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
	while (write(ends[1], fill, sizeof(fill)) > 0)
		;
	assert_int_equal(fcntl(ends[1], F_SETFL, 0), 0);
	log_init(&log);
	log.fd = ends[1];
	begin = now_ns();
	log_write_soon(&log, COMPONENT_LOG_ERROR, "last words", NULL, 0);
	assert_true(now_ns() - begin < 5 * CLOCK_NS_PER_S);
	assert_int_equal(log.lost, 1);
	close(ends[0]);
	close(ends[1]);
}

static void
a_full_disk_does_not_glue_lines_together(void **state)
{
	struct rlimit before, small;
	struct log    log;
	const char   *text;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	log_init(&log);
	assert_int_equal(log_open(&log, path_of("full.log"), NULL), 0);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small = before;
	small.rlim_cur = 50; /* a line and a part of one */
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	log_write(&log, COMPONENT_LOG_INFO, "one", NULL, 0);
	log_write(&log, COMPONENT_LOG_INFO, "two", NULL, 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	log_write(&log, COMPONENT_LOG_INFO, "three", NULL, 0);
	text = content("full.log");
	assert_non_null(strstr(text, "one\n"));
	assert_null(strstr(text, "two\n"));
	assert_non_null(strstr(text, "Z info three\n"));
	assert_int_equal(strstr(text, " info three")[-25], '\n');
	assert_non_null(strstr(text, "log lines were lost lines=1\n"));
	log_close(&log);
}

static void
a_forked_child_opens_the_file_anew(void **state)
{
	struct log log;
	int        status;
	pid_t      pid;

	(void)state;
	log_init(&log);
	assert_int_equal(log_open(&log, path_of("fork.log"), NULL), 0);
	pid = fork();
	if (pid == 0) {
		int fd = log.fd;

		log_fork_child(&log);
		if (fcntl(fd, F_GETFD) >= 0)
			_exit(1);
		log_write(&log, COMPONENT_LOG_INFO, "from the child", NULL, 0);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	log_write(&log, COMPONENT_LOG_INFO, "from the parent", NULL, 0);
	assert_non_null(strstr(content("fork.log"), "from the child"));
	assert_non_null(strstr(content("fork.log"), "from the parent"));
	log_close(&log);
}

static int
make_dir(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/test_log.XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int
remove_dir(void **state)
{
	static const char *const names[] = {
		"a.log", "a.log.1", "b.log", "rel.log", "level.log", "full.log", "fork.log",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(names); i++)
		unlink(path_of(names[i]));
	return rmdir(dir);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_three_shapes_of_a_line),
		cmocka_unit_test(the_names_of_the_levels),
		cmocka_unit_test(dates_are_those_of_the_calendar),
		cmocka_unit_test(nothing_in_a_value_makes_a_second_line_or_ends_its_quotes),
		cmocka_unit_test(a_message_with_a_newline_is_one_line_too),
		cmocka_unit_test(keys_cannot_break_a_line_or_hide_its_own),
		cmocka_unit_test(what_is_too_long_is_cut_and_the_line_stays_whole),
		cmocka_unit_test(a_file_is_appended_to_and_opened_again_by_its_name),
		cmocka_unit_test(a_file_that_cannot_be_opened_is_told_and_the_old_one_stays),
		cmocka_unit_test(a_relative_name_means_the_directory_of_the_start),
		cmocka_unit_test(lines_above_the_level_are_not_written),
		cmocka_unit_test(lines_of_threads_do_not_mix_in_a_pipe),
		cmocka_unit_test(a_reader_that_went_away_neither_kills_nor_leaves_a_signal),
		cmocka_unit_test(a_file_that_may_not_grow_neither_kills_nor_leaves_a_signal),
		cmocka_unit_test(lines_lost_to_a_full_pipe_are_counted_and_told),
		cmocka_unit_test(a_line_that_must_not_block_does_not_wait_for_a_reader_who_sleeps),
		cmocka_unit_test(a_full_disk_does_not_glue_lines_together),
		cmocka_unit_test(a_forked_child_opens_the_file_anew),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
