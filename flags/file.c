/*
 * file.c - options from a YAML file.
 *
 *     enable-pprof: true            a key is an option's name
 *     profiling:                    or one of its nested aliases
 *       address: 127.0.0.1:6060
 *     controllers: [a, b]           a sequence is for lists only
 *
 * Every fault is told with its line, and reading goes on behind it: an unknown key
 * is stepped over whole.  Only a fault of YAML itself ends the reading.
 *
 * What would surprise: an empty scalar, null and ~ mean "not given", because that is
 * what templates write for a value that nobody set.  Anchors, aliases, tags, a second
 * document and a key given twice are refused: each of them can make a line of the file
 * mean something else than it says.
 *
 * Why libyaml's events and not its documents: a document loses nothing but the line
 * numbers of what is wrong, and keeps everything in memory; we need neither.
 *
 * A daemon must not hang in open() because --config names a FIFO, nor read a device
 * until memory is gone; and a descriptor of ours is never 0, 1 or 2, which a daemon
 * may have closed.  A pipe is refused although it could be read once: the reload
 * would find it empty and take every option back.
 *
 * A file that only the program's own default names may be absent.
 *
 * Tests: tests/flags/test_file.c.
 */
#include <config.h>

#include "registry.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <yaml.h>

#include "absolute_path.h"
#include "our_fd.h"
#include "yaml_fault.h"

#define CONFIG_BYTES_MAX (1024 * 1024) /* a file of options is some kilobytes */
#define CONFIG_DEPTH_MAX 16            /* lists and mappings in each other; options need three */
#define CONFIG_FAULTS_MAX 100          /* told at once; by then it is another file */
#define KEY_BYTES_MAX    256           /* a nested key with its dots */

/* Opened without waiting for anybody, and never as 0, 1 or 2. */
static int
open_config(const char *path)
{
	struct stat st;
	int fd = our_fd_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	int r = fd < 0 ? fd : 0;

	if (r == 0 && fstat(fd, &st) < 0)
		r = -errno;
	else if (r == 0 && S_ISDIR(st.st_mode))
		r = -EISDIR;
	else if (r == 0 && !S_ISREG(st.st_mode) && !(S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3)))
		r = -EMEDIUMTYPE; /* a pipe would be empty when it is read again; /dev/null always is */
	if (r < 0)
		our_fd_close(fd);
	return r < 0 ? r : fd;
}

/* Adds the whole file to t.  Returns 0 or a negative errno: -EFBIG above CONFIG_BYTES_MAX,
 * -EISDIR, -EMEDIUMTYPE for what is no file (a pipe, a device). */
static int
config_read(const char *path, struct text *t)
{
	char buf[16 * 1024];
	int  fd = open_config(path);
	int  r = fd < 0 ? fd : 0;

	while (r == 0) {
		ssize_t n = read(fd, buf, sizeof(buf));

		if (n == 0)
			break;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			r = -errno;
		else
			text_add_bytes(t, buf, (size_t)n);
		if (t->failed)
			r = -ENOMEM;
		else if (t->size > CONFIG_BYTES_MAX)
			r = -EFBIG;
	}
	our_fd_close(fd);
	return r;
}

struct file_read {
	struct component_flags *f;
	struct flag_round      *round;
	const struct text      *bytes;   /* of the file */
	const char             *path;    /* as it was given, for messages */
	yaml_parser_t           parser;
	size_t                 *line_of; /* of each entry, 0: not given yet */
	int                     depth;   /* of lists and mappings around the next event */
	bool                    broken;  /* YAML itself is at fault: stop */
};

static size_t
line_of(const yaml_event_t *e)
{
	return e->start_mark.line + 1;
}

static void
fault(struct file_read *r, size_t line, const char *key, const char *why)
{
	char        label[32];
	struct text t = TEXT_INIT;

	if (line > 0)
		snprintf(label, sizeof(label), ":%zu", line);
	text_add_visible(&t, r->path, PATH_MAX);
	text_add(&t, "%s", line > 0 ? label : "");
	if (key) {
		text_add(&t, ": key ");
		text_add_quoted(&t, key);
	}
	flag_round_fault(r->round, LEVEL_FILE, text_string(&t), NULL, NULL, why);
	text_release(&t);
}

/* How much deeper what comes behind it lies. */
static int
depth_of(const yaml_event_t *e)
{
	if (e->type == YAML_MAPPING_START_EVENT || e->type == YAML_SEQUENCE_START_EVENT)
		return 1;
	return e->type == YAML_MAPPING_END_EVENT || e->type == YAML_SEQUENCE_END_EVENT ? -1 : 0;
}

