/*
 * test_file.c - options from a YAML file: what is read, and every way in which
 * a file may mean something else than it says, told with its line.
 */
#include <config.h>

#include "fixture.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

static const char *path;

static struct component_flags *
read_file(const char *text, int want)
{
	struct component_flags *f = fixture_new(NULL);
	int                     r;

	path = fixture_file(text);
	r = PARSE(f, "--config", path);
	unlink(path);
	if (r != want)
		fail_msg("%d for\n%s\n%s", r, text, fixture_err.text);
	return f;
}

/* faults: lines of ":LINE: what", each for this program and file. */
static void
refuse_file(const char *text, const char *const *faults)
{
	struct component_flags *f = read_file(text, -EINVAL);
	struct text             want = TEXT_INIT;

	for (; *faults; faults++)
		text_add(&want, "%sbackend-controller: %s%s", want.size > 0 ? "\n" : "", path, *faults);
	assert_string_equal(fixture_faults(), text_string(&want));
	assert_int_equal(component_flags_exit_status(f), 78);
	assert_memory_equal(&opt, &fixture_defaults, sizeof(opt));
	text_release(&want);
	component_flags_free(f);
}

#define REFUSE(text, ...) refuse_file(text, (const char *const[]){ __VA_ARGS__, NULL })

static void
a_key_is_the_name_of_an_option(void **state)
{
	struct component_flags *f;
	struct text             source = TEXT_INIT;

	(void)state;
	f = read_file("# comment\nenable-pprof: true\nheap_profile_rate: 4KiB\n\"v\": '3'\nlogging-format: json\n"
		"graceful-shutdown-timeout: 1h30m\nrate-limiter-qps: 0.5\nlog-file: \"/x y\"\nprofiling-bind-address: ':7'\n"
		"controllers: a,b\nprofile-port: 0\n", 0);
	assert_true(opt.pprof);
	assert_int_equal(opt.rate, 4096);
	assert_int_equal(opt.v, 3);
	assert_int_equal(opt.format, 2);
	assert_true(opt.grace == 5400 * SECONDS);
	assert_true(opt.qps == 0.5);
	assert_string_equal(opt.file, "/x y");
	assert_string_equal(opt.address, ":7");
	assert_int_equal(opt.controllers.count, 2);
	text_add(&source, "file:%s:3", path);
	assert_string_equal(component_flags_source(f, "heap-profile-rate"), source.data);
	assert_true(component_flags_given(f, "heap-profile-rate"));
	text_release(&source);
	component_flags_free(f);
}

static void
nested_and_other_names_are_keys_too(void **state)
{
	static const char *const texts[] = {
		"profiling:\n  enabled: yes\n  address: :7\n", "profiling: {enabled: on, address: ':7'}\n",
		"profiling.enabled: 1\nprofiling.address: ':7'\n", "enable-profiling: t\nprofiling: {address: ':7'}\n",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++) {
		struct component_flags *f = read_file(texts[i], 0);

		assert_true(opt.pprof);
		assert_string_equal(opt.address, ":7");
		component_flags_free(f);
	}
}

static void
a_list_is_a_sequence_or_commas(void **state)
{
	static const char *const texts[] = {
		"controllers: [a, '-b,c']\n", "controllers:\n- a\n- \"-b,c\"\n", "controllers:\n  - a\n  -\n  - -b,c\n  - ''\n  - ~\n",
	};
	struct component_flags *f;

	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++) {
		f = read_file(texts[i], 0);
		assert_int_equal(opt.controllers.count, 2);
		assert_string_equal(opt.controllers.items[0], "a");
		assert_string_equal(opt.controllers.items[1], "-b,c");
		component_flags_free(f);
	}
	f = read_file("controllers: []\n", 0);
	assert_int_equal(opt.controllers.count, 1);
	assert_string_equal(component_flags_source(f, "controllers"), "default");
	component_flags_free(f);
}

