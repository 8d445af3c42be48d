/*
 * test_gitops.c - what the three controllers share: hashes, paths that stay below
 * their root, files that are whole, documents, claims.
 */
#include <config.h>

#include "gitops_fixture.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* What claims tell; the controllers' queue is not here. */
static char told[256];

void
component_controller_enqueue(struct component_controller *k, const char *key)
{
	(void)k;
	strcat(told, key);
	strcat(told, " ");
}

static int reads = -1;    /* of directories before they fail; -1: they do not */
static const char *going; /* a file that is removed once its name is read */

struct dirent *
readdir(DIR *d)
{
	static struct dirent *(*real)(DIR *d);
	struct dirent *e;

	if (real == NULL)
		real = (__typeof__(real))dlsym(RTLD_NEXT, "readdir");
	if (reads == 0) {
		errno = EIO;
		return NULL;
	}
	reads -= reads > 0;
	e = real(d);
	if (e != NULL && going != NULL && strcmp(e->d_name, going) == 0)
		unlinkat(dirfd(d), going, 0);
	return e;
}

static int
setup(void **state)
{
	reads = -1;
	going = NULL;
	*told = '\0';
	return root_make(state);
}

static void
assert_holds(const char *path, const char *want)
{
	char *text = NULL;

	assert_int_equal(gitops_file_read(root, path, 1 << 20, &text, &err), 0);
	assert_string_equal(text, want);
	free(text);
}