/* The next event; the caller deletes it.  false: the file cannot be read further. */
static bool
next(struct file_read *r, yaml_event_t *e)
{
	if (!r->broken && r->round->file_errors >= CONFIG_FAULTS_MAX) {
		r->broken = true;
		fault(r, r->parser.mark.line + 1, NULL, "too many faults before this line; "
			"it was not read further");
	}
	if (!r->broken && yaml_parser_parse(&r->parser, e)) {
		r->depth += depth_of(e);
		if (r->depth <= CONFIG_DEPTH_MAX)
			return true;
		/* libyaml's time grows with the square of the depth. */
		fault(r, line_of(e), NULL, "lists and mappings are nested too deeply");
		yaml_event_delete(e);
	} else if (!r->broken) {
		struct text t = TEXT_INIT;

		text_add(&t, "not YAML: ");
		fault(r, yaml_fault(&r->parser, r->bytes, &t), NULL, text_string(&t));
		text_release(&t);
	}
	r->broken = true;
	return false;
}

/* Steps over what begins with e. */
static void
skip(struct file_read *r, const yaml_event_t *e)
{
	int depth = depth_of(e);
	yaml_event_t inner;

	while (depth > 0 && next(r, &inner)) {
		depth += depth_of(&inner);
		yaml_event_delete(&inner);
	}
}

/* Anchors, aliases and tags: true if e has one, which is reported. */
static bool
is_refused(struct file_read *r, const yaml_event_t *e, const char *key)
{
	const yaml_char_t *anchor = NULL, *tag = NULL;

	if (e->type == YAML_ALIAS_EVENT) {
		fault(r, line_of(e), key, "aliases (*name) are not supported; write the value out");
		return true;
	}
	if (e->type == YAML_SCALAR_EVENT) {
		anchor = e->data.scalar.anchor;
		tag = e->data.scalar.tag;
	} else if (e->type == YAML_SEQUENCE_START_EVENT) {
		anchor = e->data.sequence_start.anchor;
		tag = e->data.sequence_start.tag;
	} else if (e->type == YAML_MAPPING_START_EVENT) {
		anchor = e->data.mapping_start.anchor;
		tag = e->data.mapping_start.tag;
	}
	if (anchor)
		fault(r, line_of(e), key, "anchors (&name) are not supported; write the value out");
	else if (tag)
		fault(r, line_of(e), key, "tags (!name) are not supported; write the value alone");
	return anchor || tag;
}

static bool
is_null(const yaml_event_t *e)
{
	static const char *const nulls[] = { "", "~", "null", "Null", "NULL" };
	const char *text = (const char *)e->data.scalar.value;

	if (e->data.scalar.length == 0)
		return true;
	for (size_t i = 0; i < sizeof(nulls) / sizeof(nulls[0]); i++)
		if (e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && strcmp(text, nulls[i]) == 0)
			return true;
	return false;
}

/* The text of a scalar, NULL with a fault if it holds a NUL. */
static const char *
scalar(struct file_read *r, const yaml_event_t *e, const char *key)
{
	const char *text = (const char *)e->data.scalar.value;

	if (strlen(text) == e->data.scalar.length)
		return text;
	fault(r, line_of(e), key, "has a NUL byte in it");
	return NULL;
}

static void
take_scalar(struct file_read *r, const struct flag_entry *e, const char *key,
	const yaml_event_t *event)
{
	const char *text = scalar(r, event, key);
	struct text label = TEXT_INIT, source = TEXT_INIT;

	text_add_visible(&label, r->path, PATH_MAX);
	text_add(&label, ":%zu: key ", line_of(event));
	text_add_quoted(&label, key);
	text_add(&source, "file:%s:%zu", r->path, line_of(event));
	if (label.failed || source.failed)
		r->round->errors.failed = true;
	else if (text && !is_null(event))
		flag_round_set(r->f, r->round, e, LEVEL_FILE, text, text_string(&label), text_string(&source));
	text_release(&label);
	text_release(&source);
}

