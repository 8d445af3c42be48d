/*
 * test_controller.c - a component with controllers in its own loop: what is
 * reconciled, again and how often, and how it ends.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <component/controller.h>

#include "tree.h"
#include "waiting.h"

#define MS COMPONENT_MILLISECONDS(1)
#define DEADLINE_NS COMPONENT_SECONDS(30)

struct fixture {
	struct component *c;
	char        root[64];
	char        log[96];
	struct component_controller_spec specs[2];
	const struct component_controller_spec *all[2];
	struct component_controller *running[2];
	atomic_int  calls, finished;
	atomic_int  outcome;      /* enum component_reconcile to answer */
	atomic_int  failures_left; /* COMPONENT_ERROR so often, then outcome */
	atomic_bool block;        /* reconcile waits until it is false */
	atomic_bool fails;        /* reconcile logs, posts and fails the component */
	bool        posted;       /* by such a one */
	atomic_int  inside, most_inside;
	pthread_mutex_t mutex;
	char        last[COMPONENT_QUEUE_KEY_MAX];
	char        thread[32];
	struct component_error err;
};

static struct fixture *f;

/* A limit of threads: so many more can be made; -1: there is none. */
static int threads_left = -1;

int __real_pthread_create(pthread_t *ret, const pthread_attr_t *attr, void *(*run)(void *), void *arg);
int __wrap_pthread_create(pthread_t *ret, const pthread_attr_t *attr, void *(*run)(void *), void *arg);

int
__wrap_pthread_create(pthread_t *ret, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
	if (threads_left == 0)
		return EAGAIN;
	threads_left -= threads_left > 0;
	return __real_pthread_create(ret, attr, run, arg);
}

/* So many keys more are refused by the queue. */
static atomic_int refusals_left;

int __real_component_queue_add(struct component_queue *q, const char *key);
int __wrap_component_queue_add(struct component_queue *q, const char *key);
int __real_component_queue_add_after(struct component_queue *q, const char *key, int64_t after_ns);
int __wrap_component_queue_add_after(struct component_queue *q, const char *key, int64_t after_ns);

static bool
refuses(void)
{
	int left = refusals_left;

	while (left > 0 && !atomic_compare_exchange_weak(&refusals_left, &left, left - 1))
		;
	return left > 0;
}

int
__wrap_component_queue_add(struct component_queue *q, const char *key)
{
	return refuses() ? -ENOBUFS : __real_component_queue_add(q, key);
}

int
__wrap_component_queue_add_after(struct component_queue *q, const char *key, int64_t after_ns)
{
	return refuses() ? -ENOBUFS : __real_component_queue_add_after(q, key, after_ns);
}

/* Runs the loop until the condition holds. */
#define run_until(condition) do { \
		int64_t end_ns = now_ns() + DEADLINE_NS; \
		while (!(condition)) { \
			struct pollfd p = { component_fd(f->c), POLLIN, 0 }; \
			assert_true(now_ns() < end_ns); \
			poll(&p, 1, 5); \
			component_dispatch(f->c); \
		} \
	} while (0)

static void
on_posted(struct component *c, void *arg)
{
	struct fixture *posted_to = arg;

	posted_to->posted = c == posted_to->c;
}

static void
log_post_and_fail(struct component *c, const char *key)
{
	struct component_error err = COMPONENT_ERROR_INIT;

	component_log(c, COMPONENT_LOG_INFO, "about to fail", COMPONENT_KV("key", key));
	if (component_post(c, on_posted, f) != 0)
		abort();
	component_error_set(&err, "nothing works with %s", key);
	component_fail(c, &err);
}

static void
reconcile(struct component *c, const char *key, struct component_result *ret, void *arg)
{
	int inside = atomic_fetch_add(&f->inside, 1) + 1;

	if (c != f->c || arg != f || ret->outcome != COMPONENT_DONE || *ret->error.text != '\0')
		abort();
	if (inside > f->most_inside)
		f->most_inside = inside;
	f->calls++;
	WAIT_FOR(!f->block);
	if (f->fails)
		log_post_and_fail(c, key);
	pthread_mutex_lock(&f->mutex);
	snprintf(f->last, sizeof f->last, "%s", key);
	pthread_getname_np(pthread_self(), f->thread, sizeof f->thread);
	pthread_mutex_unlock(&f->mutex);
	ret->outcome = (enum component_reconcile)f->outcome;
	if (f->failures_left > 0) {
		f->failures_left--;
		ret->outcome = COMPONENT_ERROR;
	}
	if (ret->outcome == COMPONENT_AFTER)
		ret->after_ns = 20 * MS;
	if (ret->outcome != COMPONENT_DONE)
		component_error_set(&ret->error, "because of %s", key);
	f->inside--;
	f->finished++;
}