static void
an_empty_scalar_is_not_given(void **state)
{
	static const char *const texts[] = {
		"", "\n", "# only a comment\n", "---\n", "---\n...\n", "~\n", "{}\n", "v:\nlog-file: ''\nenable-pprof: \"\"\n",
		"v: ~\nlog-file: null\nheap-profile-rate: NULL\ncontrollers:\n", "profiling:\n", "profiling: {}\n",
		"profiling: ~\nv:\n", "profiling: {enabled: , address: ''}\n",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++) {
		struct component_flags *f = read_file(texts[i], 0);

		assert_memory_equal(&opt, &fixture_defaults, sizeof(opt));
		assert_null(component_flags_warning(f, 0));
		component_flags_free(f);
	}
}

static void
the_quoted_word_null_is_a_text(void **state)
{
	struct component_flags *f;

	(void)state;
	f = read_file("log-file: 'null'\n", 0);
	assert_string_equal(opt.file, "null");
	component_flags_free(f);
}

static void
every_fault_is_told_with_its_line(void **state)
{
	(void)state;
	REFUSE("enable-pporf: true\nv: loud\n\nnope: {a: [1, {b: 2}], c: 3}\nheap-profile-rate: 1.5\nprofiling:\n  adress: :7\n",
		":1: key 'enable-pporf': belongs to no option; did you mean 'enable-pprof'?",
		":2: key 'v': 'loud': not a whole number; write digits, such as 42, without blanks, sign '+' or leading zeros; or one of 'error', 'info', 'debug'",
		":4: key 'nope': belongs to no option",
		":5: key 'heap-profile-rate': '1.5': not a whole number of bytes; write it in a smaller unit",
		":7: key 'profiling.adress': belongs to no option; did you mean 'profiling.address'?");
}

static void
a_key_given_twice_is_refused_under_any_name(void **state)
{
	(void)state;
	REFUSE("v: 1\nv: 1\n", ":2: key 'v': is given twice, first in line 1; keep one");
	REFUSE("enable-pprof: true\n\nprofiling:\n  enabled: false\n",
		":4: key 'profiling.enabled': is given twice, first in line 1; keep one");
	REFUSE("v:\nv: 2\n", ":2: key 'v': is given twice, first in line 1; keep one");
}

static void
what_makes_a_file_mean_something_else_is_refused(void **state)
{
	(void)state;
	REFUSE("v: &a 1\nlog-file: *a\n", ":1: key 'v': anchors (&name) are not supported; write the value out",
		":2: key 'log-file': aliases (*name) are not supported; write the value out");
	REFUSE("v: !!int 3\n", ":1: key 'v': tags (!name) are not supported; write the value alone");
	REFUSE("v: 1\n---\nv: 2\n", ":2: a second document begins; keep one, without '---' between its parts");
	REFUSE("<<: {v: 1}\nv: 2\n", ":1: key '<<': belongs to no option");
	REFUSE("profiling: &p {enabled: true}\n",
		":1: key 'profiling': anchors (&name) are not supported; write the value out");
	REFUSE("&k v: 1\n", ":1: anchors (&name) are not supported; write the value out",
		":1: a key that is no option's name; write NAME: VALUE");
	REFUSE("? [a, b]\n: {c: d}\nv: x\n", ":1: a key that is no option's name; write NAME: VALUE",
		":3: key 'v': 'x': not a whole number; write digits, such as 42, without blanks, sign '+' or leading zeros; or one of 'error', 'info', 'debug'");
	REFUSE("controllers: [&a b, [c], {d: e}, *a]\n",
		":1: key 'controllers': anchors (&name) are not supported; write the value out",
		":1: key 'controllers': an item is a list or a mapping; write plain values",
		":1: key 'controllers': an item is a list or a mapping; write plain values",
		":1: key 'controllers': aliases (*name) are not supported; write the value out");
}