static void
take_sequence(struct file_read *r, const struct flag_entry *e, const char *key,
	const yaml_event_t *start)
{
	struct lines      items = { NULL, 0, false };
	struct flag_value v = { .memory = NULL };
	struct text       source = TEXT_INIT;
	struct component_list list;
	yaml_event_t      event;
	bool              end = false;

	while (!end && next(r, &event)) {
		end = event.type == YAML_SEQUENCE_END_EVENT;
		if (end)
			;
		else if (is_refused(r, &event, key))
			skip(r, &event);
		else if (event.type != YAML_SCALAR_EVENT) {
			fault(r, line_of(&event), key, "an item is a list or a mapping; write plain values");
			skip(r, &event);
		} else if (!is_null(&event)) {
			const char *text = scalar(r, &event, key);

			if (text)
				lines_add(&items, "%s", text);
		}
		yaml_event_delete(&event);
	}
	text_add(&source, "file:%s:%zu", r->path, line_of(start));
	list = (struct component_list){ (const char *const *)items.items, items.count };
	if (items.failed || source.failed || (items.count > 0 && flag_value_join(&list, NULL, &v) < 0))
		r->round->errors.failed = true;
	else if (items.count > 0)
		flag_round_put(r->f, r->round, e, LEVEL_FILE, &v, source.data);
	lines_release(&items);
	text_release(&source);
}

/* Is there a key "prefix.something"? */
static bool
is_prefix(const struct component_flags *f, const char *prefix)
{
	size_t n = strlen(prefix);

	for (size_t i = 0; i < f->count; i++) {
		const char *words = f->entries[i].row.key, *word;
		size_t      size;

		while (words_next(&words, &word, &size))
			if (size > n && memcmp(word, prefix, n) == 0 && word[n] == '.')
				return true;
	}
	return false;
}

static void
refuse_unknown(struct file_read *r, const char *key, size_t line)
{
	char near[KEY_BYTES_MAX], why[KEY_BYTES_MAX + 64] = "belongs to no option";

	if (*flags_nearest(r->f, PLACE_FILE, key, near, sizeof(near)))
		snprintf(why, sizeof(why), "belongs to no option; did you mean '%s'?", near);
	fault(r, line, key, why);
}

/* The entry of a key if it may be given here; else NULL, with a fault. */
static const struct flag_entry *
find_entry(struct file_read *r, const char *key, size_t line)
{
	const struct flag_entry *e = flags_find_key(r->f, key);
	size_t                  *first;
	char                     why[128];

	if (!e) {
		refuse_unknown(r, key, line);
		return NULL;
	}
	if (e->action != ACTION_NONE) {
		fault(r, line, key, "is for the command line; take it out of the file");
		return NULL;
	}
	first = &r->line_of[e - r->f->entries];
	if (*first > 0) {
		snprintf(why, sizeof(why), "is given twice, first in line %zu; keep one", *first);
		fault(r, line, key, why);
		return NULL;
	}
	*first = line;
	return e;
}

static void read_mapping(struct file_read *r, const char *prefix);

/* What stands behind a key. */
static void
read_value(struct file_read *r, const char *key, size_t line)
{
	const struct flag_entry *entry;
	bool                     prefix = is_prefix(r->f, key);
	bool                     section = prefix && !flags_find_key(r->f, key);
	yaml_event_t             e;

	if (!next(r, &e))
		return;
	if (is_refused(r, &e, key))
		skip(r, &e);
	else if (prefix && e.type == YAML_MAPPING_START_EVENT)
		read_mapping(r, key);
	else if (section && e.type == YAML_SCALAR_EVENT && is_null(&e))
		;
	else if (section) {
		fault(r, line, key, "wants keys below it; write KEY: {NAME: VALUE}");
		skip(r, &e);
	} else if ((entry = find_entry(r, key, line)) == NULL)
		skip(r, &e);
	else if (e.type == YAML_SCALAR_EVENT)
		take_scalar(r, entry, key, &e);
	else if (e.type == YAML_SEQUENCE_START_EVENT && entry->row.type == COMPONENT_FLAG_TYPE_LIST)
		take_sequence(r, entry, key, &e);
	else {
		fault(r, line, key, e.type == YAML_MAPPING_START_EVENT ? "a mapping where one value is wanted" :
			"a list where one value is wanted");
		skip(r, &e);
	}
	yaml_event_delete(&e);
}