static bool
last_is(const char *key)
{
	bool same;

	pthread_mutex_lock(&f->mutex);
	same = strcmp(f->last, key) == 0;
	pthread_mutex_unlock(&f->mutex);
	return same;
}

static bool
accept_yaml(char *key, size_t size, void *arg)
{
	size_t n = strlen(key);

	if (arg != f || size != COMPONENT_QUEUE_KEY_MAX)
		abort();
	if (n < 5 || strcmp(key + n - 5, ".yaml") != 0)
		return false;
	key[n - 5] = '\0';
	return true;
}

static const char *
at(const char *name)
{
	return tree_path(f->root, name);
}

static void
put(const char *name)
{
	int fd = open(at(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "x", 1), 1);
	close(fd);
}

/* A component with two controllers, "first" and "second", on the same directory. */
static int
parse(const char *const *options)
{
	static const struct component_spec spec = COMPONENT_SPEC(.name = "test", .summary = "Tests.");
	char *argv[16] = { (char *)(uintptr_t)"test", (char *)(uintptr_t)"--log-file" };
	int argc = 3;

	argv[2] = f->log;
	for (; options != NULL && *options != NULL; options++)
		argv[argc++] = (char *)(uintptr_t)*options;
	assert_int_equal(component_new(&spec, &f->c, &f->err), 0);
	assert_int_equal(component_use(f->c, component_controllers(), &f->err), 0);
	return component_parse(f->c, argc, argv, &f->err);
}

static void
begin_with(const char *const *options, size_t count)
{
	assert_int_equal(parse(options), 0);
	assert_int_equal(component_start(f->c, &f->err), 0);
	assert_int_equal(component_controllers_start(f->c, f->all, count, f->running, &f->err), 0);
}

static void
begin(const char *option)
{
	begin_with((const char *const[]){ option, NULL }, 1);
}

static int
end(void)
{
	int status = -1;

	component_stop(f->c);
	run_until(component_finished(f->c, &status));
	return status;
}

static char *
log_text(void)
{
	static char text[65536];
	FILE *file = fopen(f->log, "r");
	size_t n = file == NULL ? 0 : fread(text, 1, sizeof text - 1, file);

	text[n] = '\0';
	if (file != NULL)
		fclose(file);
	return text;
}

static int
setup(void **state)
{
	(void)state;
	f = calloc(1, sizeof *f);
	strcpy(f->root, "/tmp/component-controller-XXXXXX");
	if (mkdtemp(f->root) == NULL)
		return -1;
	snprintf(f->log, sizeof f->log, "%s.log", f->root);
	pthread_mutex_init(&f->mutex, NULL);
	for (int n = 0; n < 2; n++) {
		f->specs[n] = (struct component_controller_spec){ .size = sizeof f->specs[n], .directory = f->root,
			.name = n == 0 ? "first" : "second", .reconcile = reconcile, .arg = f };
		f->all[n] = &f->specs[n];
	}
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	threads_left = -1;
	refusals_left = 0;
	component_free(f->c);
	tree_remove(f->root);
	unlink(f->log);
	free(f);
	return 0;
}

static void
files_there_and_files_that_come_are_reconciled(void **state)
{
	(void)state;
	put("there");
	begin(NULL);
	run_until(f->finished == 1);
	assert_true(last_is("there"));
	assert_string_equal(f->thread, "first");
	mkdir(at("d"), 0755);
	put("d/comes");
	run_until(f->finished >= 2);
	assert_true(last_is("d/comes"));
	assert_int_equal(end(), 0);
}

static void
a_reconcile_may_log_post_and_fail_with_its_component(void **state)
{
	int status = -1;

	(void)state;
	f->fails = true;
	put("key");
	begin(NULL);
	run_until(component_finished(f->c, &status));
	assert_int_equal(status, 1);
	assert_true(f->posted);
	assert_int_equal(f->finished, 1);
	assert_non_null(strstr(log_text(), "about to fail key=key"));
	assert_non_null(strstr(log_text(), "nothing works with key"));
}