static void
the_wrong_shape_is_refused(void **state)
{
	(void)state;
	REFUSE("v: [1, 2]\n", ":1: key 'v': a list where one value is wanted");
	REFUSE("v: {a: 1}\n", ":1: key 'v': a mapping where one value is wanted");
	REFUSE("controllers: {a: 1}\n", ":1: key 'controllers': a mapping where one value is wanted");
	REFUSE("just text\n", ":1: holds no options; write lines of NAME: VALUE");
	REFUSE("- v\n- 1\n", ":1: holds no options; write lines of NAME: VALUE");
	REFUSE("profiling: true\n", ":1: key 'profiling': wants keys below it; write KEY: {NAME: VALUE}");
	REFUSE("profiling: [true]\n", ":1: key 'profiling': wants keys below it; write KEY: {NAME: VALUE}");
	REFUSE("log-file: \"a\\0b\"\n", ":1: key 'log-file': has a NUL byte in it");
}

static void
what_belongs_on_the_command_line_is_refused(void **state)
{
	(void)state;
	REFUSE("config: /x\nhelp: true\nversion: raw\ncheck-config: true\ndump-options: json\n",
		":1: key 'config': is for the command line; take it out of the file",
		":2: key 'help': is for the command line; take it out of the file",
		":3: key 'version': is for the command line; take it out of the file",
		":4: key 'check-config': is for the command line; take it out of the file",
		":5: key 'dump-options': is for the command line; take it out of the file");
	REFUSE("vab: 1\n", ":1: key 'vab': belongs to no option"); /* two slips from v, which is no help */
	REFUSE("no-enable-pprof: true\n", ":1: key 'no-enable-pprof': belongs to no option; did you mean 'enable-pprof'?");
}

static void
what_is_not_yaml_is_told_with_its_line(void **state)
{
	struct component_flags *f;

	(void)state;
	f = read_file("v: 1\nlog-file: \"never closed\n", -EINVAL);
	assert_non_null(strstr(fixture_err.text, ":2: not YAML: ") ? fixture_err.text : strstr(fixture_err.text, ":3: not YAML: "));
	assert_int_equal(component_flags_exit_status(f), 78);
	component_flags_free(f);
	f = read_file("v: 1\n\tx: 2\n", -EINVAL);
	assert_non_null(strstr(fixture_err.text, ":2: not YAML: "));
	component_flags_free(f);
	f = read_file("v: \xff\xfe\n", -EINVAL);
	assert_non_null(strstr(fixture_err.text, "not YAML: "));
	component_flags_free(f);
}

