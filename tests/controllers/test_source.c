/*
 * test_source.c - a directory tree changes in every way it can; the source says
 * every file that came, changed or went, and knows how many there are.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <search.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "skip.h"
#include "source.h"
#include "tree.h"

#define SAID_MAX 200000
#define NOBODY 65534

struct fixture {
	char           root[64];
	struct source *source;
	char          *said[SAID_MAX];
	int64_t        settle[SAID_MAX];
	size_t         count;
	unsigned       troubles;
	char           trouble[8192];
};

static struct fixture *f;

static unsigned walks;

void __real_twalk_r(const void *root, void (*visit)(const void *node, VISIT visit, void *arg), void *arg);
void __wrap_twalk_r(const void *root, void (*visit)(const void *node, VISIT visit, void *arg), void *arg);

void
__wrap_twalk_r(const void *root, void (*visit)(const void *node, VISIT visit, void *arg), void *arg)
{
	walks++;
	__real_twalk_r(root, visit, arg);
}

static bool readdir_fails;

struct dirent *__real_readdir(DIR *d);
struct dirent *__wrap_readdir(DIR *d);

struct dirent *
__wrap_readdir(DIR *d)
{
	if (!readdir_fails)
		return __real_readdir(d);
	errno = EIO;
	return NULL;
}

static time_t seconds;

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);

int
__wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
	(void)clock;
	*ret = (struct timespec){ .tv_sec = seconds };
	return 0;
}

#define NFS 0x6969
static bool is_nfs;

int __real_fstatfs(int fd, struct statfs *ret);
int __wrap_fstatfs(int fd, struct statfs *ret);

int
__wrap_fstatfs(int fd, struct statfs *ret)
{
	int r = __real_fstatfs(fd, ret);

	if (is_nfs)
		ret->f_type = NFS;
	return r;
}

static void
on_changed(const char *key, int64_t settle_ns, void *arg)
{
	assert_ptr_equal(arg, f);
	assert_true(f->count < SAID_MAX);
	f->settle[f->count] = settle_ns;
	f->said[f->count++] = strdup(key);
}

static void
on_trouble(const char *text, void *arg)
{
	(void)arg;
	f->troubles++;
	snprintf(f->trouble, sizeof f->trouble, "%s", text);
}

static void
forget_said(void)
{
	for (size_t n = 0; n < f->count; n++)
		free(f->said[n]);
	f->count = 0;
}

/* All there is to read, with a little patience. */
static void
read_all(void)
{
	struct pollfd p = { source_fd(f->source), POLLIN, 0 };

	while (poll(&p, 1, 20) > 0)
		source_read(f->source);
}

static size_t
times_said(const char *key)
{
	size_t times = 0;

	for (size_t n = 0; n < f->count; n++)
		times += strcmp(f->said[n], key) == 0;
	return times;
}

#define assert_said(key) assert_true(times_said(key) > 0)
#define assert_not_said(key) assert_int_equal(times_said(key), 0)

/* It is said, and never to be looked at once. */
static void
assert_settles(const char *key)
{
	assert_said(key);
	for (size_t n = 0; n < f->count; n++)
		assert_true(strcmp(f->said[n], key) != 0 || f->settle[n] > 0);
}

static const char *
at(const char *path)
{
	return tree_path(f->root, path);
}

static void
put(const char *path)
{
	int fd = open(at(path), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "x", 1), 1);
	close(fd);
}

static void
make_dir(const char *path)
{
	assert_int_equal(mkdir(at(path), 0755), 0);
}

/* "current" leads there from now on. */
static void
lead(const char *to)
{
	assert_int_equal(symlink(to, at("next")), 0);
	assert_int_equal(rename(at("next"), at("current")), 0);
}

static int
setup(void **state)
{
	(void)state;
	is_nfs = false;
	seconds = 1000;
	f = calloc(1, sizeof *f);
	strcpy(f->root, "/tmp/component-source-XXXXXX");
	return f == NULL || mkdtemp(f->root) == NULL ? -1 : 0;
}

static void
begin_at(const char *directory)
{
	struct source_events e = { on_changed, on_trouble, f };

	assert_int_equal(source_new(directory, &e, &f->source, NULL), 0);
	source_rescan(f->source);
}