static void
accept_chooses_and_names_the_keys(void **state)
{
	(void)state;
	f->specs[0].accept = accept_yaml;
	put("no");
	put("yes.yaml");
	begin(NULL);
	run_until(f->finished == 1);
	assert_true(last_is("yes"));
	assert_int_equal(end(), 0);
	assert_int_equal(f->calls, 1);
}

static void
an_error_is_logged_with_key_and_reason_and_tried_again_until_done(void **state)
{
	(void)state;
	f->failures_left = 3;
	put("key");
	begin(NULL);
	run_until(f->finished == 4);
	assert_int_equal(end(), 0);
	assert_int_equal(f->calls, 4);
	assert_non_null(strstr(log_text(), "because of key"));
	assert_non_null(strstr(log_text(), "key=key"));
	assert_non_null(strstr(log_text(), "failures=2"));
}

static void
the_retry_waits_as_long_as_the_options_say(void **state)
{
	int64_t start;

	(void)state;
	f->failures_left = 1;
	put("key");
	start = now_ns();
	begin("--rate-limiter-base-delay=300ms");
	run_until(f->finished == 2);
	assert_true(now_ns() - start >= 300 * MS);
	assert_int_equal(end(), 0);
}

static void
terminal_is_logged_and_not_tried_again_until_the_file_changes(void **state)
{
	(void)state;
	f->outcome = COMPONENT_TERMINAL;
	put("key");
	begin("--rate-limiter-base-delay=1ms");
	run_until(f->finished == 1);
	f->outcome = COMPONENT_DONE;
	put("other"); /* had there been a retry, it would have come before */
	run_until(last_is("other"));
	for (int n = 0; n < 10; n++)
		run_until(poll(NULL, 0, 2) == 0);
	assert_non_null(strstr(log_text(), "not tried again"));
	assert_true(last_is("other"));
	put("key");
	run_until(last_is("key"));
	assert_int_equal(end(), 0);
}

static void
after_brings_the_key_back(void **state)
{
	(void)state;
	f->outcome = COMPONENT_AFTER;
	put("key");
	begin(NULL);
	run_until(f->finished >= 5);
	assert_int_equal(end(), 0);
	assert_null(strstr(log_text(), "because of key"));
}

static void
resync_brings_all_keys_back(void **state)
{
	(void)state;
	put("a");
	put("b");
	begin("--resync-period=20ms");
	run_until(f->finished >= 8);
	assert_int_equal(end(), 0);
}

static void
who_reloads_more_often_than_that_has_them_back_all_the_same(void **state)
{
	(void)state;
	put("a");
	put("b");
	begin("--resync-period=20ms");
	run_until(component_reload(f->c, NULL) == 0 && f->finished >= 8);
	assert_int_equal(end(), 0);
}

static void
enqueue_takes_keys_from_elsewhere_and_null_controllers(void **state)
{
	(void)state;
	begin_with((const char *const[]){ "--controllers=second", NULL }, 2);
	assert_null(f->running[0]);
	component_controller_enqueue(f->running[0], "nobody");
	component_controller_enqueue(f->running[1], "from elsewhere");
	run_until(f->finished == 1);
	assert_true(last_is("from elsewhere"));
	assert_string_equal(f->thread, "second");
	assert_int_equal(end(), 0);
}

static void
a_key_that_the_queue_has_no_room_for_is_found_by_a_look_at_everything(void **state)
{
	(void)state;
	put("key");
	refusals_left = 1;
	begin(NULL);
	assert_non_null(strstr(log_text(), "cannot queue a key; looking at all files within 5s"));
	assert_non_null(strstr(log_text(), "No buffer space available"));
	run_until(f->finished == 1);
	assert_true(last_is("key"));
	refusals_left = 1;
	component_controller_enqueue(f->running[0], "from elsewhere");
	assert_non_null(strstr(log_text(), "from elsewhere"));
	assert_int_equal(end(), 0);
}

static void
concurrent_syncs_work_side_by_side(void **state)
{
	(void)state;
	f->block = true;
	for (int n = 0; n < 8; n++)
		put((const char[]){ 'a' + (char)n, '\0' });
	begin("--concurrent-syncs=4");
	run_until(f->inside == 4);
	f->block = false;
	run_until(f->finished == 8);
	assert_int_equal(f->most_inside, 4);
	assert_int_equal(end(), 0);
}

