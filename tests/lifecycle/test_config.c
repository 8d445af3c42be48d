/*
 * test_config.c - what a component's options decide: reloading, its files, the exit
 * status of a bad one; and its checks.
 */
#include <config.h>

#include "order_fixture.h"

#include <sys/stat.h>
#include <sys/wait.h>

/* ---- reloading ---- */

static void
a_reload_tells_parts_in_order_then_the_daemon_then_what_is_last_to_stop(void **state)
{
	struct component *c = started(NULL);

	(void)state;
	assert_int_equal(component_reload(c, NULL), 0);
	assert_string_equal(events, "a.reload b.reload spec.reload p.reload");
	component_free(c);
}

static void
one_failed_reload_takes_the_others_back_and_all_that_fail_are_told(void **state)
{
	struct component_error err = COMPONENT_ERROR_INIT;
	struct component      *c = started(NULL);

	(void)state;
	fail_at = FAIL_A | FAIL_B;
	assert_int_equal(component_reload(c, &err), -EIO);
	assert_string_equal(err.text, "a is broken\nb is broken");
	assert_string_equal(events, "a.reload b.reload spec.reload spec.reload");
	fail_at = FAIL_B;
	events[0] = '\0';
	assert_int_equal(component_reload(c, &err), -EIO);
	assert_string_equal(events, "a.reload b.reload spec.reload spec.reload a.reload");
	fail_at = FAIL_P;
	events[0] = '\0';
	assert_int_equal(component_reload(c, &err), -EIO);
	assert_string_equal(events, "a.reload b.reload spec.reload p.reload spec.reload b.reload a.reload");
	/* Who cannot go back keeps nobody else from it. */
	fail_at = FAIL_P | FAIL_SPEC_BACK;
	events[0] = '\0';
	assert_int_equal(component_reload(c, &err), -EIO);
	assert_string_equal(err.text, "p is broken");
	assert_string_equal(events, "a.reload b.reload spec.reload p.reload spec.reload b.reload a.reload");
	assert_int_equal(component_phase(c), COMPONENT_PHASE_RUNNING);
	component_free(c);
}

static void
write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void
a_reload_reads_the_config_again_and_reopens_the_log(void **state)
{
	struct component_error err = COMPONENT_ERROR_INIT;
	char                   option[300];
	const char            *config = option;
	struct component      *c;

	(void)state;
	snprintf(option, sizeof(option), "--config=%s", life_path("config.yaml"));
	write_file(life_path("config.yaml"), "v: 0\n");
	c = started(OPTIONS(config));
	component_log(c, COMPONENT_LOG_DEBUG, "hidden", NULL);
	assert_int_equal(rename(life_path("log"), life_path("log.1")), 0);
	write_file(life_path("config.yaml"), "v: 1\nlogging-format: json\n");
	assert_int_equal(component_reload(c, &err), 0);
	component_log(c, COMPONENT_LOG_DEBUG, "shown", "key", "value", NULL);
	assert_non_null(strstr(life_log(), "\"level\":\"debug\",\"msg\":\"shown\",\"key\":\"value\"}"));
	assert_null(strstr(life_read(life_path("log.1")), "shown"));
	assert_null(strstr(life_read(life_path("log.1")), "hidden"));

	/* A bad one changes nothing, and nobody is told. */
	events[0] = '\0';
	write_file(life_path("config.yaml"), "v: many\n");
	assert_true(component_reload(c, &err) < 0);
	assert_non_null(strstr(err.text, "many"));
	assert_string_equal(events, "");
	component_log(c, COMPONENT_LOG_DEBUG, "still shown", NULL);
	assert_non_null(strstr(life_log(), "\"msg\":\"still shown\""));
	assert_int_equal(component_phase(c), COMPONENT_PHASE_RUNNING);
	component_free(c);
}