static void
what_is_not_yaml_is_told_in_words_with_what_to_write_instead(void **state)
{
	static const struct {
		const char *file, *says;
	} all[] = {
		{ "profiling:\n\taddress: x\n", ":2: not YAML: a TAB where a name or a value begins; indent with blanks" },
		{ "profiling:\n  enabled: true\n\taddress: x\n", ":3: not YAML: a TAB where a name or a value begins; indent with blanks" },
		{ "profiling: {address: :6060}\n", ":1: not YAML: a value is missing, or begins with ':'; "
			"put the value into quotes, such as \":6060\"" },
		{ "v: 1\nlog-file: \"a\nb\n", ":2: not YAML: a quote is opened and never closed; close it" },
		{ "v: 1\nbad line\nlog-file: x\n", ":3: not YAML: the line before is no NAME: VALUE; write ':' and a blank behind the name" },
		{ "profiling:\n  enabled: true\n address: x\n", ":3: not YAML: a line that is indented neither as" },
		{ "log-file: @x\n", ":1: not YAML: a value cannot begin with this character" },
		{ "log-file: &\n", ":1: not YAML: a value cannot begin with '&'; put the value into quotes" },
		{ "log-file: \xe9\n", ":1: not YAML: a byte that is not UTF-8; save the file as UTF-8" },
		{ "controllers: [a\n", "not YAML: a '[' is not closed" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		component_flags_free(read_file(all[i].file, -EINVAL));
		if (!strstr(fixture_err.text, all[i].says))
			fail_msg("%s\nwants %s\ngot %s", all[i].file, all[i].says, fixture_err.text);
	}
}

static void
a_file_that_cannot_be_read_is_status_78(void **state)
{
	char   directory[] = "/tmp/test_flags_dir_XXXXXX", fifo[64], big[64];
	struct component_flags *f;
	FILE  *file;

	(void)state;
	f = fixture_new(NULL);
	assert_int_equal(PARSE(f, "-c", "/nonexistent/x.yaml"), -EINVAL);
	assert_string_equal(fixture_faults(),
		"backend-controller: /nonexistent/x.yaml: cannot be read: No such file or directory (named by --config)");
	assert_int_equal(component_flags_exit_status(f), 78);
	component_flags_free(f);

	f = fixture_new(ENVIRONMENT("COMPONENT_CONFIG=/nonexistent"));
	assert_int_equal(PARSE_NOTHING(f), -EINVAL);
	assert_string_equal(fixture_faults(),
		"backend-controller: /nonexistent: cannot be read: No such file or directory (named by COMPONENT_CONFIG)");
	component_flags_free(f);

	assert_non_null(mkdtemp(directory));
	f = fixture_new(NULL);
	assert_int_equal(PARSE(f, "-c", directory), -EINVAL);
	assert_non_null(strstr(fixture_err.text, "cannot be read: Is a directory"));
	component_flags_free(f);

	/* Nobody writes to it: opening it must not wait. */
	snprintf(fifo, sizeof(fifo), "%s/fifo", directory);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	f = fixture_new(NULL);
	assert_int_equal(PARSE(f, "-c", fifo), -EINVAL);
	assert_non_null(strstr(fixture_err.text, "cannot be read: not a regular file"));
	component_flags_free(f);
	unlink(fifo);

	f = fixture_new(NULL);
	assert_int_equal(PARSE(f, "-c", "/dev/zero"), -EINVAL);
	component_flags_free(f);
	f = fixture_new(NULL);
	assert_int_equal(PARSE(f, "-c", "/dev/null"), 0);
	component_flags_free(f);

	snprintf(big, sizeof(big), "%s/big", directory);
	file = fopen(big, "w");
	for (int i = 0; i < 1024 * 1024 / 32 + 1; i++)
		fputs("# thirty-one characters a line.\n", file);
	fclose(file);
	f = fixture_new(NULL);
	assert_int_equal(PARSE(f, "-c", big), -EINVAL);
	assert_non_null(strstr(fixture_err.text, "cannot be read: larger than 1048576 bytes"));
	component_flags_free(f);
	unlink(big);
	rmdir(directory);
}

static void
the_programs_own_default_file_may_be_absent(void **state)
{
	struct component_flags *f = fixture_new(NULL);

	(void)state;
	assert_int_equal(component_flags_set_default(f, "config", "/nonexistent/x.yaml", NULL), 0);
	assert_int_equal(PARSE(f, "--v=1"), 0);
	component_flags_free(f);
	f = fixture_new(NULL);
	path = fixture_file("v: 5\n");
	assert_int_equal(component_flags_set_default(f, "config", path, NULL), 0);
	assert_int_equal(PARSE_NOTHING(f), 0);
	assert_int_equal(opt.v, 5);
	unlink(path);
	component_flags_free(f);
}

static void
reading_leaves_no_descriptor_and_uses_none_below_3(void **state)
{
	struct component_flags *f;
	int saved = dup(0), next;

	(void)state;
	next = dup(0);
	close(next);
	close(0);
	f = read_file("v: 5\n", 0);
	assert_int_equal(opt.v, 5);
	assert_int_equal(fcntl(0, F_GETFD), -1);
	assert_int_equal(dup2(saved, 0), 0);
	assert_int_equal(dup(0), next);
	close(next);
	close(saved);
	component_flags_free(f);
}

static void
deep_nesting_ends_in_a_fault(void **state)
{
	struct text deep = TEXT_INIT;
	struct component_flags *f;

	(void)state;
	text_add(&deep, "profiling: ");
	/* A mebibyte would take libyaml hours. */
	for (int i = 0; i < 80000; i++)
		text_add(&deep, "{profiling: ");
	f = read_file(deep.data, -EINVAL);
	assert_non_null(strstr(fixture_err.text, ":1: lists and mappings are nested too deeply\n"));
	text_release(&deep);
	component_flags_free(f);
}

static void
a_long_list_is_read_in_one_go(void **state)
{
	struct text text = TEXT_INIT;
	struct component_flags *f;

	(void)state;
	text_add(&text, "controllers: [a");
	for (int i = 1; i < 300000; i++)
		text_add(&text, ",%c\n", 'a' + i % 26);
	text_add(&text, "]\n");
	f = read_file(text.data, 0);
	assert_int_equal(opt.controllers.count, 300000);
	text_release(&text);
	component_flags_free(f);
}

static void
a_file_that_is_another_one_is_not_read_to_its_end(void **state)
{
	struct text text = TEXT_INIT;
	struct component_flags *f;

	(void)state;
	for (int i = 0; i < 50000; i++)
		text_add(&text, "nope%d: 1\n", i);
	f = read_file(text.data, -EINVAL);
	assert_non_null(strstr(fixture_err.text, " more faults are not shown\n"));
	assert_int_equal(component_flags_exit_status(f), 78);
	text_release(&text);
	component_flags_free(f);
}

static void
random_files_never_do_more_than_fail(void **state)
{
	static const char *const pieces[] = {
		"v: 1\n", "profiling:\n", "  enabled: ", "true", "\n", "- ", "[", "]", "{", "}", ", ", ": ", "&a ", "*a", "!!x ",
		"---\n", "...\n", "'", "\"", "controllers: ", "a", "~", "|\n", ">\n", "# ", "?", "<<", "\t", "  ", "\xc3", "%YAML 1.1\n",
	};
	uint64_t seed = 0x2545f4914f6cdd1du;
	char     name[64];
	int      fd = memfd_create("config", 0); /* thousands of real files are slow on a busy disk */

	(void)state;
	assert_true(fd >= 0);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	for (int i = 0; i < 5000; i++) {
		struct component_flags *f = fixture_new(NULL);
		struct text             t = TEXT_INIT;
		int                     r;

		for (unsigned k = 0; k < 12; k++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			text_add(&t, "%s", pieces[(seed >> 33) % COUNT(pieces)]);
		}
		assert_int_equal(ftruncate(fd, 0), 0);
		assert_int_equal(pwrite(fd, t.data, t.size, 0), (ssize_t)t.size);
		r = PARSE(f, "-c", name);
		assert_true(r == 0 || r == -EINVAL);
		if (r < 0) {
			assert_int_equal(component_flags_exit_status(f), 78);
			assert_memory_equal(&opt, &fixture_defaults, sizeof(opt));
		}
		text_release(&t);
		component_flags_free(f);
	}
	close(fd);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_key_is_the_name_of_an_option),
		cmocka_unit_test(nested_and_other_names_are_keys_too),
		cmocka_unit_test(a_list_is_a_sequence_or_commas),
		cmocka_unit_test(an_empty_scalar_is_not_given),
		cmocka_unit_test(the_quoted_word_null_is_a_text),
		cmocka_unit_test(every_fault_is_told_with_its_line),
		cmocka_unit_test(a_key_given_twice_is_refused_under_any_name),
		cmocka_unit_test(what_makes_a_file_mean_something_else_is_refused),
		cmocka_unit_test(the_wrong_shape_is_refused),
		cmocka_unit_test(what_belongs_on_the_command_line_is_refused),
		cmocka_unit_test(what_is_not_yaml_is_told_with_its_line),
		cmocka_unit_test(what_is_not_yaml_is_told_in_words_with_what_to_write_instead),
		cmocka_unit_test(a_file_that_cannot_be_read_is_status_78),
		cmocka_unit_test(the_programs_own_default_file_may_be_absent),
		cmocka_unit_test(reading_leaves_no_descriptor_and_uses_none_below_3),
		cmocka_unit_test(deep_nesting_ends_in_a_fault),
		cmocka_unit_test(a_long_list_is_read_in_one_go),
		cmocka_unit_test(a_file_that_is_another_one_is_not_read_to_its_end),
		cmocka_unit_test(random_files_never_do_more_than_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