static void
the_first_mention_of_a_name_counts(void **state)
{
	static const struct { const char *option; bool first, second; } cases[] = {
		{ "--controllers=*", true, false }, /* second is off by default */
		{ "--controllers=*,second", true, true },
		{ "--controllers=second", false, true },
		{ "--controllers=-first,*", false, false },
		{ "--controllers=*,-first,first", false, false },
		{ "--controllers=first,-first", true, false },
	};

	(void)state;
	for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
		f->specs[1].off_by_default = true;
		begin_with((const char *const[]){ cases[n].option, NULL }, 2);
		assert_int_equal(f->running[0] != NULL, cases[n].first);
		assert_int_equal(f->running[1] != NULL, cases[n].second);
		assert_int_equal(end(), 0);
		component_free(f->c);
		f->c = NULL;
	}
}

static void
an_unknown_name_is_a_fault_that_lists_the_known_ones(void **state)
{
	(void)state;
	assert_int_equal(parse((const char *const[]){ "--controllers=first,thrid,-x", NULL }), 0);
	assert_int_equal(component_controllers_check(f->c, f->all, 2, &f->err), -EINVAL);
	assert_non_null(strstr(f->err.text, "'thrid': no such controller; there are *, first, second"));
	assert_non_null(strstr(f->err.text, "'-x'"));
	assert_int_equal(component_controllers_start(f->c, f->all, 2, f->running, &f->err), -EINVAL);
}

static void
options_that_contradict_each_other_are_all_named(void **state)
{
	int status;

	(void)state;
	assert_int_equal(parse((const char *const[]){ "--rate-limiter-qps=-2", "--rate-limiter-bucket-size=0",
		"--rate-limiter-base-delay=2s", "--rate-limiter-max-delay=1s", NULL }), -EINVAL);
	assert_non_null(strstr(f->err.text, "'--rate-limiter-qps': '-2'"));
	assert_non_null(strstr(f->err.text, "'--rate-limiter-bucket-size': '0'"));
	assert_non_null(strstr(f->err.text, "'--rate-limiter-base-delay': '2s'"));
	assert_true(component_finished(f->c, &status));
	assert_int_equal(status, 2);
}

static void
a_stop_drains_the_queue_and_waits_for_the_workers(void **state)
{
	int status;

	(void)state;
	f->block = true;
	for (int n = 0; n < 8; n++)
		put((const char[]){ 'a' + (char)n, '\0' });
	begin(NULL);
	run_until(f->inside == 1);
	component_stop(f->c);
	for (int n = 0; n < 20; n++)
		run_until(poll(NULL, 0, 1) == 0);
	assert_false(component_finished(f->c, NULL));
	f->block = false;
	run_until(component_finished(f->c, &status));
	assert_int_equal(status, 0);
	assert_int_equal(f->finished, 8);
}

static void
a_stop_that_runs_out_of_time_names_the_controller_and_survives_free(void **state)
{
	int status;

	(void)state;
	f->block = true;
	f->outcome = COMPONENT_ERROR; /* it will want to log when nobody is there */
	put("stuck");
	begin("--graceful-shutdown-timeout=50ms");
	run_until(f->inside == 1);
	component_stop(f->c);
	run_until(component_finished(f->c, &status));
	assert_int_equal(status, 1);
	assert_non_null(strstr(log_text(), "not finished within 50ms: first"));
	component_free(f->c);
	f->c = NULL;
	f->block = false;
	WAIT_FOR(f->finished != 0);
	rest_ns(20 * MS); /* the worker's last steps must find what they use */
}

static void
a_directory_that_is_not_there_is_named_and_nothing_runs(void **state)
{
	(void)state;
	f->specs[1].directory = "/nowhere/at all";
	assert_int_equal(parse(NULL), 0);
	assert_int_equal(component_start(f->c, &f->err), 0);
	assert_int_equal(component_controllers_start(f->c, f->all, 2, f->running, &f->err), -ENOENT);
	assert_non_null(strstr(f->err.text, "/nowhere/at all"));
	assert_int_equal(component_controllers_start(f->c, f->all, 1, f->running, &f->err), -EALREADY);
	assert_int_equal(end(), 0);
	assert_int_equal(f->calls, 0);
}