static void
begin(void)
{
	begin_at(f->root);
}

static int
teardown(void **state)
{
	(void)state;
	source_free(f->source);
	forget_said();
	tree_remove(f->root);
	free(f);
	return 0;
}

static void
what_is_there_at_first_is_said_once(void **state)
{
	(void)state;
	put("a");
	make_dir("d");
	put("d/b");
	make_dir("d/e");
	put("d/e/c");
	begin();
	assert_int_equal(f->count, 3);
	assert_said("a");
	assert_said("d/b");
	assert_said("d/e/c");
	assert_int_equal(source_file_count(f->source), 3);
	read_all();
	assert_int_equal(f->count, 3);
}

static void
files_made_changed_touched_and_removed_are_said(void **state)
{
	(void)state;
	make_dir("d");
	begin();
	put("d/a");
	read_all();
	assert_said("d/a");
	assert_int_equal(source_file_count(f->source), 1);
	forget_said();
	put("d/a");
	read_all();
	assert_said("d/a");
	forget_said();
	chmod(at("d/a"), 0600);
	read_all();
	assert_said("d/a");
	forget_said();
	unlink(at("d/a"));
	read_all();
	assert_said("d/a");
	assert_int_equal(source_file_count(f->source), 0);
}

static void
a_file_renamed_is_said_under_both_names(void **state)
{
	(void)state;
	make_dir("d");
	put("a");
	begin();
	forget_said();
	rename(at("a"), at("d/b"));
	read_all();
	assert_said("a");
	assert_said("d/b");
	assert_int_equal(source_file_count(f->source), 1);
}

static void
new_nested_directories_are_watched_with_what_they_hold(void **state)
{
	(void)state;
	begin();
	make_dir("n1");
	make_dir("n1/n2");
	make_dir("n1/n2/n3");
	put("n1/n2/n3/early");
	read_all();
	assert_said("n1/n2/n3/early");
	put("n1/n2/n3/late");
	make_dir("n1/n2/n3/n4");
	put("n1/n2/n3/n4/later");
	read_all();
	assert_said("n1/n2/n3/late");
	assert_said("n1/n2/n3/n4/later");
	assert_int_equal(source_file_count(f->source), 3);
}

static void
a_directory_renamed_inside_takes_its_files_to_the_new_name(void **state)
{
	(void)state;
	make_dir("a");
	make_dir("a/sub");
	put("a/sub/f");
	begin();
	forget_said();
	rename(at("a"), at("b"));
	read_all();
	assert_said("a/sub/f");
	assert_said("b/sub/f");
	assert_int_equal(source_file_count(f->source), 1);
	forget_said();
	put("b/sub/f");
	put("b/sub/g");
	read_all();
	assert_said("b/sub/f");
	assert_said("b/sub/g");
	assert_not_said("a/sub/f");
}

static void
a_directory_renamed_to_and_fro_before_we_look_is_still_watched(void **state)
{
	(void)state;
	make_dir("a");
	put("a/f");
	begin();
	forget_said();
	rename(at("a"), at("b"));
	rename(at("b"), at("c"));
	rename(at("c"), at("a"));
	make_dir("b");
	put("b/g");
	read_all();
	assert_int_equal(source_file_count(f->source), 2);
	forget_said();
	put("a/f");
	put("b/g");
	read_all();
	assert_said("a/f");
	assert_said("b/g");
}

static void
two_directories_that_change_names_are_each_watched_under_the_new_one(void **state)
{
	(void)state;
	make_dir("a");
	make_dir("b");
	put("a/of_a");
	put("b/of_b");
	begin();
	for (int n = 0; n < 5; n++) {
		rename(at("a"), at("t"));
		rename(at("b"), at("a"));
		rename(at("t"), at("b"));
	}
	read_all();
	assert_int_equal(source_file_count(f->source), 2);
	forget_said();
	put("a/of_b");
	put("b/of_a");
	put("a/new");
	read_all();
	assert_said("a/of_b");
	assert_said("b/of_a");
	assert_said("a/new");
	assert_not_said("b/new");
}

