/*
 * test_gitops_stop.c - a stop finishes what is short, and what takes long gives up.
 *
 * The long file is a hole of 1 TB: to read it takes an hour.
 */
#include <config.h>

#include "gitops_fixture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#define HOLE_BYTES (INT64_C(1) << 40)

void
component_controller_enqueue(struct component_controller *k, const char *key)
{
	(void)k, (void)key;
}

static void
hole(const char *path)
{
	put(path, "");
	assert_int_equal(truncate(at(path), HOLE_BYTES), 0);
}

static void *
look(void *ret)
{
	struct gitops_file file;

	*(int *)ret = gitops_file_look(root, "t/hole", &file);
	return NULL;
}

static void
a_stop_in_the_middle_of_a_long_file_ends_the_look_at_it(void **state)
{
	pthread_t thread;
	int r = 0;

	(void)state;
	hole("t/hole");
	assert_int_equal(pthread_create(&thread, NULL, look, &r), 0);
	gitops_stop(NULL);
	pthread_join(thread, NULL);
	assert_int_equal(r, -ECANCELED);
}

static void
what_is_short_is_still_finished(void **state)
{
	struct gitops_files files = { 0 };

	(void)state;
	put("t/a", "1");
	put("t/b/c", "2");
	gitops_stop(NULL);
	assert_int_equal(gitops_tree_look(root, "t", &files, &err), 0);
	assert_int_equal(gitops_copy_make(root, "t", &files, root, "copies/x/1", &err), 0);
	assert_int_equal(gitops_copy_make(root, "t", &files, root, "copies/x/1", &err), 0);
	gitops_files_free(&files);
}

static void
every_walk_and_comparison_gives_up(void **state)
{
	struct gitops_files files = { 0 }, none = { 0 };
	bool wrong[2];
	size_t count;

	(void)state;
	put("t/a", "1");
	put("t/hole", "2");
	assert_int_equal(gitops_tree_look(root, "t", &files, &err), 0);
	hole("t/hole");
	gitops_stop(NULL);
	assert_int_equal(gitops_tree_compare(root, "t", &files, wrong, &count, &err), -ECANCELED);
	assert_int_equal(gitops_tree_look(root, "t", &none, &err), -ECANCELED);
	assert_int_equal(gitops_copy_make(root, "t", &files, root, "t", &err), -ECANCELED);
	gitops_files_free(&files);
	gitops_files_free(&none);
}

/* Under its temporary name, which the next start sweeps up. */
static void
a_copy_that_gives_up_leaves_nothing_under_its_name(void **state)
{
	struct gitops_files files = { 0 };

	(void)state;
	gitops_stop(NULL); /* anew */
	put("t/hole", "1");
	assert_int_equal(gitops_tree_look(root, "t", &files, &err), 0);
	hole("t/hole");
	assert_int_equal(gitops_file_copy(root, "t/hole", root, "u/hole", &files.items[0], &err), -ECANCELED);
	assert_int_equal(access(at("u/hole"), F_OK), -1);
	assert_int_equal(gitops_copy_make(root, "t", &files, root, "copies/x/1", &err), -ECANCELED);
	assert_int_equal(access(at("copies/x/1"), F_OK), -1);
	gitops_stop(NULL);
	gitops_partials_sweep(root);
	assert_int_equal(rmdir(at("copies/x")), 0);
	gitops_files_free(&files);
}

int
main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, root_make, root_remove)
	const struct CMUnitTest tests[] = {
		CASE(a_stop_in_the_middle_of_a_long_file_ends_the_look_at_it), /* first: no stop can be taken back */
		CASE(what_is_short_is_still_finished),
		CASE(every_walk_and_comparison_gives_up),
		CASE(a_copy_that_gives_up_leaves_nothing_under_its_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