/* As between unlink() and rename() of whoever writes it. */
static void
a_config_that_was_there_is_missed_by_a_reload_though_nobody_has_named_it(void **state)
{
	struct component_error    err = COMPONENT_ERROR_INIT;
	char                      path[300];
	struct component_default  defaults[] = { { "config", path }, { NULL, NULL } };
	struct component_spec     s = spec;
	struct component         *c = NULL;

	(void)state;
	s.defaults = defaults;
	snprintf(path, sizeof(path), "%s", life_path("config.yaml"));
	assert_int_equal(component_new(&s, &c, &err), 0);
	assert_int_equal(life_parse(c, &err, NULL), 0);
	assert_int_equal(component_start(c, &err), 0);
	assert_int_equal(component_reload(c, &err), 0);
	/* What is refused is not in force, nor is what was taken back. */
	write_file(path, "v: many\n");
	assert_true(component_reload(c, &err) < 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(component_reload(c, &err), 0);
	fail_at = FAIL_SPEC_BACK;
	write_file(path, "v: 1\n");
	assert_true(component_reload(c, &err) < 0);
	fail_at = 0;
	assert_int_equal(unlink(path), 0);
	assert_int_equal(component_reload(c, &err), 0);
	write_file(path, "v: 1\n");
	assert_int_equal(component_reload(c, &err), 0);
	assert_int_equal(component_verbosity(c), 1);
	assert_int_equal(unlink(path), 0);
	assert_true(component_reload(c, &err) < 0);
	assert_non_null(strstr(err.text, "No such file or directory"));
	assert_int_equal(component_verbosity(c), 1);
	write_file(path, "v: 2\n");
	assert_int_equal(component_reload(c, &err), 0);
	assert_int_equal(component_verbosity(c), 2);
	component_free(c);
}

static void
a_log_that_cannot_be_opened_again_keeps_nothing_from_being_reloaded(void **state)
{
	struct component_error err = COMPONENT_ERROR_INIT;
	char                   config_option[300], log_option[300];
	const char            *config = config_option, *log = log_option;
	struct component      *c;

	(void)state;
	snprintf(config_option, sizeof(config_option), "--config=%s", life_path("config.yaml"));
	snprintf(log_option, sizeof(log_option), "--log-file=%s", life_path("folder/log"));
	write_file(life_path("config.yaml"), "v: 0\n");
	assert_int_equal(mkdir(life_path("folder"), 0700), 0);
	c = started(OPTIONS(config, log));
	assert_int_equal(rename(life_path("folder/log"), life_path("log.1")), 0);
	assert_int_equal(rmdir(life_path("folder")), 0);
	write_file(life_path("config.yaml"), "v: 1\n");
	assert_int_equal(component_reload(c, &err), 0);
	assert_int_equal(component_verbosity(c), 1);
	assert_string_equal(events, "a.reload b.reload spec.reload p.reload");
	assert_non_null(strstr(life_read(life_path("log.1")), "cannot be opened again: No such file or directory; going on with the old one"));
	component_free(c);
}

/* ---- files ---- */

static void
the_pid_file_is_there_while_it_runs(void **state)
{
	char              option[300];
	const char       *pid_option = option;
	struct component *c;

	(void)state;
	snprintf(option, sizeof(option), "--pid-file=%s", life_path("pid"));
	write_file(life_path("pid"), "1\n"); /* a stale one is replaced */
	c = started(OPTIONS(pid_option));
	assert_int_equal(atoi(life_read(life_path("pid"))), getpid());
	component_stop(c);
	assert_int_equal(life_run(c), 0);
	assert_int_equal(access(life_path("pid"), F_OK), -1);
	component_free(c);

	/* A successor's is not ours to remove. */
	c = started(OPTIONS(pid_option));
	write_file(life_path("pid2"), "2\n");
	assert_int_equal(rename(life_path("pid2"), life_path("pid")), 0);
	component_free(c);
	assert_int_equal(atoi(life_read(life_path("pid"))), 2);
}

static void
remove_folder(struct component *c)
{
	(void)c;
	assert_int_equal(unlink(life_path("folder/pid")), 0);
	assert_int_equal(rmdir(life_path("folder")), 0);
}

static void
a_start_that_fails_leaves_the_pid_file_of_the_daemon_that_runs(void **state)
{
	struct component_error err = COMPONENT_ERROR_INIT;
	char                   option[300], other[16];
	const char            *pid_option = option;
	struct component      *c;
	pid_t                  runs = fork();

	(void)state;
	if (runs == 0) {
		alarm(600);
		for (;;)
			pause();
	}
	assert_true(runs > 0);
	snprintf(option, sizeof(option), "--pid-file=%s", life_path("pid"));
	snprintf(other, sizeof(other), "%d\n", runs);
	write_file(life_path("pid"), other);
	c = made(OPTIONS(pid_option));
	fail_at = FAIL_SPEC;
	assert_int_equal(component_start(c, &err), -EIO);
	component_free(c);
	assert_string_equal(life_read(life_path("pid")), other);

	/* One that is well takes its place. */
	fail_at = 0;
	c = started(OPTIONS(pid_option));
	assert_int_equal(atoi(life_read(life_path("pid"))), getpid());
	component_free(c);
	assert_int_equal(access(life_path("pid"), F_OK), -1);

	/* Where it cannot, as start() has given up the right to, the daemon runs all the same. */
	assert_int_equal(mkdir(life_path("folder"), 0700), 0);
	snprintf(option, sizeof(option), "--pid-file=%s", life_path("folder/pid"));
	write_file(life_path("folder/pid"), other);
	in_start = remove_folder;
	c = started(OPTIONS(pid_option));
	in_start = NULL;
	assert_non_null(strstr(life_log(), "folder/pid"));
	component_free(c);

	/* Nor does a number that another program has by now keep it from being written before. */
	snprintf(other, sizeof(other), "%d\n", getppid());
	snprintf(option, sizeof(option), "--pid-file=%s", life_path("pid"));
	write_file(life_path("pid"), other);
	c = made(OPTIONS(pid_option));
	fail_at = FAIL_SPEC;
	assert_int_equal(component_start(c, &err), -EIO);
	component_free(c);
	assert_int_equal(access(life_path("pid"), F_OK), -1);
	kill(runs, SIGKILL);
	waitpid(runs, NULL, 0);
}

/* As /dev/null, where root may write. */
static void
a_pid_file_that_is_no_file_is_written_to_and_stays(void **state)
{
	char              option[300], text[16] = "";
	const char       *pid_option = option;
	struct component *c;
	struct stat       st;
	int               fd;

	(void)state;
	snprintf(option, sizeof(option), "--pid-file=%s", life_path("pid"));
	assert_int_equal(mkfifo(life_path("pid"), 0600), 0);
	fd = open(life_path("pid"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	assert_true(fd >= 0);
	c = started(OPTIONS(pid_option));
	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	assert_int_equal(atoi(text), getpid());
	component_free(c);
	assert_int_equal(lstat(life_path("pid"), &st), 0);
	assert_true(S_ISFIFO(st.st_mode));
	close(fd);

	/* Nor are the names of descriptors, which are links. */
	fd = open(life_path("pid2"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	snprintf(option, sizeof(option), "--pid-file=/dev/fd/%d", fd);
	c = started(OPTIONS(pid_option));
	component_free(c);
	assert_int_equal(atoi(life_read(life_path("pid2"))), getpid());
	close(fd);
}

static void
a_file_that_cannot_be_written_fails_the_start_and_says_which(void **state)
{
	static const char *const options[] = { "--pid-file=/no/such/dir/pid", "--log-file=/no/such/dir/log" };

	(void)state;
	for (size_t i = 0; i < COUNT(options); i++) {
		struct component_error err = COMPONENT_ERROR_INIT;
		struct component      *c = made(OPTIONS(options[i]));

		assert_int_equal(component_start(c, &err), -ENOENT);
		assert_non_null(strstr(err.text, "/no/such/dir/"));
		assert_non_null(strstr(err.text, i ? "--log-file" : "--pid-file"));
		assert_null(strstr(events, "spec.start"));
		component_free(c);
	}
}

static void
relative_files_are_where_the_options_were_read(void **state)
{
	struct component *c;
	int               here = open(".", O_PATH | O_CLOEXEC);

	(void)state;
	assert_true(here >= 0);
	assert_int_equal(mkdir(life_path("other"), 0700), 0);
	assert_int_equal(chdir(life_dir), 0);
	c = made(OPTIONS("--pid-file=pid", "--log-file=log.1"));
	assert_int_equal(chdir("other"), 0); /* as daemon(3) does */
	assert_int_equal(component_start(c, NULL), 0);
	component_log(c, COMPONENT_LOG_INFO, "here", NULL);
	assert_int_equal(atoi(life_read(life_path("pid"))), getpid());
	assert_non_null(strstr(life_read(life_path("log.1")), "here"));
	component_free(c);
	assert_int_equal(fchdir(here), 0);
	close(here);
	assert_int_equal(rmdir(life_path("other")), 0);
}

/* It could not be removed from another directory. */
static void
a_pid_file_below_a_directory_that_has_no_name_fails_the_start(void **state)
{
	struct component_error err = COMPONENT_ERROR_INIT;
	struct component      *c;
	int                    here = open(".", O_PATH | O_CLOEXEC);

	(void)state;
	assert_true(here >= 0);
	assert_int_equal(mkdir(life_path("gone"), 0700), 0);
	assert_int_equal(chdir(life_path("gone")), 0);
	assert_int_equal(rmdir(life_path("gone")), 0);
	c = made(OPTIONS("--pid-file=../pid"));
	assert_int_equal(component_start(c, &err), -ENOENT);
	assert_int_equal(fchdir(here), 0);
	close(here);
	assert_non_null(strstr(err.text, "option '--pid-file': cannot write '../pid': No such"));
	assert_int_equal(access(life_path("pid"), F_OK), -1);
	component_free(c);
}

/* ---- options ---- */

static struct component_error check_error;

static int
check_values(struct component *c, struct component_error *err)
{
	(void)c;
	if (!check_error.text[0])
		return 0;
	component_error_set(err, "%s", check_error.text);
	return -EINVAL;
}

static int
parse_alone(const struct component_spec *s, struct component_error *err, const char *const *options,
	int *ret_status)
{
	struct component *c = NULL;
	int               result;

	assert_int_equal(component_new(s, &c, err), 0);
	result = life_parse(c, err, options);
	if (result != 0)
		assert_true(component_finished(c, ret_status));
	component_free(c);
	return result;
}

static void
parsing_ends_with_the_exit_status_of_its_fault(void **state)
{
	struct component_spec  s = spec;
	struct component_error err = COMPONENT_ERROR_INIT;
	int                    status = -1;

	(void)state;
	assert_int_equal(parse_alone(&s, &err, OPTIONS("--help"), &status), 1);
	assert_int_equal(status, 0);
	assert_true(parse_alone(&s, &err, OPTIONS("--no-such-option"), &status) < 0);
	assert_int_equal(status, 2);
	assert_true(parse_alone(&s, &err, OPTIONS("--config=/no/such/file"), &status) < 0);
	assert_int_equal(status, 78);

	s.check = check_values;
	assert_int_equal(parse_alone(&s, &err, OPTIONS("--check-config"), &status), 1);
	assert_int_equal(status, 0);
	component_error_set(&check_error, "one does not fit the other");
	assert_int_equal(parse_alone(&s, &err, OPTIONS("--check-config"), &status), -EINVAL);
	assert_int_equal(status, 2);
	assert_string_equal(err.text, "daemon: one does not fit the other\nTry 'daemon --help' for more information.");
	assert_int_equal(parse_alone(&s, &err, NULL, &status), -EINVAL);
	assert_int_equal(status, 2);
	check_error.text[0] = '\0';
}

static void
a_component_may_want_other_defaults_and_its_name_in_the_environment(void **state)
{
	static const struct component_default defaults[] = {
		{ "logging-format", "json" }, { NULL, NULL },
	};
	struct component_spec s = spec;
	struct component     *c = NULL;

	(void)state;
	s.defaults = defaults;
	assert_int_equal(component_new(&s, &c, NULL), 0);
	assert_int_equal(life_parse(c, NULL, NULL), 0);
	assert_int_equal(component_start(c, NULL), 0);
	component_log(c, COMPONENT_LOG_INFO, "one", NULL);
	assert_non_null(strstr(life_log(), "\"msg\":\"one\""));
	component_free(c);

	assert_int_equal(setenv("DAEMON_LOGGING_FORMAT", "logfmt", 1), 0);
	assert_int_equal(component_new(&s, &c, NULL), 0);
	assert_int_equal(life_parse(c, NULL, NULL), 0);
	assert_int_equal(component_start(c, NULL), 0);
	component_log(c, COMPONENT_LOG_INFO, "two", NULL);
	assert_non_null(strstr(life_log(), " msg=\"two\""));
	component_free(c);
	unsetenv("DAEMON_LOGGING_FORMAT");
}

static void
the_names_of_log_levels_are_verbosities(void **state)
{
	/* And those of loggers elsewhere, for LOG_LEVEL is not ours alone. */
	static const char *const names[] = { "error", "warning", "info", "debug", "fatal", "warn" };
	static const int         levels[] = { 0, 1, 2, 3, 0, 1 };

	(void)state;
	for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++) {
		int               level = levels[n];
		struct component *c = NULL;
		char              want[32], above[32];

		assert_int_equal(setenv("LOG_LEVEL", names[n], 1), 0);
		assert_int_equal(component_new(&spec, &c, NULL), 0);
		assert_int_equal(life_parse(c, NULL, NULL), 0);
		assert_int_equal(component_start(c, NULL), 0);
		unlink(life_path("log"));
		assert_int_equal(component_reload(c, NULL), 0);
		for (int i = 0; i <= COMPONENT_LOG_DEBUG; i++) {
			snprintf(want, sizeof(want), "line-%d", i);
			component_log(c, (enum component_log_level)i, want, NULL);
		}
		snprintf(want, sizeof(want), "line-%d", level);
		snprintf(above, sizeof(above), "line-%d", level + 1);
		assert_non_null(strstr(life_log(), want));
		assert_null(strstr(life_log(), above));
		component_free(c);
	}
	unsetenv("LOG_LEVEL");
}

/* ---- checks ---- */

static int
failing_check(struct component *c, void *arg, struct component_error *err)
{
	(void)c;
	if (!arg)
		return -EIO;
	component_error_set(err, "%s", (const char *)arg);
	return *(const char *)arg ? -EAGAIN : 0;
}

static void
hear(void *arg, const char *name, int status, const char *text)
{
	size_t used = strlen(arg);

	snprintf((char *)arg + used, 512 - used, "[%s %d %s]", name, status, text);
}

static void
checks_are_run_in_order_and_say_what_is_wrong(void **state)
{
	struct component *c = made(NULL);
	char              heard[512] = "", want[512];
	char              good[] = "", bad[] = "cache is not filled";

	(void)state;
	assert_int_equal(component_check_add(c, "good", failing_check, good), 0);
	assert_int_equal(component_check_add(c, "bad", failing_check, bad), 0);
	assert_int_equal(component_check_add(c, "mute", failing_check, NULL), 0);
	assert_int_equal(component_check_add(c, "good", failing_check, good), -EEXIST);
	assert_int_equal(component_check_add(c, "running", failing_check, good), -EEXIST);
	assert_int_equal(component_check_add(c, "loop", failing_check, good), -EEXIST);
	assert_int_equal(component_checks_run(c, NULL, NULL), 3);
	assert_int_equal(component_start(c, NULL), 0);
	assert_int_equal(component_checks_run(c, hear, heard), 2);
	snprintf(want, sizeof(want), "[running 0 ][good 0 ][bad %d cache is not filled][mute %d %s]", -EAGAIN,
		-EIO, strerror(EIO));
	assert_string_equal(heard, want);
	component_free(c);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fresh, life_teardown)
		TEST(a_reload_tells_parts_in_order_then_the_daemon_then_what_is_last_to_stop),
		TEST(one_failed_reload_takes_the_others_back_and_all_that_fail_are_told),
		TEST(a_reload_reads_the_config_again_and_reopens_the_log),
		TEST(a_config_that_was_there_is_missed_by_a_reload_though_nobody_has_named_it),
		TEST(a_log_that_cannot_be_opened_again_keeps_nothing_from_being_reloaded),
		TEST(the_pid_file_is_there_while_it_runs),
		TEST(a_start_that_fails_leaves_the_pid_file_of_the_daemon_that_runs),
		TEST(a_pid_file_that_is_no_file_is_written_to_and_stays),
		TEST(a_file_that_cannot_be_written_fails_the_start_and_says_which),
		TEST(relative_files_are_where_the_options_were_read),
		TEST(a_pid_file_below_a_directory_that_has_no_name_fails_the_start),
		TEST(parsing_ends_with_the_exit_status_of_its_fault),
		TEST(a_component_may_want_other_defaults_and_its_name_in_the_environment),
		TEST(the_names_of_log_levels_are_verbosities),
		TEST(checks_are_run_in_order_and_say_what_is_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