static void
a_start_whose_threads_cannot_all_be_made_has_reconciled_nothing(void **state)
{
	(void)state;
	put("key");
	assert_int_equal(parse(NULL), 0);
	assert_int_equal(component_start(f->c, &f->err), 0);
	threads_left = 1;
	assert_int_equal(component_controllers_start(f->c, f->all, 2, f->running, &f->err), -EAGAIN);
	assert_non_null(strstr(f->err.text, "controller 'second': cannot start worker 1"));
	assert_int_equal(end(), 0); /* no worker holds it any more */
	assert_int_equal(f->calls, 0);
}

static void
specs_with_something_missing_are_refused(void **state)
{
	struct component_controller_spec good = f->specs[0];

	(void)state;
	assert_int_equal(parse(NULL), 0);
	assert_int_equal(component_start(f->c, &f->err), 0);
	f->specs[0].size = 8;
	assert_int_equal(component_controller_start(f->c, f->all[0], NULL, &f->err), -EINVAL);
	f->specs[0] = good;
	f->specs[0].name = NULL;
	assert_int_equal(component_controller_start(f->c, f->all[0], NULL, &f->err), -EINVAL);
	f->specs[0] = good;
	f->specs[0].directory = NULL;
	assert_int_equal(component_controller_start(f->c, f->all[0], NULL, &f->err), -EINVAL);
	f->specs[0] = good;
	f->specs[0].reconcile = NULL;
	assert_int_equal(component_controller_start(f->c, f->all[0], NULL, &f->err), -EINVAL);
	f->specs[0] = good;
	assert_int_equal(component_controller_start(f->c, f->all[0], NULL, &f->err), 0);
	assert_int_equal(end(), 0);
}

/* The number of the one inotify descriptor; -1: there is none. */
static int
inotify_number(void)
{
	char path[32], to[32] = "";

	for (int fd = 3; fd < 1024; fd++) {
		snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
		if (readlink(path, to, sizeof to - 1) > 0 && strstr(to, "inotify") != NULL)
			return fd;
	}
	return -1;
}

static void
a_forked_child_has_no_descriptor_and_can_free_its_copy(void **state)
{
	pid_t child;
	int status, number;

	(void)state;
	f->block = true;
	put("key");
	begin(NULL);
	run_until(f->inside == 1);
	number = inotify_number();
	assert_true(number > 0);
	child = fork();
	if (child == 0) {
		alarm(600);
		if (inotify_number() >= 0 || dup2(STDERR_FILENO, number) != number)
			_exit(1);
		component_free(f->c);
		_exit(fcntl(number, F_GETFD) < 0 ? 2 : 0); /* that is the child's own */
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	f->block = false;
	run_until(f->finished == 1);
	put("other"); /* the parent still hears of changes */
	run_until(f->finished >= 2);
	assert_int_equal(end(), 0);
}

int
main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(files_there_and_files_that_come_are_reconciled),
		CASE(a_reconcile_may_log_post_and_fail_with_its_component),
		CASE(accept_chooses_and_names_the_keys),
		CASE(an_error_is_logged_with_key_and_reason_and_tried_again_until_done),
		CASE(the_retry_waits_as_long_as_the_options_say),
		CASE(terminal_is_logged_and_not_tried_again_until_the_file_changes),
		CASE(after_brings_the_key_back),
		CASE(resync_brings_all_keys_back),
		CASE(who_reloads_more_often_than_that_has_them_back_all_the_same),
		CASE(enqueue_takes_keys_from_elsewhere_and_null_controllers),
		CASE(a_key_that_the_queue_has_no_room_for_is_found_by_a_look_at_everything),
		CASE(concurrent_syncs_work_side_by_side),
		CASE(the_first_mention_of_a_name_counts),
		CASE(an_unknown_name_is_a_fault_that_lists_the_known_ones),
		CASE(options_that_contradict_each_other_are_all_named),
		CASE(a_stop_drains_the_queue_and_waits_for_the_workers),
		CASE(a_stop_that_runs_out_of_time_names_the_controller_and_survives_free),
		CASE(a_directory_that_is_not_there_is_named_and_nothing_runs),
		CASE(a_start_whose_threads_cannot_all_be_made_has_reconciled_nothing),
		CASE(specs_with_something_missing_are_refused),
		CASE(a_forked_child_has_no_descriptor_and_can_free_its_copy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