static void
hashes_are_those_of_the_standards_examples(void **state)
{
	static const struct { const char *text; size_t times; const char *hash; } cases[] = {
		{ "", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
		{ "abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
		{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
			"248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
		{ "a", 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0" },
	};
	char hex[GITOPS_HASH_SIZE], text[200];
	struct gitops_hash h;

	(void)state;
	for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
		gitops_hash_begin(&h);
		for (size_t i = 0; i < cases[n].times; i++)
			gitops_hash_add(&h, cases[n].text, strlen(cases[n].text));
		gitops_hash_end(&h, hex);
		assert_string_equal(hex, cases[n].hash);
	}
	/* However it is cut, the hash is the same. */
	memset(text, 'x', sizeof text);
	for (size_t size = 0; size <= sizeof text; size++) {
		char whole[GITOPS_HASH_SIZE];

		gitops_hash_begin(&h);
		gitops_hash_add(&h, text, size);
		gitops_hash_end(&h, whole);
		for (size_t cut = 0; cut <= size; cut++) {
			gitops_hash_begin(&h);
			gitops_hash_add(&h, text, cut);
			gitops_hash_add(&h, text + cut, size - cut);
			gitops_hash_end(&h, hex);
			assert_string_equal(hex, whole);
		}
	}
}

static void
paths_that_could_leave_their_root_are_refused(void **state)
{
	static const char *const bad[] = { "", "/", "/a", "..", "../a", "a/..", "a/../b", ".", "./a", "a/.", "a//b", "a/",
		".gitops-partial.0123456789abcdef", "a/.gitops-partial.x" };
	static const char *const good[] = { "a", "a/b", "..a", "a..", "...", "a b/\xc3\xbc", ".hidden/x", " a", "a\nb\x7f", "\xff" };
	char longest[GITOPS_PATH_MAX + 1];

	(void)state;
	for (size_t n = 0; n < sizeof bad / sizeof *bad; n++) {
		assert_int_equal(gitops_path_check(bad[n], &err), -EINVAL);
		assert_int_equal(gitops_file_write(root, bad[n], "x", false, NULL), -EINVAL);
	}
	for (size_t n = 0; n < sizeof good / sizeof *good; n++)
		assert_int_equal(gitops_path_check(good[n], &err), 0);
	memset(longest, 'a', sizeof longest);
	for (size_t n = 100; n < sizeof longest; n += 100)
		longest[n] = '/';
	longest[GITOPS_PATH_MAX] = '\0';
	assert_int_equal(gitops_path_check(longest, &err), -EINVAL);
	longest[GITOPS_PATH_MAX - 1] = '\0';
	assert_int_equal(gitops_path_check(longest, &err), 0);
	memset(longest, 'a', 256);
	longest[256] = '\0';
	assert_int_equal(gitops_path_check(longest, &err), -EINVAL);
}

static void
below_means_whole_names(void **state)
{
	(void)state;
	assert_true(gitops_path_below("a", "a"));
	assert_true(gitops_path_below("a/b", "a"));
	assert_false(gitops_path_below("ab", "a"));
	assert_false(gitops_path_below("a", "a/b"));
	assert_false(gitops_path_below("a", ""));
}

static void
a_file_is_replaced_as_a_whole_and_left_alone_if_it_is_the_same(void **state)
{
	struct stat before, after;

	(void)state;
	put("d/e/f", "one");
	assert_holds("d/e/f", "one");
	stat(at("d/e/f"), &before);
	put("d/e/f", "one");
	stat(at("d/e/f"), &after);
	assert_int_equal(before.st_ino, after.st_ino);
	put("d/e/f", "two");
	stat(at("d/e/f"), &after);
	assert_int_not_equal(before.st_ino, after.st_ino);
	assert_holds("d/e/f", "two");
	assert_int_equal(gitops_file_remove(root, "d/e/f"), 0);
	assert_int_equal(access(at("d"), F_OK), -1);
	assert_int_equal(gitops_file_remove(root, "d/e/f"), 0);
}

static void
a_root_that_is_not_there_is_told_from_a_file_that_is_not_there(void **state)
{
	char *text;

	(void)state;
	assert_int_equal(gitops_file_read(root, "a/b", 100, &text, &err), -ENOENT);
	assert_int_equal(gitops_file_read(at("nowhere"), "a", 100, &text, &err), -ENOTDIR);
	put("large", "0123456789");
	assert_int_equal(gitops_file_read(root, "large", 9, &text, &err), -EFBIG);
}

static void
symbolic_links_are_not_followed_anywhere(void **state)
{
	struct gitops_file file = { 0 };
	struct gitops_files files = { 0 };
	char *text;

	(void)state;
	put("outside/secret", "secret");
	put("in/f", "x");
	assert_int_equal(symlink("../outside", at("in/link")), 0);
	assert_int_equal(symlink("f", at("in/to_f")), 0);
	assert_int_equal(gitops_file_read(root, "in/link/secret", 100, &text, &err), -ENOTDIR);
	assert_int_equal(gitops_file_read(root, "in/to_f", 100, &text, &err), -ELOOP);
	assert_int_equal(gitops_file_look(root, "in/to_f", &file), -ELOOP);
	assert_int_not_equal(gitops_file_write(root, "in/link/secret", "changed", false, &err), 0);
	assert_int_not_equal(gitops_file_write(root, "in/link/new", "new", false, &err), 0);
	assert_int_not_equal(gitops_file_remove(root, "in/link/secret"), 0);
	assert_holds("outside/secret", "secret");
	assert_int_equal(gitops_tree_look(root, "in", &files, &err), -EINVAL);
	assert_non_null(strstr(err.text, "symbolic link"));
	gitops_files_free(&files);
	gitops_tree_remove(root, "in");
	assert_holds("outside/secret", "secret");
	/* a link in the place of a file is replaced, not written through */
	assert_int_equal(symlink("outside/secret", at("place")), 0);
	put("place", "mine");
	assert_holds("place", "mine");
	assert_holds("outside/secret", "secret");
}

static void
pipes_and_directories_are_not_read_as_files(void **state)
{
	struct gitops_file file = { 0 };
	struct gitops_files files = { 0 };

	(void)state;
	assert_int_equal(mkfifo(at("pipe"), 0600), 0);
	assert_int_equal(gitops_file_look(root, "pipe", &file), -EINVAL);
	assert_int_equal(gitops_tree_look(root, "", &files, &err), -EINVAL);
	assert_non_null(strstr(err.text, "special file"));
	gitops_files_free(&files);
	assert_int_equal(gitops_file_look(root, "", &file), -EINVAL);
}

static void
a_copy_that_is_not_what_was_wanted_changes_nothing(void **state)
{
	struct gitops_file want = { 0 };

	(void)state;
	put("from/f", "one");
	put("to/g", "old");
	assert_int_equal(gitops_file_look(root, "from/f", &want), 0);
	put("from/f", "two");
	assert_int_equal(gitops_file_copy(root, "from/f", root, "to/g", &want, &err), -ESTALE);
	assert_holds("to/g", "old");
	unlink(at("from/f"));
	assert_int_equal(gitops_file_copy(root, "from/f", root, "to/g", &want, &err), -ESTALE);
	assert_int_equal(mkfifo(at("from/f"), 0600), 0); /* for now */
	assert_int_equal(gitops_file_copy(root, "from/f", root, "to/g", &want, &err), -ESTALE);
	unlink(at("from/f"));
	put("from/f", "one");
	want.mode = 0751;
	assert_int_equal(gitops_file_copy(root, "from/f", root, "to/g", &want, &err), 0);
	assert_holds("to/g", "one");
	assert_int_equal(gitops_file_look(root, "to/g", &want), 0);
	assert_int_equal(want.mode, 0751);
	rename(at("to"), at("was"));
	put("to", "a file in the way");
	assert_int_not_equal(gitops_file_copy(root, "from/f", root, "to/g", &want, &err), 0);
	assert_non_null(strstr(err.text, "in the way"));
}

static void
a_tree_is_seen_sorted_and_its_revision_tells_content_mode_and_names(void **state)
{
	struct gitops_files files = { 0 };
	char revisions[4][GITOPS_HASH_SIZE];

	(void)state;
	for (int n = 0; n < 4; n++) {
		put("t/b", n == 1 ? "other" : "b");
		put("t/a/z", "z");
		chmod(at("t/b"), n == 2 ? 0600 : 0644);
		if (n == 3)
			rename(at("t/a"), at("t/aa"));
		assert_int_equal(gitops_tree_look(root, "t", &files, &err), 0);
		assert_int_equal(files.count, 2);
		assert_string_equal(files.items[1].path, "b");
		assert_ptr_equal(gitops_files_find(&files, "b"), &files.items[1]);
		assert_null(gitops_files_find(&files, "c"));
		gitops_files_revision(&files, revisions[n]);
		gitops_files_free(&files);
	}
	for (int n = 0; n < 4; n++)
		for (int m = 0; m < n; m++)
			assert_string_not_equal(revisions[n], revisions[m]);
}

static void
a_directory_that_cannot_be_read_to_its_end_is_no_shorter_one(void **state)
{
	struct gitops_files files = { 0 };

	(void)state;
	put("t/a", "1");
	put("t/d/b", "2");
	put("t/c", "3");
	for (int n = 0; n < 6; n++) { /* the four names, and two ends */
		reads = n;
		assert_int_equal(gitops_tree_look(root, "t", &files, &err), -EIO);
		assert_non_null(strstr(err.text, strerror(EIO)));
		gitops_files_free(&files);
		reads = n;
		assert_int_equal(gitops_tree_list(root, "t", &files, &err), -EIO);
		gitops_files_free(&files);
	}
}

static void
a_list_leaves_out_what_goes_meanwhile_and_what_is_no_plain_file(void **state)
{
	struct gitops_files files = { 0 };

	(void)state;
	put("t/a", "1");
	put("t/b", "2");
	put("t/d/c", "3");
	assert_int_equal(symlink("a", at("t/link")), 0);
	assert_int_equal(mkfifo(at("t/pipe"), 0600), 0);
	going = "b";
	assert_int_equal(gitops_tree_list(root, "t", &files, &err), 0);
	assert_int_equal(files.count, 2);
	assert_string_equal(files.items[0].path, "a");
	assert_string_equal(files.items[1].path, "d/c");
	gitops_files_free(&files);
}

static int
parse(const char *text, struct gitops_document *ret)
{
	return gitops_document_parse(strdup(text), ret, &err);
}

static void
documents_are_the_plainest_part_of_yaml(void **state)
{
	static const struct { const char *text, *value; } good[] = {
		{ "k: v", "v" }, { "k: v\n", "v" }, { "k: v\r\n", "v" }, { "---\nk: v\n", "v" },
		{ "\xef\xbb\xbfk: v\n", "v" }, { "# c\n\n  # d\nk:   a b  # c\n", "a b" },
		{ "k: \"a: b # \\\"c\\\" \\\\\" # d\n", "a: b # \"c\" \\" }, { "k: 'it''s'\n", "it's" },
		{ "k: \"a\\n\\t\\x01\\x7F\"\n", "a\n\t\x01\x7f" }, { "k: 'a\\n'\n", "a\\n" }, { "k: http://x\n", "http://x" }, { "k: a#b\n", "a#b" }, { "k: \"\"\n", "" }, { "k:\n", "" },
	};
	static const struct { const char *text, *reason; } bad[] = {
		{ "k\n", "line 1: this is not" }, { "a: 1\nk v\n", "line 2: this is not" }, { "K: v\n", "line 1" },
		{ "k:v\n", "line 1: a blank is missing" }, { "k: v\nk: w\n", "line 2: a key is given twice" },
		{ "k: [v]\n", "quotes" }, { "k: {a}\n", "quotes" }, { "k: &a b\n", "quotes" }, { "k: |\n", "quotes" },
		{ "k: \"a\\q\"\n", "after a backslash" }, { "k: \"\\x00\"\n", "after a backslash" },
		{ "k: \"\\xff\"\n", "after a backslash" }, { "k: \"\\x1\"\n", "after a backslash" },
		{ "k: \"v\n", "not closed" }, { "k: 'v\n", "not closed" }, { "k: \"v\" w\n", "after the closing" },
		{ "k: a: b\n", "ambiguous" }, { "k: a:\n", "ambiguous" }, { "a: 1\n  k: v\n", "line 2: nothing is nested" },
		{ "- k\n", "no lists" }, { "k: v\n---\n", "one document" }, { "k: v\n...\n", "one document" },
		{ "k:\tv\n", "a tab" }, { "k: \x01\n", "control" },
		{ "a: 1\nb: 1\nc: 1\nd: 1\ne: 1\nf: 1\ng: 1\nh: 1\ni: 1\nj: 1\nl: 1\nm: 1\nn: 1\no: 1\np: 1\nq: 1\nr: 1\n",
			"line 17: too many" },
		{ "files:\n  - nonsense\n", "line 2: not a file's line" },
		{ "files:\n  - written e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 0644 0 ../x\n",
			"line 2: not a path" },
		{ "files:\n  - written e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 0644 0 \"x\" y\n",
			"line 2: not a path" },
		{ "files:\n  - written e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 0644 0 \"x\n",
			"line 2: the quote is not closed" },
	};
	struct gitops_document d;

	(void)state;
	for (size_t n = 0; n < sizeof good / sizeof *good; n++) {
		assert_int_equal(parse(good[n].text, &d), 0);
		assert_string_equal(gitops_document_get(&d, "k"), good[n].value);
		assert_string_equal(gitops_document_get(&d, "none"), "");
		gitops_document_free(&d);
	}
	for (size_t n = 0; n < sizeof bad / sizeof *bad; n++) {
		assert_int_equal(parse(bad[n].text, &d), -EINVAL);
		if (strstr(err.text, bad[n].reason) == NULL)
			fail_msg("%s gives: %s", bad[n].text, err.text);
	}
}

static void
what_is_written_is_read_back_whatever_it_holds(void **state)
{
	static const char *const values[] = { "", "plain", "-", "a: b", "# no comment", "quote \" and \\ back", "'", " blank ",
		"[x]", "line: 3: \"x\"", "\xc3\xbc" };
	struct gitops_files files = { 0 };
	struct gitops_document d;

	(void)state;
	put("t/with blank", "1");
	put("t/x: y # z", "2");
	assert_int_equal(gitops_tree_look(root, "t", &files, &err), 0);
	files.items[0].intended = true;
	for (size_t n = 0; n < sizeof values / sizeof *values; n++) {
		assert_int_equal(gitops_document_write(root, "doc", n % 2, &files, &err, "k", values[n], "l", "x", NULL), 0);
		assert_int_equal(gitops_document_read(root, "doc", &d, &err), 0);
		assert_string_equal(gitops_document_get(&d, "k"), values[n]);
		assert_int_equal(d.files.count, 2);
		assert_true(d.files.items[0].intended);
		assert_false(d.files.items[1].intended);
		assert_string_equal(d.files.items[1].path, "x: y # z");
		assert_string_equal(d.files.items[1].hash, files.items[1].hash);
		gitops_document_free(&d);
	}
	gitops_files_free(&files);
	/* a line break cannot make a second line */
	assert_int_equal(gitops_document_write(root, "doc", false, NULL, &err, "k", "a\nstate: b", NULL), 0);
	assert_holds("doc", "k: \"a\\x0astate: b\"\n");
}

/* A name of any bytes but '/' and NUL, blanks and what quoting needs more often than others. */
static void
name_draw(unsigned *seed, char ret[64])
{
	static const char likely[] = " \n\r\t\"\\'#:-x";
	size_t n = 1 + (size_t)rand_r(seed) % 24;

	for (size_t i = 0; i < n; i++) {
		ret[i] = (char)(rand_r(seed) % 2 ? likely[(size_t)rand_r(seed) % (sizeof likely - 1)] : 1 + rand_r(seed) % 255);
		if (ret[i] == '/')
			ret[i] = 'x';
	}
	ret[n] = '\0';
}

static void
every_name_and_value_is_read_back_byte_for_byte(void **state)
{
	struct gitops_file file = { .path = NULL };
	struct gitops_files files;
	struct gitops_document d;
	unsigned seed = 20260102;
	char name[64], hash[GITOPS_HASH_SIZE];

	(void)state;
	memset(hash, 'a', sizeof hash - 1);
	hash[sizeof hash - 1] = '\0';
	memcpy(file.hash, hash, sizeof hash);
	for (int n = 0; n < 3000; n++) {
		name_draw(&seed, name);
		if (gitops_path_check(name, NULL) != 0)
			continue; /* "." and ".." */
		files = (struct gitops_files){ 0 };
		file.path = name;
		assert_int_equal(gitops_files_add(&files, &file), 0);
		assert_int_equal(gitops_document_write(root, "doc", false, &files, &err, "k", name, NULL), 0);
		assert_int_equal(gitops_document_read(root, "doc", &d, &err), 0);
		assert_string_equal(gitops_document_get(&d, "k"), name);
		assert_int_equal(d.files.count, 1);
		assert_string_equal(d.files.items[0].path, name);
		gitops_document_free(&d);
		gitops_files_free(&files);
	}
}

static void
a_source_that_never_stands_still_is_looked_at_less_and_less(void **state)
{
	struct gitops_claims c = GITOPS_CLAIMS_INIT;

	(void)state;
	assert_int_equal(gitops_claim(&c, "a", "src", "dst", NULL, &err), 0);
	for (unsigned n = 1; n <= 20; n++)
		assert_int_equal(gitops_claim_stale(&c, "a", true), n);
	assert_int_equal(gitops_claim_stale(&c, "a", false), 0);
	assert_int_equal(gitops_claim_stale(&c, "a", true), 1);
	assert_int_equal(gitops_claim_stale(&c, "nobody", true), 0);
	assert_int_equal(gitops_stale_ns(100, 0), 100);
	assert_int_equal(gitops_stale_ns(100, 1), 100);
	assert_int_equal(gitops_stale_ns(100, 3), 400);
	assert_int_equal(gitops_stale_ns(100, 9), 25600);
	assert_int_equal(gitops_stale_ns(100, 1000), 25600);
	gitops_claim_drop(&c, "a");
}

static void
a_document_with_a_nul_is_refused(void **state)
{
	struct gitops_document d;
	int fd = open(at("nul"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	(void)state;
	assert_int_equal(write(fd, "k: v\0w\nl: x\n", 12), 12);
	close(fd);
	assert_int_equal(gitops_document_read(root, "nul", &d, &err), -EINVAL);
	assert_non_null(strstr(err.text, "line 1: a control character"));
}

static void
intervals_are_whole_numbers_with_a_unit(void **state)
{
	(void)state;
	assert_int_equal(gitops_interval_ns("1s"), INT64_C(1000000000));
	assert_int_equal(gitops_interval_ns("5m"), 300 * INT64_C(1000000000));
	assert_int_equal(gitops_interval_ns("2h"), 7200 * INT64_C(1000000000));
	for (size_t n = 0; n < 10; n++)
		assert_int_equal(gitops_interval_ns(((const char *const[]){ "", "0s", "5", "s", "-1s", "+1s", "1.5s", "1d", "1s ",
			"1234567s" })[n]), 0);
}

static void
two_applications_never_have_one_target(void **state)
{
	struct gitops_claims c = GITOPS_CLAIMS_INIT;

	(void)state;
	assert_int_equal(gitops_claim(&c, "a", "src", "dev/x", NULL, &err), 0);
	assert_int_equal(gitops_claim(&c, "a", "src", "dev/x", NULL, &err), 0);
	assert_int_equal(gitops_claim(&c, "b", "src", "dev/x", NULL, &err), -EEXIST);
	assert_non_null(strstr(err.text, "belongs to a"));
	assert_int_equal(gitops_claim(&c, "c", "src", "dev/x/inside", NULL, &err), -EEXIST);
	assert_int_equal(gitops_claim(&c, "d", "src", "dev", NULL, &err), -EEXIST);
	assert_int_equal(gitops_claim(&c, "e", "other", "dev/xy", NULL, &err), 0);
	gitops_claims_tell(&c, GITOPS_WAITING, "", NULL);
	assert_string_equal(told, "d c b ");
	*told = '\0';
	gitops_claims_tell(&c, GITOPS_TARGET, "dev/x/file", NULL);
	assert_string_equal(told, "a "); /* those that wait have nothing there */
	*told = '\0';
	gitops_claims_tell(&c, GITOPS_SOURCE, "other/file", NULL);
	assert_string_equal(told, "e ");
	assert_int_equal(gitops_claim(&c, "e", "other", "dev/x", NULL, &err), -EEXIST);
	assert_int_equal(gitops_claim(&c, "b", "src", "dev/xy", NULL, &err), -EEXIST); /* e has it still */
	assert_int_equal(gitops_claim(&c, "e", "other", "dev/xy", NULL, &err), 0);
	assert_int_equal(gitops_claim(&c, "a", "src", "dev/z", NULL, &err), 1); /* dev/x is free */
	assert_int_equal(gitops_claim(&c, "b", "src", "dev/x", NULL, &err), 0);
	gitops_claim_drop(&c, "b");
	assert_int_equal(gitops_claim(&c, "c", "src", "dev/x/inside", NULL, &err), 0);
	for (const char *key = "abcde"; *key != '\0'; key++)
		gitops_claim_drop(&c, (const char[]){ *key, '\0' });
	assert_null(c.first);
}

static void
who_has_a_target_and_no_file_any_more_is_about_to_leave_it(void **state)
{
	struct gitops_claims c = GITOPS_CLAIMS_INIT;

	(void)state;
	put("a", "");
	assert_int_equal(gitops_claim(&c, "a", "src", "t1", root, &err), 0);
	assert_int_equal(gitops_claim(&c, "b", "src", "t1", root, &err), -EEXIST);
	assert_int_equal(gitops_file_remove(root, "a"), 0);
	assert_int_equal(gitops_claim(&c, "b", "src", "t1", root, &err), -EINPROGRESS);
	gitops_claims_tell(&c, GITOPS_WAITING, "", NULL);
	assert_string_equal(told, "b ");
	gitops_claim_drop(&c, "a");
	assert_int_equal(gitops_claim(&c, "b", "src", "t1", root, &err), 0);
	gitops_claim_drop(&c, "b");
}

static void
who_moves_has_the_old_target_until_its_files_are_at_the_new_one(void **state)
{
	struct gitops_claims c = GITOPS_CLAIMS_INIT;

	(void)state;
	assert_int_equal(gitops_claim(&c, "a", "src", "t1", NULL, &err), 0);
	assert_false(gitops_claim_at(&c, "a", "t1"));
	assert_int_equal(gitops_claim(&c, "a", "src", "t2", NULL, &err), 1);
	assert_int_equal(gitops_claim(&c, "b", "src", "t1/inside", NULL, &err), -EEXIST);
	assert_non_null(strstr(err.text, "belongs to a, which has 't1'"));
	assert_int_equal(gitops_claim(&c, "d", "src", "t2", NULL, &err), -EEXIST);
	assert_false(gitops_claim_at(&c, "d", "t1")); /* it has none */
	assert_true(gitops_claim_at(&c, "a", "t2"));
	assert_false(gitops_claim_at(&c, "a", "t2"));
	gitops_claims_tell(&c, GITOPS_WAITING, "", NULL);
	assert_string_equal(told, "d b ");
	assert_int_equal(gitops_claim(&c, "b", "src", "t1/inside", NULL, &err), 0);
	assert_int_equal(gitops_claim(&c, "d", "src", "t2", NULL, &err), -EEXIST);
	assert_false(gitops_claim_at(&c, "nobody", "t3"));
	for (const char *key = "abd"; *key != '\0'; key++)
		gitops_claim_drop(&c, (const char[]){ *key, '\0' });
}

static int
entries(const char *path)
{
	DIR *d = opendir(path);
	int n = 0;

	assert_non_null(d);
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n - 2;
}

static void
a_copy_of_a_tree_is_there_whole_or_not_at_all(void **state)
{
	struct gitops_files files = { 0 };

	(void)state;
	put("t/a", "1");
	put("t/b/c", "2");
	assert_int_equal(gitops_tree_look(root, "t", &files, &err), 0);
	put("t/b/c", "changed");
	assert_int_equal(gitops_copy_make(root, "t", &files, root, "copies/x/1", &err), -ESTALE);
	assert_int_equal(access(at("copies/x/1"), F_OK), -1);
	assert_int_equal(entries(at("copies/x")), 0);
	put("t/b/c", "2");
	assert_int_equal(gitops_copy_make(root, "t", &files, root, "copies/x/1", &err), 0);
	assert_holds("copies/x/1/b/c", "2");
	assert_int_equal(entries(at("copies/x")), 1);
	assert_int_equal(gitops_copy_make(root, "t", &files, root, "copies/x/1", &err), 0);
	put("copies/x/1/a", "by hand");
	assert_int_equal(gitops_copy_make(root, "t", &files, root, "copies/x/1", &err), -EEXIST);
	gitops_files_free(&files);
}

int
main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, root_remove)
	const struct CMUnitTest tests[] = {
		CASE(hashes_are_those_of_the_standards_examples),
		CASE(paths_that_could_leave_their_root_are_refused),
		CASE(below_means_whole_names),
		CASE(a_file_is_replaced_as_a_whole_and_left_alone_if_it_is_the_same),
		CASE(a_root_that_is_not_there_is_told_from_a_file_that_is_not_there),
		CASE(symbolic_links_are_not_followed_anywhere),
		CASE(pipes_and_directories_are_not_read_as_files),
		CASE(a_copy_that_is_not_what_was_wanted_changes_nothing),
		CASE(a_tree_is_seen_sorted_and_its_revision_tells_content_mode_and_names),
		CASE(a_directory_that_cannot_be_read_to_its_end_is_no_shorter_one),
		CASE(a_list_leaves_out_what_goes_meanwhile_and_what_is_no_plain_file),
		CASE(documents_are_the_plainest_part_of_yaml),
		CASE(what_is_written_is_read_back_whatever_it_holds),
		CASE(every_name_and_value_is_read_back_byte_for_byte),
		CASE(a_document_with_a_nul_is_refused),
		CASE(intervals_are_whole_numbers_with_a_unit),
		CASE(two_applications_never_have_one_target),
		CASE(who_moves_has_the_old_target_until_its_files_are_at_the_new_one),
		CASE(who_has_a_target_and_no_file_any_more_is_about_to_leave_it),
		CASE(a_source_that_never_stands_still_is_looked_at_less_and_less),
		CASE(a_copy_of_a_tree_is_there_whole_or_not_at_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