static void
exchange(const char *a, const char *b)
{
	int r = renameat2(AT_FDCWD, at(a), AT_FDCWD, at(b), RENAME_EXCHANGE);

	if (r != 0 && (errno == EINVAL || errno == ENOSYS))
		SKIP("the file system exchanges no names");
	assert_int_equal(r, 0);
}

static void
two_directories_exchanged_are_each_watched_under_the_new_name(void **state)
{
	(void)state;
	make_dir("a");
	make_dir("b");
	put("a/of_a");
	put("b/of_b");
	begin();
	for (int n = 0; n < 2; n++) {
		forget_said();
		exchange("a", "b");
		read_all();
		assert_said("a/of_a");
		assert_said("a/of_b");
		assert_said("b/of_a");
		assert_said("b/of_b");
		assert_int_equal(source_file_count(f->source), 2);
		forget_said();
		put(n == 0 ? "a/of_b" : "a/of_a");
		put(n == 0 ? "b/of_a" : "b/of_b");
		read_all();
		assert_said(n == 0 ? "a/of_b" : "a/of_a");
		assert_said(n == 0 ? "b/of_a" : "b/of_b");
	}
}

static void
two_files_exchanged_and_one_with_a_directory_are_known(void **state)
{
	(void)state;
	make_dir("d");
	put("d/f");
	put("a");
	put("b");
	begin();
	forget_said();
	exchange("a", "b");
	read_all();
	assert_said("a");
	assert_said("b");
	assert_int_equal(source_file_count(f->source), 3);
	exchange("d", "a");
	read_all();
	assert_said("d");
	assert_said("a/f");
	assert_int_equal(source_file_count(f->source), 3);
	forget_said();
	put("a/f");
	put("d");
	read_all();
	assert_said("a/f");
	assert_said("d");
}

static void
files_of_a_directory_moved_away_are_said(void **state)
{
	char outside[] = "/tmp/component-outside-XXXXXX";
	char moved[64];

	(void)state;
	assert_non_null(mkdtemp(outside));
	snprintf(moved, sizeof moved, "%s/d", outside);
	make_dir("d");
	make_dir("d/e");
	put("d/e/f");
	put("d2"); /* shares the beginning of the name, is not below it */
	begin();
	forget_said();
	assert_int_equal(rename(at("d"), moved), 0);
	read_all();
	assert_said("d/e/f");
	assert_not_said("d2");
	assert_int_equal(source_file_count(f->source), 1);
	forget_said();
	/* It is not ours any more. */
	snprintf(moved, sizeof moved, "%s/d/e/f", outside);
	unlink(moved);
	read_all();
	assert_int_equal(f->count, 0);
	tree_remove(outside);
}

static void
a_tree_removed_is_said_file_by_file(void **state)
{
	(void)state;
	make_dir("d");
	make_dir("d/e");
	put("d/e/f");
	put("d/g");
	begin();
	forget_said();
	tree_remove(at("d"));
	read_all();
	assert_said("d/e/f");
	assert_said("d/g");
	assert_int_equal(source_file_count(f->source), 0);
	/* and its name can be used again */
	make_dir("d");
	put("d/h");
	read_all();
	assert_said("d/h");
}

static void
a_tree_is_removed_without_walks_over_all_that_is_known(void **state)
{
	char name[32];

	(void)state;
	make_dir("d");
	for (int n = 0; n < 50; n++) {
		snprintf(name, sizeof name, "d/%d", n);
		make_dir(name);
		strcat(name, "/f");
		put(name);
	}
	begin();
	walks = 0;
	tree_remove(at("d"));
	read_all();
	assert_int_equal(walks, 0);
	assert_int_equal(source_file_count(f->source), 0);
}

/* Names around "d/" in the order of bytes. */
static void
files_beside_a_directory_that_goes_stay_known(void **state)
{
	static const char *const beside[] = { "d!", "d-x", "d.", "d0", "d\xff", "c", "e", "dd" };

	(void)state;
	for (size_t n = 0; n < sizeof beside / sizeof *beside; n++)
		put(beside[n]);
	make_dir("d");
	put("d/!");
	put("d/\xff");
	make_dir("d/d");
	put("d/d/f");
	begin();
	forget_said();
	rename(at("d"), at("x"));
	read_all();
	assert_said("d/!");
	assert_said("d/\xff");
	assert_said("d/d/f");
	for (size_t n = 0; n < sizeof beside / sizeof *beside; n++)
		assert_not_said(beside[n]);
	assert_int_equal(source_file_count(f->source), 3 + sizeof beside / sizeof *beside);
}