static void
read_mapping(struct file_read *r, const char *prefix)
{
	yaml_event_t e;
	char         key[KEY_BYTES_MAX];
	bool         end = false;

	while (!end && next(r, &e)) {
		end = e.type == YAML_MAPPING_END_EVENT;
		if (end)
			;
		else if (is_refused(r, &e, NULL) || e.type != YAML_SCALAR_EVENT ||
		         strlen((const char *)e.data.scalar.value) != e.data.scalar.length ||
		         snprintf(key, sizeof(key), "%s%s%s", prefix, *prefix ? "." : "",
		         	(const char *)e.data.scalar.value) >= (int)sizeof(key)) {
			yaml_event_t value;

			fault(r, line_of(&e), NULL, "a key that is no option's name; write NAME: VALUE");
			skip(r, &e);
			if (next(r, &value)) {
				skip(r, &value);
				yaml_event_delete(&value);
			}
		} else
			read_value(r, key, line_of(&e));
		yaml_event_delete(&e);
	}
}

static void
read_document(struct file_read *r, const yaml_event_t *root)
{
	if (is_refused(r, root, NULL))
		skip(r, root);
	else if (root->type == YAML_MAPPING_START_EVENT)
		read_mapping(r, "");
	else if (root->type != YAML_SCALAR_EVENT || !is_null(root)) {
		fault(r, line_of(root), NULL, "holds no options; write lines of NAME: VALUE");
		skip(r, root);
	}
}

static void
read_stream(struct file_read *r)
{
	yaml_event_t e;
	int          documents = 0;
	bool         end = false;

	while (!end && next(r, &e)) {
		if (e.type == YAML_STREAM_END_EVENT)
			end = true;
		else if (e.type == YAML_DOCUMENT_START_EVENT && ++documents > 1) {
			fault(r, line_of(&e), NULL, "a second document begins; keep one, "
				"without '---' between its parts");
			end = true;
		} else if (e.type == YAML_SCALAR_EVENT || e.type == YAML_ALIAS_EVENT || depth_of(&e) > 0)
			read_document(r, &e);
		yaml_event_delete(&e);
	}
}

static void
fault_errno(struct file_read *r, const char *by, int error)
{
	struct text t = TEXT_INIT;
	char        buf[128];

	text_add(&t, "cannot be read: ");
	if (error == EMEDIUMTYPE)
		text_add(&t, "not a regular file, and a pipe would be empty at a reload; "
			"write the options to a file");
	else if (error == EFBIG)
		text_add(&t, "larger than %d bytes", CONFIG_BYTES_MAX);
	else
		text_add(&t, "%s", strerror_r(error, buf, sizeof(buf)));
	text_add(&t, " (named by %s)", by);
	fault(r, 0, NULL, text_string(&t));
	text_release(&t);
}

/* The setting that names the file. */
static const struct flag_setting *
find_path(struct component_flags *f, struct flag_round *round, bool *ret_given, const char **ret_by)
{
	struct flag_entry   *e = flags_find_action(f, ACTION_CONFIG);
	struct flag_setting *line = flag_round_at(round, f, e, LEVEL_LINE);
	struct flag_setting *env = flag_round_at(round, f, e, LEVEL_ENV);

	*ret_given = line->set || env->set;
	*ret_by = line->set ? "--config" : env->set ? env->source + strlen("env:") :
		"the default of --config";
	return line->set ? line : env->set ? env : flag_setting_of(e, NULL);
}

void
flags_file_read(struct component_flags *f, struct flag_round *round)
{
	struct text      bytes = TEXT_INIT;
	struct file_read r = { .f = f, .round = round, .bytes = &bytes };
	const char      *by;
	bool             given;
	int              error;

	r.path = find_path(f, round, &given, &by)->value.string;
	/* Another file named by now is a change that wants a restart. */
	if (f->parsed)
		r.path = flag_setting_of(flags_find_action(f, ACTION_CONFIG), NULL)->value.string;
	if (!r.path || !*r.path)
		return;
	if (!f->parsed)
		round->config_path = absolute_path(r.path); /* for a reload */
	if (!f->parsed && !round->config_path) {
		round->errors.failed = true;
		return;
	}
	error = config_read(f->parsed ? f->config_path : round->config_path, &bytes);
	if (error == -ENOENT && !given && !f->config_found)
		goto out;
	if (error < 0) {
		fault_errno(&r, by, -error);
		goto out;
	}
	round->config_found = true;
	r.line_of = calloc(f->count, sizeof(*r.line_of));
	if (!r.line_of || !yaml_parser_initialize(&r.parser)) {
		round->errors.failed = true;
		goto out;
	}
	yaml_parser_set_input_string(&r.parser, (const unsigned char *)text_string(&bytes), bytes.size);
	read_stream(&r);
	yaml_parser_delete(&r.parser);
out:
	free(r.line_of);
	text_release(&bytes);
}
