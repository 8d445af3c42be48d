/*
 * extract.c - our options out of a command line that is somebody else's.
 *
 *     argv --> words_taken() --> words that are ours --> component_flags_parse()
 *                  |
 *                  +--> the rest --> argv, for the daemon's own getopt(3)
 *
 * Only a whole name of a row is ours, with two dashes, before "--".  Letters and abbreviations are
 * the daemon's, and so are --help, --version and --config: what every program of ours has is asked
 * for by --profiling-help and the like here.
 *
 * What a stranger would get wrong: whether a word is a value of the daemon's own option in front of
 * it cannot be known.  "-o --enable-pprof" loses it to us; "-o=--enable-pprof" and what stands
 * behind "--" do not.
 *
 * A value that begins with a dash is taken for the next option, since most of these are not ours and
 * would be missed there: "--profiling-port-file -d" has lost its file name.  "-1" is a number.
 *
 * Tests: tests/flags/test_extract.c.
 */
#include <config.h>

#include "registry.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Of what every program has: what remains beside a daemon's own options. */
static const char *
foreign_name(enum flag_action action)
{
	switch (action) {
	case ACTION_HELP:
		return "profiling-help";
	case ACTION_CONFIG:
		return "profiling-config";
	case ACTION_DUMP:
		return "profiling-dump-options";
	default:
		return NULL;
	}
}

static void
make_foreign(struct component_flags *f)
{
	size_t kept = 0;

	if (f->foreign)
		return;
	f->foreign = true;
	for (size_t i = 0; i < f->count; i++) {
		struct flag_entry *e = &f->entries[i];

		e->row.letter = 0;
		if (e->action != ACTION_NONE) {
			e->row.name = foreign_name(e->action);
			if (!e->row.name)
				continue; /* it has no memory yet */
		}
		f->entries[kept++] = *e;
	}
	f->count = kept;
}

static bool
is_value(const char *word)
{
	return word[0] != '-' || !word[1] || isdigit((unsigned char)word[1]);
}

/* How many of the words from words[0] on are ours; NULL stands behind the last. */
static int
words_taken(const struct component_flags *f, char *const *words)
{
	const char              *name = words[0] + 2, *next = words[1];
	size_t                   size;
	enum flag_match          match;
	const struct flag_entry *e;

	if (words[0][0] != '-' || words[0][1] != '-')
		return 0;
	size = strcspn(name, "=");
	e = size > 0 ? flags_find(f, name, size, &match) : NULL;
	if (!e)
		return 0;
	if (name[size] || !next || match == MATCH_NO)
		return 1;
	if (!flag_takes_optional_argument(e))
		return is_value(next) ? 2 : 1;
	if (!(e->row.bits & COMPONENT_FLAG_BOOL_WORD))
		return 1;
	return strcmp(next, "true") == 0 || strcmp(next, "false") == 0 ? 2 : 1;
}

/* Ours go to ours, the rest to theirs; how many there are of the latter. */
static int
sort_words(const struct component_flags *f, int argc, char **argv, char **ours, int *ret_ours, char **theirs)
{
	int i = 1, own = 1, other = 1;

	ours[0] = theirs[0] = argv[0];
	while (i < argc && strcmp(argv[i], "--") != 0) {
		int n = words_taken(f, &argv[i]);

		if (n == 0)
			theirs[other++] = argv[i++];
		for (; n > 0; n--)
			ours[own++] = argv[i++];
	}
	while (i < argc)
		theirs[other++] = argv[i++];
	*ret_ours = own;
	return other;
}

int
component_flags_extract(int *argc, char **argv, struct component_flags *f, struct component_error *err)
{
	char **words;
	int    r, ours, theirs;

	if (!f || !argc || *argc < 1 || !argv || argv[*argc]) {
		component_error_set(err, "component_flags_extract() wants the arguments of main()");
		return -EINVAL;
	}
	if (!f->parsed)
		make_foreign(f);
	words = calloc(2 * ((size_t)*argc + 1), sizeof(*words));
	if (!words) {
		component_error_set(err, "%s: out of memory", f->spec.name);
		return -ENOMEM;
	}
	theirs = sort_words(f, *argc, argv, words, &ours, words + *argc + 1);
	r = component_flags_parse(f, ours, words, err);
	if (r == 0) {
		memcpy(argv, words + *argc + 1, ((size_t)theirs + 1) * sizeof(*argv));
		*argc = theirs;
	}
	free(words);
	return r;
}