static void
a_file_that_becomes_a_directory_and_back_is_followed(void **state)
{
	(void)state;
	put("x");
	begin();
	unlink(at("x"));
	make_dir("x");
	put("x/y");
	read_all();
	assert_said("x/y");
	tree_remove(at("x"));
	put("x");
	read_all();
	assert_int_equal(source_file_count(f->source), 1);
}

static void
links_are_said_and_never_followed(void **state)
{
	(void)state;
	make_dir("d");
	put("d/f");
	assert_int_equal(symlink("d", at("to_dir")), 0);
	assert_int_equal(symlink("/", at("to_root")), 0);
	begin();
	assert_said("to_dir");
	assert_said("to_root");
	assert_int_equal(source_file_count(f->source), 3);
	assert_int_equal(link(at("d/f"), at("hard")), 0);
	assert_int_equal(symlink("..", at("d/up")), 0);
	read_all();
	assert_said("hard");
	assert_said("d/up");
	assert_int_equal(source_file_count(f->source), 5);
}

/* A ConfigMap's volume, as kubelet keeps it. */
static void
a_link_that_leads_to_another_directory_says_the_links_through_it(void **state)
{
	(void)state;
	make_dir("..a");
	put("..a/shop.yaml");
	assert_int_equal(symlink("..a", at("..data")), 0);
	assert_int_equal(symlink("..data/shop.yaml", at("shop.yaml")), 0);
	begin();
	forget_said();
	seconds += 10;
	make_dir("..b");
	put("..b/shop.yaml");
	assert_int_equal(symlink("..b", at("..data_tmp")), 0);
	read_all();
	assert_not_said("shop.yaml");
	rename(at("..data_tmp"), at("..data"));
	tree_remove(at("..a"));
	read_all();
	assert_int_equal(times_said("shop.yaml"), 1);
	assert_int_equal(source_file_count(f->source), 3);
	forget_said();
	assert_int_equal(symlink("shop.yaml", at("to_a_file")), 0);
	read_all();
	assert_said("to_a_file");
	assert_not_said("shop.yaml");
}

/* A reconcile may be what makes it. */
static void
a_link_replaced_again_and_again_has_all_said_now_and_then(void **state)
{
	(void)state;
	make_dir("a");
	make_dir("b");
	put("file");
	begin();
	forget_said();
	for (int n = 0; n < 10; n++) {
		lead(n % 2 == 0 ? "a" : "b");
		read_all();
	}
	assert_not_said("file");
	assert_true(source_is_blind(f->source));
	source_rescan(f->source);
	assert_int_equal(times_said("file"), 1);
	assert_false(source_is_blind(f->source));
}

static void
a_link_to_elsewhere_is_not_looked_behind(void **state)
{
	(void)state;
	make_dir("a");
	put("file");
	begin();
	forget_said();
	lead("/");
	read_all();
	lead("./a");
	read_all();
	assert_said("current");
	assert_not_said("file");
	assert_false(source_is_blind(f->source));
}

static void
a_file_being_written_is_left_alone_until_it_is_closed(void **state)
{
	int fd;

	(void)state;
	begin();
	fd = open(at("f"), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	read_all();
	assert_int_equal(write(fd, "half", 4), 4);
	read_all();
	assert_said("f");
	for (size_t n = 0; n < f->count; n++)
		assert_true(f->settle[n] > 0);
	forget_said();
	close(fd);
	read_all();
	assert_int_equal(f->count, 1);
	assert_int_equal(f->settle[0], 0);
}

static void
what_has_gone_is_left_alone_for_as_long_as_it_may_come_back(void **state)
{
	(void)state;
	put("removed");
	put("renamed");
	make_dir("d");
	put("d/with_its_directory");
	put("missed");
	begin();
	forget_said();
	unlink(at("removed"));
	rename(at("renamed"), at("renamed~"));
	rename(at("d"), at("e"));
	read_all();
	assert_settles("removed");
	assert_settles("renamed");
	assert_settles("d/with_its_directory");
	unlink(at("missed"));
	forget_said();
	source_rescan(f->source);
	assert_settles("missed");
	read_all();
	forget_said();
	put("removed"); /* it is back */
	read_all();
	assert_int_equal(f->settle[f->count - 1], 0);
}

/* One of the kernel's limits, /proc/sys/fs/inotify/NAME. */
static int
limit_of(const char *name)
{
	FILE *file = fopen(tree_path("/proc/sys/fs/inotify", name), "r");
	int limit = 0;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%d", &limit), 1);
	fclose(file);
	return limit;
}

static void
after_an_overflow_everything_that_came_and_went_is_said(void **state)
{
	int limit = limit_of("max_queued_events");
	char name[32];

	(void)state;
	assert_in_range(limit, 1, 1000000);
	make_dir("noise");
	make_dir("goes");
	put("goes/f");
	begin();
	forget_said();
	/* Two names in turn: equal events in a row would be folded into one. */
	for (int n = 0; n < limit + 100; n++) {
		snprintf(name, sizeof name, "noise/%d", n % 2);
		assert_int_equal(mknod(at(name), S_IFREG | 0644, 0), 0);
		unlink(at(name));
	}
	/* None of this is in the queue any more. */
	rename(at("goes"), at("came"));
	make_dir("new");
	put("new/f");
	read_all();
	assert_said("goes/f");
	assert_said("came/f");
	assert_said("new/f");
	assert_int_equal(source_file_count(f->source), 2);
	assert_int_equal(f->troubles, 0);
	forget_said();
	put("new/g");
	put("came/g");
	read_all();
	assert_said("new/g");
	assert_said("came/g");
}

static void
a_rescan_of_more_directories_than_the_queue_has_room_for_comes_to_an_end(void **state)
{
	int limit = limit_of("max_queued_events"), count = limit + 100;
	struct pollfd p = { .events = POLLIN };
	char name[32];

	(void)state;
	if (limit > 100000 || limit_of("max_user_watches") < 2 * count)
		SKIP("there is no room for so many watches");
	for (int n = 0; n < count; n++) {
		snprintf(name, sizeof name, "%d", n);
		make_dir(name);
	}
	put("0/f");
	put("f");
	begin();
	forget_said();
	source_rescan(f->source);
	p.fd = source_fd(f->source);
	for (int n = 0; n < 1000 && poll(&p, 1, 20) > 0; n++)
		source_read(f->source);
	assert_int_equal(poll(&p, 1, 0), 0);
	assert_in_range(times_said("0/f"), 1, 2);
	assert_in_range(times_said("f"), 1, 2);
	forget_said();
	put("0/g");
	read_all();
	assert_said("0/g");
	assert_int_equal(f->troubles, 0);
}

static void
a_rescan_says_everything_and_what_is_gone(void **state)
{
	(void)state;
	make_dir("d");
	put("d/a");
	put("b");
	begin();
	forget_said();
	unlink(at("b"));
	source_rescan(f->source);
	assert_int_equal(times_said("d/a"), 1);
	assert_int_equal(times_said("b"), 1);
	assert_int_equal(source_file_count(f->source), 1);
	forget_said();
	source_rescan(f->source);
	assert_int_equal(f->count, 1);
	read_all();
	put("d/a");
	read_all();
	assert_said("d/a");
}

static void
a_root_that_goes_and_comes_back_is_found_by_a_rescan(void **state)
{
	char away[80];

	(void)state;
	make_dir("d");
	put("d/f");
	begin();
	assert_false(source_is_blind(f->source));
	forget_said();
	snprintf(away, sizeof away, "%s-away", f->root);
	rename(f->root, away);
	read_all();
	assert_said("d/f");
	assert_true(source_is_blind(f->source));
	assert_int_equal(source_file_count(f->source), 0);
	rename(away, f->root);
	source_rescan(f->source);
	assert_false(source_is_blind(f->source));
	assert_int_equal(source_file_count(f->source), 1);
	forget_said();
	put("d/f");
	read_all();
	assert_said("d/f");
}

/* The root had the file "old" alone, and its name is now that of another, with "new". */
static void
assert_another_root_is_found(const char *root)
{
	char later[32];

	read_all();
	assert_true(source_is_blind(f->source));
	forget_said();
	source_rescan(f->source);
	assert_false(source_is_blind(f->source));
	assert_said("old");
	assert_said("new");
	assert_int_equal(source_file_count(f->source), 1);
	snprintf(later, sizeof later, "%s/later", root);
	put(later);
	read_all();
	assert_said("later");
}

static void
another_root_below_another_directory_of_that_name_is_found(void **state)
{
	(void)state;
	make_dir("above");
	make_dir("above/root");
	put("above/root/old");
	begin_at(at("above/root"));
	assert_false(source_is_blind(f->source));
	rename(at("above"), at("away"));
	make_dir("above");
	make_dir("above/root");
	put("above/root/new");
	assert_another_root_is_found("above/root");
}

static void
another_root_that_a_link_leads_to_is_found(void **state)
{
	(void)state;
	make_dir("a");
	put("a/old");
	make_dir("b");
	put("b/new");
	lead("a");
	begin_at(at("current"));
	assert_false(source_is_blind(f->source));
	lead("b");
	assert_another_root_is_found("current");
}

static void
a_root_on_a_network_file_system_is_not_looked_up_by_name(void **state)
{
	(void)state;
	make_dir("a");
	put("a/old");
	make_dir("b");
	put("b/new");
	lead("a");
	is_nfs = true;
	begin_at(at("current"));
	lead("b");
	assert_false(source_is_blind(f->source));
	source_rescan(f->source); /* that is for --resync-period to find */
	assert_said("new");
}

/* How many the kernel knows of. */
static unsigned
watches(void)
{
	char path[64], line[512];
	unsigned count = 0;
	FILE *file;

	snprintf(path, sizeof path, "/proc/self/fdinfo/%d", source_fd(f->source));
	file = fopen(path, "r");
	assert_non_null(file);
	while (fgets(line, sizeof line, file) != NULL)
		count += strncmp(line, "inotify wd:", 11) == 0;
	fclose(file);
	return count;
}

static void
another_root_that_goes_again_leaves_no_watch_behind(void **state)
{
	(void)state;
	make_dir("a");
	make_dir("b");
	lead("a");
	begin_at(at("current"));
	assert_int_equal(watches(), 1);
	lead("b");
	assert_true(source_is_blind(f->source));
	lead("a");
	assert_false(source_is_blind(f->source));
	assert_int_equal(watches(), 1);
}

static void
another_root_is_found_while_somebody_has_the_old_one_open(void **state)
{
	int fd;

	(void)state;
	make_dir("root");
	put("root/old");
	begin_at(at("root"));
	fd = open(at("root"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	tree_remove(at("root"));
	make_dir("root");
	put("root/new");
	read_all();
	assert_int_equal(source_file_count(f->source), 0); /* that is told */
	assert_true(source_is_blind(f->source));
	source_rescan(f->source);
	close(fd);
	read_all();
	assert_false(source_is_blind(f->source));
	assert_int_equal(source_file_count(f->source), 1);
	put("root/later");
	read_all();
	assert_said("later");
}

static void
a_root_that_has_gone_is_trouble(void **state)
{
	(void)state;
	make_dir("root");
	begin_at(at("root"));
	assert_int_equal(f->troubles, 0);
	rmdir(at("root"));
	read_all();
	assert_int_equal(f->troubles, 1);
	assert_non_null(strstr(f->trouble, at("root")));
	assert_non_null(strstr(f->trouble, "No such file"));
	assert_true(source_is_blind(f->source));
}

/* In a child, for its namespaces; 0: good, 1: not, 77: there are none to be had. */
static int
what_mounts_show_is_said(void)
{
	struct source_events e = { on_changed, on_trouble, f };
	bool good;

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0 || mount("none", at("m"), "tmpfs", 0, NULL) != 0)
		return 77;
	if (source_new(f->root, &e, &f->source, NULL) != 0)
		return 1;
	source_rescan(f->source);
	good = times_said("m/under") == 0;
	if (umount(at("m")) != 0)
		return 1;
	read_all();
	good = good && times_said("m/under") != 0;
	forget_said();
	if (utimensat(AT_FDCWD, at("m/under"), NULL, 0) != 0)
		return 1;
	read_all();
	good = good && times_said("m/under") != 0;
	/* The root below itself is the root. */
	if (mount(f->root, at("m"), NULL, MS_BIND, NULL) != 0)
		return 1;
	source_rescan(f->source);
	good = good && !source_is_blind(f->source);
	forget_said();
	put("later");
	read_all();
	return good && times_said("later") != 0 ? 0 : 1;
}

static void
what_was_below_a_mount_that_is_gone_is_said_and_watched(void **state)
{
	pid_t child;
	int status;

	(void)state;
	make_dir("m");
	put("m/under");
	child = fork();
	if (child == 0) {
		alarm(60);
		_exit(what_mounts_show_is_said());
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		SKIP("no namespaces of users and mounts are to be had");
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void
a_directory_that_cannot_be_read_is_trouble_and_the_rest_is_watched(void **state)
{
	(void)state;
	/* Root reads everything, so be somebody else. */
	if (geteuid() == 0) {
		assert_int_equal(chown(f->root, NOBODY, NOBODY), 0);
		assert_int_equal(seteuid(NOBODY), 0);
	}
	make_dir("closed");
	make_dir("open");
	put("open/f");
	chmod(at("closed"), 0);
	begin();
	assert_true(f->troubles > 0);
	assert_true(source_is_blind(f->source));
	assert_said("open/f");
	chmod(at("closed"), 0700);
	if (getuid() == 0)
		assert_int_equal(seteuid(0), 0);
}

static void
a_directory_that_is_read_in_part_is_trouble_until_it_is_read(void **state)
{
	(void)state;
	put("a");
	put("b");
	begin();
	readdir_fails = true;
	source_rescan(f->source);
	readdir_fails = false;
	assert_int_equal(f->troubles, 1);
	assert_non_null(strstr(f->trouble, "cannot read"));
	assert_non_null(strstr(f->trouble, strerror(EIO)));
	assert_true(source_is_blind(f->source));
	forget_said();
	source_rescan(f->source);
	assert_said("a");
	assert_said("b");
	assert_false(source_is_blind(f->source));
	assert_int_equal(source_file_count(f->source), 2);
}

static void
a_tree_too_deep_is_trouble_and_not_a_crash(void **state)
{
	char path[1024] = "";

	(void)state;
	for (int n = 0; n < 80; n++) {
		strcat(path, n == 0 ? "d" : "/d");
		make_dir(path);
	}
	strcat(path, "/f");
	put(path);
	begin();
	assert_true(f->troubles > 0);
	assert_non_null(strstr(f->trouble, "levels"));
	assert_int_equal(source_file_count(f->source), 0);
}

static void
a_directory_that_is_not_there_is_an_error_that_names_it(void **state)
{
	struct source_events e = { on_changed, on_trouble, f };
	struct component_error err = COMPONENT_ERROR_INIT;

	(void)state;
	assert_int_equal(source_new(at("nowhere"), &e, &f->source, &err), -ENOENT);
	assert_non_null(strstr(err.text, at("nowhere")));
	assert_null(f->source);
	put("file");
	assert_int_equal(source_new(at("file"), &e, &f->source, &err), -ENOTDIR);
	source_free(NULL);
}

struct storm {
	const char *root;
	int         seed;
};

/* Makes, writes, renames and removes at random, below DIRS directories. */
#define DIRS 6
static void *
storm(void *arg)
{
	struct storm *s = arg;
	unsigned seed = (unsigned)s->seed;
	char a[256], b[256];

	for (int n = 0; n < 3000; n++) {
		int r = rand_r(&seed), fd;

		snprintf(a, sizeof a, "%s/d%d", s->root, r % DIRS);
		snprintf(b, sizeof b, "%s/d%d", s->root, r / 7 % DIRS);
		switch (r / 64 % 8) {
		case 0: mkdir(a, 0755); break;
		case 1: rename(a, b); break;
		case 2: strcat(b, "/sub"); rename(a, b); break;
		case 3: tree_remove(a); break;
		case 4: strcat(a, "/sub"); mkdir(a, 0755); break;
		default:
			if (r & 1)
				strcat(a, "/sub");
			snprintf(a + strlen(a), 16, "/f%d", r / 512 % 5);
			fd = open(a, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
			if (fd >= 0) {
				if (write(fd, "x", 1) != 1)
					abort();
				close(fd);
			}
		}
	}
	return NULL;
}

static size_t files_found;

static int
count_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)path, (void)st, (void)ftw;
	files_found += type == FTW_F;
	return 0;
}

static void
after_a_storm_of_changes_the_files_known_are_the_files_there(void **state)
{
	pthread_t threads[3];
	struct storm storms[3];

	(void)state;
	begin();
	for (int n = 0; n < 3; n++) {
		storms[n] = (struct storm){ f->root, n + 1 };
		assert_int_equal(pthread_create(&threads[n], NULL, storm, &storms[n]), 0);
	}
	for (int n = 0; n < 200; n++) {
		struct pollfd p = { source_fd(f->source), POLLIN, 0 };

		poll(&p, 1, 1);
		source_read(f->source);
		forget_said();
	}
	for (int n = 0; n < 3; n++)
		pthread_join(threads[n], NULL);
	read_all();
	nftw(f->root, count_one, 16, FTW_PHYS);
	assert_int_equal(source_file_count(f->source), files_found);
	forget_said();
	source_rescan(f->source);
	assert_int_equal(f->count, files_found); /* nothing had to be taken back */
}

int
main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(what_is_there_at_first_is_said_once),
		CASE(files_made_changed_touched_and_removed_are_said),
		CASE(a_file_renamed_is_said_under_both_names),
		CASE(new_nested_directories_are_watched_with_what_they_hold),
		CASE(a_directory_renamed_inside_takes_its_files_to_the_new_name),
		CASE(a_directory_renamed_to_and_fro_before_we_look_is_still_watched),
		CASE(two_directories_that_change_names_are_each_watched_under_the_new_one),
		CASE(two_directories_exchanged_are_each_watched_under_the_new_name),
		CASE(two_files_exchanged_and_one_with_a_directory_are_known),
		CASE(files_of_a_directory_moved_away_are_said),
		CASE(a_tree_removed_is_said_file_by_file),
		CASE(a_tree_is_removed_without_walks_over_all_that_is_known),
		CASE(files_beside_a_directory_that_goes_stay_known),
		CASE(a_file_that_becomes_a_directory_and_back_is_followed),
		CASE(links_are_said_and_never_followed),
		CASE(a_link_that_leads_to_another_directory_says_the_links_through_it),
		CASE(a_link_replaced_again_and_again_has_all_said_now_and_then),
		CASE(a_link_to_elsewhere_is_not_looked_behind),
		CASE(a_file_being_written_is_left_alone_until_it_is_closed),
		CASE(what_has_gone_is_left_alone_for_as_long_as_it_may_come_back),
		CASE(after_an_overflow_everything_that_came_and_went_is_said),
		CASE(a_rescan_of_more_directories_than_the_queue_has_room_for_comes_to_an_end),
		CASE(a_rescan_says_everything_and_what_is_gone),
		CASE(a_root_that_goes_and_comes_back_is_found_by_a_rescan),
		CASE(another_root_below_another_directory_of_that_name_is_found),
		CASE(another_root_that_a_link_leads_to_is_found),
		CASE(a_root_on_a_network_file_system_is_not_looked_up_by_name),
		CASE(another_root_that_goes_again_leaves_no_watch_behind),
		CASE(another_root_is_found_while_somebody_has_the_old_one_open),
		CASE(a_root_that_has_gone_is_trouble),
		CASE(what_was_below_a_mount_that_is_gone_is_said_and_watched),
		CASE(a_directory_that_cannot_be_read_is_trouble_and_the_rest_is_watched),
		CASE(a_directory_that_is_read_in_part_is_trouble_until_it_is_read),
		CASE(a_tree_too_deep_is_trouble_and_not_a_crash),
		CASE(a_directory_that_is_not_there_is_an_error_that_names_it),
		CASE(after_a_storm_of_changes_the_files_known_are_the_files_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
