/*
 * profile.c - the commands that look into a program: profile, trace, dump, memory.
 *
 *     TARGET ──▶ fetch(), family_fetch() ──▶ read_profile() ──▶ save_numbered() ──▶ top_print()
 *
 * A profile is read before it is saved: what is no whole profile leaves no file.  What is printed for programs,
 * the table or the stacks, goes to stdout, the rest to stderr.
 *
 * Tests: tests/componentctl/profile.t, tests/componentctl/children.t
 */
#include <config.h>

#include "profile.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "family.h"
#include "fetch.h"
#include "gzip.h"
#include "merge.h"
#include "page.h"
#include "read.h"
#include "replacement.h"
#include "save.h"
#include "shown.h"
#include "target.h"
#include "top.h"
#include "unserved.h"

#define SECTION         "Profile"
#define SECONDS_USUAL   10
#define SECONDS_MAX     86400
#define ROWS_USUAL      10
#define TRACE_BEGINNING "go 1."
#define PERFETTO_BEGINNING 0x0a /* a field of packets */

static struct {
	int64_t     seconds, rows;
	const char *file, *token_file, *focus, *ignore, *sample_index, *base, *diff_base, *peek, *list;
	const char *source_path, *trim_path, *html, *svg, *viewer_file;
	bool        cum, tree, raw, folded, comments, perfetto, children;
} opt = { .rows = ROWS_USUAL };

#define ROW_SECONDS COMPONENT_FLAG_INT("seconds", &opt.seconds, "How long to measure; 10 if not given for what is " \
	"measured over time.  Of heap, mutex and the like the difference between then and now is shown.", .section = SECTION, \
	.min = 0, .max = SECONDS_MAX, .argument = "N")
#define ROW_TOKEN COMPONENT_FLAG_STRING("token-file", &opt.token_file, "File with the server's token in its first line.", \
	.section = SECTION, .argument = "FILE")

static const struct component_flag profile_flags[] = {
	ROW_SECONDS,
	COMPONENT_FLAG_BOOL("children", &opt.children, "Measure all processes of the program, a master and its workers, at the same "
		"time, as one profile; the label 'process' tells them apart.", .section = SECTION),
	COMPONENT_FLAG_STRING("output", &opt.file, "File for the profile.  If not given: ID.KIND.001.pb.gz, or the next free "
		"number, in this folder.", .section = SECTION, .argument = "FILE", .letter = 'o'),
	COMPONENT_FLAG_INT("top", &opt.rows, "How many functions to show; 0: all.", .section = SECTION, .min = 0,
		.max = INT32_MAX, .argument = "N", .bits = COMPONENT_FLAG_OPTIONAL),
	COMPONENT_FLAG_BOOL("cum", &opt.cum, "Sort by what was measured in a function and what it called.", .section = SECTION),
	COMPONENT_FLAG_STRING("focus", &opt.focus, "Only stacks with a function, file or object that this regular expression "
		"finds.", .section = SECTION, .argument = "RE"),
	COMPONENT_FLAG_STRING("ignore", &opt.ignore, "No stacks with a function, file or object that this regular expression "
		"finds.", .section = SECTION, .argument = "RE"),
	COMPONENT_FLAG_STRING("sample-index", &opt.sample_index, "Which values to show, by name or number: inuse_space, "
		"alloc_objects, delay.", .section = SECTION, .argument = "NAME"),
	COMPONENT_FLAG_STRING("base", &opt.base, "File with a profile of the same kind: it is subtracted.", .section = SECTION,
		.argument = "FILE"),
	COMPONENT_FLAG_STRING("diff-base", &opt.diff_base, "The same, and shares are of that profile's total.",
		.section = SECTION, .argument = "FILE"),
	COMPONENT_FLAG_BOOL("tree", &opt.tree, "Show for each function who calls it and what it calls.", .section = SECTION),
	COMPONENT_FLAG_STRING("peek", &opt.peek, "The same for functions alone that this regular expression finds, however "
		"little is theirs.", .section = SECTION, .argument = "RE"),
	COMPONENT_FLAG_STRING("list", &opt.list, "Show the source of functions that this regular expression finds, with what was "
		"measured in each line.", .section = SECTION, .argument = "RE"),
	COMPONENT_FLAG_STRING("source-path", &opt.source_path, "Where --list looks for sources whose paths are not absolute: folders, "
		"with ':' between them, and those above them.  If not given: this folder.", .section = SECTION, .argument = "PATHS"),
	COMPONENT_FLAG_STRING("trim-path", &opt.trim_path, "Beginnings of paths, with ':' between them, that --list takes off.  If not "
		"given: up to the last part of a folder of --source-path.", .section = SECTION, .argument = "PATHS"),
	COMPONENT_FLAG_BOOL("raw", &opt.raw, "Only save the profile.", .section = SECTION),
	COMPONENT_FLAG_BOOL("folded", &opt.folded, "Print stacks, a line each, for flame graphs.", .section = SECTION),
	COMPONENT_FLAG_STRING("html", &opt.html, "Write a page for browsers, with the profile and flame graphs of it inside; nothing "
		"is printed then.", .section = SECTION, .argument = "FILE"),
	COMPONENT_FLAG_STRING("svg", &opt.svg, "Write a picture of the flame graph; nothing is printed then.", .section = SECTION,
		.argument = "FILE"),
	COMPONENT_FLAG_STRING("viewer-file", &opt.viewer_file, "The page that --html is made of (viewer.html.gz), if it is not where it "
		"was installed.", .section = SECTION, .argument = "FILE"),
	COMPONENT_FLAG_BOOL("comments", &opt.comments, "Print what the profile says about itself.", .section = SECTION),
	ROW_TOKEN,
	COMPONENT_FLAG_END
};

static const struct component_flag trace_flags[] = {
	ROW_SECONDS,
	COMPONENT_FLAG_STRING("output", &opt.file, "File for the trace.", .section = SECTION, .argument = "FILE", .letter = 'o'),
	COMPONENT_FLAG_BOOL("perfetto", &opt.perfetto, "For ui.perfetto.dev, and not for go tool trace.", .section = SECTION),
	ROW_TOKEN,
	COMPONENT_FLAG_END
};

static const struct component_flag text_flags[] = { ROW_TOKEN, COMPONENT_FLAG_END };

static int
usage(struct component_error *err, const char *why)
{
	component_error_set(err, "%s", why);
	return -EINVAL;
}

/* A server alone. */
static int
find_server(struct target *t, const char *word, const char *what, struct component_error *err)
{
	int r = target_find(t, word, err);

	if (!r && t->is_file)
		return usage(err, "this asks a program; write HOST:PORT, a URL, unix:/path, or an ID that 'componentctl list' shows, "
			"and no file");
	return r || !t->pid ? r : unserved_refuse(t->pid, what, err);
}

/* Those that a server measures over time, and would for 30 seconds if not told. */
static int64_t
seconds_of(const char *kind)
{
	static const char *const windows[] = { "profile", "fgprof", "trace" };

	for (size_t i = 0; i < sizeof(windows) / sizeof(*windows) && !opt.seconds; i++)
		if (!strcmp(kind, windows[i]))
			return SECONDS_USUAL;
	return opt.seconds;
}

static int
print(const struct text *t)
{
	if (t->failed)
		return -ENOMEM;
	fwrite(text_string(t), 1, t->size, stdout);
	return 0;
}

static bool
is_given(const char *value)
{
	return value && *value;
}

static int
print_views(const struct pprof *p, struct component_error *err)
{
	const struct view view = { .focus = opt.focus, .ignore = opt.ignore, .sample_index = opt.sample_index,
		.peek = opt.peek, .list = opt.list, .source_path = opt.source_path, .trim_path = opt.trim_path, .rows = opt.rows, .cum = opt.cum, .tree = opt.tree };
	struct text       out = TEXT_INIT, notes = TEXT_INIT;
	int               r = 0;

	for (size_t i = 0; i < p->comment_count && opt.comments; i++) {
		text_add_visible(&out, p->comments[i], strlen(p->comments[i]));
		text_add(&out, "\n");
	}
	if (opt.folded)
		r = folded_print(p, &view, &out, &notes, err);
	else if (is_given(opt.list))
		r = listing_print(p, &view, &out, &notes, err);
	else if (!opt.raw && !opt.comments)
		r = top_print(p, &view, &out, &notes, err);
	if (!r)
		r = print(&out);
	if (notes.size)
		fputs(notes.data, stderr);
	text_release(&out);
	text_release(&notes);
	return r;
}

/* A file with a profile; name is its word in messages.  ret is to be released either way. */
static int
read_file(const char *path, const char *name, struct pprof *ret, struct component_error *err)
{
	struct component_error why = COMPONENT_ERROR_INIT;
	int                    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), r = 0;
	struct stat            st;
	struct fetched         f = { .data = NULL };

	if (fd < 0 || fstat(fd, &st) < 0) {
		r = -errno;
		component_error_set(err, "'%s': %s", name, strerror(-r));
		goto out;
	}
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size > FETCH_BYTES_MAX) {
		component_error_set(err, "'%s': is no file with a profile, or has more than %zu MiB", name, FETCH_BYTES_MAX >> 20);
		r = -EFBIG;
		goto out;
	}
	f.data = malloc((size_t)st.st_size + 1);
	if (!f.data) {
		r = -ENOMEM;
		goto out;
	}
	for (ssize_t n = 1; n > 0 && f.size < (size_t)st.st_size; f.size += n > 0 ? (size_t)n : 0) {
		n = TEMP_FAILURE_RETRY(read(fd, f.data + f.size, (size_t)st.st_size - f.size));
		r = n < 0 ? -errno : 0;
	}
	if (r < 0) {
		component_error_set(err, "'%s': %s", name, strerror(-r));
		goto out;
	}
	r = read_profile(f.data, f.size, ret, &why);
	if (r < 0)
		component_error_set(err, "'%s' %s", name, why.text);
	/* Not a fault of how the command was written. */
	r = r == -EINVAL ? -EBADMSG : r;
out:
	fetch_release(&f);
	if (fd >= 0)
		close(fd);
	return r;
}

static int
save_picture(struct pprof *p, const char *name, struct component_error *err)
{
	const struct view view = { .focus = opt.focus, .ignore = opt.ignore, .sample_index = opt.sample_index };
	struct text       out = TEXT_INIT, notes = TEXT_INIT;
	int               r = picture_print(p, name, &view, &out, &notes, err);

	if (!r)
		r = save_as(opt.svg, "--svg=FILE", out.data, out.size, err);
	if (!r)
		fprintf(stderr, "%sWrote %s\n", text_string(&notes), opt.svg);
	text_release(&out);
	text_release(&notes);
	return r;
}

/* name: of the profile, on a page or a picture. */
static int
show_whole(struct pprof *p, const char *name, struct component_error *err)
{
	struct component_error why = COMPONENT_ERROR_INIT;
	int                    r;

	if (!is_given(opt.html)) {
		r = read_drop_frames(p, &why);
		if (r < 0) {
			component_error_set(err, "'%s' %s", name, why.text);
			return r;
		}
		return is_given(opt.svg) ? save_picture(p, name, err) : print_views(p, err);
	}
	r = page_save(p, name, opt.viewer_file, opt.html, err);
	if (!r)
		fprintf(stderr, "Wrote %s\n", opt.html);
	return r;
}

/* Less what --base has, if it is given. */
static int
show(struct pprof *p, const char *name, struct component_error *err)
{
	const char   *path = is_given(opt.base) ? opt.base : opt.diff_base;
	struct pprof  base = { .types = NULL }, difference = { .types = NULL };
	int           r;

	if (!is_given(path))
		return show_whole(p, name, err);
	r = read_file(path, path, &base, err);
	if (!r)
		r = merge_profiles((struct merge_source[]){ { p, 1, false }, { &base, -1, is_given(opt.diff_base) } }, 2,
			&difference, err);
	if (!r)
		r = show_whole(&difference, name, err);
	read_release(&difference);
	read_release(&base);
	return r;
}

static int
show_file(const struct target *t, struct component_error *err)
{
	struct pprof p = { .types = NULL };
	int          r = read_file(t->file, t->word, &p, err);

	if (!r)
		r = show(&p, t->word, err);
	read_release(&p);
	return r;
}

static int
save(const struct target *t, const char *kind, const struct fetched *f, struct component_error *err)
{
	char path[SAVE_PATH_MAX];
	int  r;

	if (opt.file && *opt.file) {
		snprintf(path, sizeof(path), "%s", opt.file);
		r = save_as(path, SAVE_OPTION, f->data, f->size, err);
	} else {
		r = save_numbered(t->name, kind, f->data, f->size, path, err);
	}
	if (!r)
		fprintf(stderr, "Saved as %s\n", path);
	return r;
}

/* What was fetched, r by fetch(): saved and shown if it is a whole profile. */
static int
take(const struct target *t, const char *kind, const struct fetched *f, int r, struct component_error *err)
{
	struct component_error why = COMPONENT_ERROR_INIT;
	struct pprof           p;
	int                    whole;

	if (r < 0 && r != -EPIPE)
		return r;
	whole = read_profile(f->data, f->size, &p, &why);
	if (whole < 0 && r == -EPIPE) {
		component_error_add(err, "what came is no whole profile, and was not saved");
	} else if (whole < 0) {
		component_error_set(err, "%s: the answer for '%s' %s", t->word, kind, why.text);
		r = -EBADMSG;
	} else {
		if (r == -EPIPE && f->has_checkpoints)
			fprintf(stderr, FETCH_KEPT, err->text, (double)p.duration_ns / 1e9);
		else if (r == -EPIPE)
			fprintf(stderr, "%s\nWhat came is a whole profile, and is kept.\n", err->text);
		r = save(t, kind, f, err);
		if (!r)
			r = show(&p, kind, err);
	}
	read_release(&p);
	return r;
}

static bool
is_stdout(const char *file)
{
	return is_given(file) && replacement_fd_of(file) == STDOUT_FILENO;
}

static int
check_view(bool is_file, const char *kind, struct component_error *err)
{
	if (opt.raw + opt.folded + opt.comments + opt.tree + is_given(opt.peek) + is_given(opt.list) + is_given(opt.html) +
		is_given(opt.svg) > 1)
		return usage(err, "--raw, --folded, --comments, --tree, --peek, --list, --html and --svg exclude each other; write one of them");
	if (is_given(opt.html) && (is_given(opt.focus) || is_given(opt.ignore) || is_given(opt.sample_index) || opt.cum))
		return usage(err, "--html writes all of the profile, into a page with filters of its own; leave --focus, --ignore, "
			"--sample-index and --cum out");
	if (is_given(opt.viewer_file) && !is_given(opt.html))
		return usage(err, "--viewer-file says what a page is made of; write --html=FILE beside it");
	if ((is_given(opt.source_path) || is_given(opt.trim_path)) && !is_given(opt.list))
		return usage(err, "--source-path and --trim-path say where sources are; write --list=RE beside them");
	if (is_given(opt.base) && is_given(opt.diff_base))
		return usage(err, "--base and --diff-base exclude each other; write one of them");
	if (opt.raw && (is_given(opt.base) || is_given(opt.diff_base)))
		return usage(err, "--raw shows nothing from which --base could be subtracted; leave one of them out");
	/* Before anything is measured. */
	if (shown_check("--focus", opt.focus, err) < 0 || shown_check("--ignore", opt.ignore, err) < 0 ||
		shown_check("--peek", opt.peek, err) < 0 || shown_check("--list", opt.list, err) < 0)
		return -EINVAL;
	if (kind && *kind && kind[strspn(kind, "0123456789")] == '\0')
		return usage(err, "KIND is the name of a profile, such as heap, and no number; how many functions to show is written --top=N");
	if (is_file && (kind || opt.raw || opt.seconds || (opt.file && *opt.file)))
		return usage(err, "the target is a file, of which KIND, --seconds, -o and --raw say nothing; leave them out");
	if (is_stdout(opt.file) && !opt.raw && (is_stdout(opt.html) || is_stdout(opt.svg) || (!is_given(opt.html) && !is_given(opt.svg))))
		return usage(err, "what is shown would be put behind the profile; write --raw beside -o /dev/stdout");
	if (kind && !strcmp(kind, "trace"))
		return usage(err, "a trace is no profile; write 'componentctl trace TARGET -o FILE'");
	if (kind && (!strcmp(kind, "memory") || strpbrk(kind, "?#") || !*kind))
		return usage(err, "KIND is the name of a profile, such as heap; for the table of resident memory write "
			"'componentctl memory TARGET'");
	return 0;
}

/* What is to be measured: with --children a family, of more than one. */
static int
find(const char *word, struct target *t, struct records *family, struct component_error *err)
{
	int found = target_find(t, word, err), r;

	/* A master that is off may have workers that are not. */
	if (!opt.children || (found < 0 && found != -ECONNREFUSED))
		return found;
	if (!t->process || t->pid)
		return usage(err, "--children finds the processes of a program by their records; write an ID or PID that "
			"'componentctl list' shows");
	r = family_find(t->word, family, err); /* word may be a thread's */
	if (r < 0 || family->count < 2)
		return r < 0 ? r : found;
	err->text[0] = '\0';
	return 0;
}

static int
measure(const struct target *t, const struct records *family, const char *kind, struct fetched *f, struct component_error *err)
{
	char    query[64] = "";
	int64_t seconds = seconds_of(kind);

	if (seconds)
		snprintf(query, sizeof(query), "seconds=%" PRId64 "&checkpoint=1", seconds);
	if (family->count > 1)
		return family_fetch(family, kind, query, seconds, opt.token_file, f, err);
	return t->pid ? unserved_profile(t->pid, kind, seconds, true, f, err) :
		fetch(t, kind, query, seconds, true, opt.token_file, f, err);
}

static int
check_readable(const char *path, struct component_error *err)
{
	int r = is_given(path) && access(path, R_OK) < 0 ? -errno : 0;

	if (r < 0)
		component_error_set(err, "'%s': %s", path, strerror(-r));
	return r;
}

/* What is to be written and read behind the measurement, which may last. */
static int
check_files(const struct target *t, const char *kind, struct component_error *err)
{
	int r = is_given(opt.file) ? save_check(opt.file, SAVE_OPTION, err) : save_numbered_check(t->name, kind, err);

	if (!r && is_given(opt.html))
		r = save_check(opt.html, "--html=FILE", err);
	if (!r && is_given(opt.svg))
		r = save_check(opt.svg, "--svg=FILE", err);
	if (!r)
		r = check_readable(opt.base, err);
	if (!r)
		r = check_readable(opt.diff_base, err);
	if (!r)
		r = check_readable(opt.viewer_file, err);
	return r;
}

static int
run_profile(char **operands, struct component_error *err)
{
	const char    *kind = operands[1] ? operands[1] : "profile";
	struct records family = { .items = NULL };
	struct fetched f = { .data = NULL };
	struct target  t;
	int            r = find(operands[0], &t, &family, err);

	if (!r)
		r = check_view(t.is_file, operands[1], err);
	if (!r && t.is_file) {
		r = show_file(&t, err);
	} else if (!r) {
		r = check_files(&t, kind, err);
		if (!r) {
			r = measure(&t, &family, kind, &f, err);
			r = take(&t, kind, &f, r, err);
		}
	}
	fetch_release(&f);
	records_release(&family);
	return r;
}

static bool
is_trace(const struct fetched *f)
{
	if (opt.perfetto)
		return f->size > 0 && f->data[0] == PERFETTO_BEGINNING;
	return f->size >= sizeof(TRACE_BEGINNING) && !memcmp(f->data, TRACE_BEGINNING, sizeof(TRACE_BEGINNING) - 1);
}

/* The last checkpoint, unpacked in its place. */
static int
unpack(struct fetched *f)
{
	struct fetched plain = { .is_cut = f->is_cut };
	int            r = gzip_inflate(f->data, f->size, fetch_add, &plain);

	fetch_release(f);
	*f = plain;
	return r;
}

/* What was fetched, r by fetch(): saved if it is a whole trace. */
static int
take_trace(const struct target *t, struct fetched *f, int r, struct component_error *err)
{
	int whole;

	if (r < 0 && r != -EPIPE)
		return r;
	whole = f->has_checkpoints ? unpack(f) : r;
	if (whole == -ENOMEM)
		return whole;
	if (whole == -EFBIG) {
		component_error_set(err, "%s: the trace is more than %zu MiB; ask for fewer --seconds", t->word, FETCH_BYTES_MAX >> 20);
		return whole;
	}
	if (whole < 0 && r == -EPIPE) {
		component_error_add(err, "what came is no whole trace, and was not saved");
		return r;
	}
	if (whole < 0 || !is_trace(f)) {
		component_error_set(err, "%s: the answer is no trace%s", t->word, opt.perfetto ? " of Perfetto's; leave --perfetto out for Go's" : "");
		return -EBADMSG;
	}
	if (r == -EPIPE)
		fprintf(stderr, "%s\nWhat it has traced until its last checkpoint is kept.\n", err->text);
	return save(t, "trace", f, err);
}

static int
run_trace(char **operands, struct component_error *err)
{
	struct fetched f;
	struct target  t;
	char           query[64];
	int64_t        seconds = seconds_of("trace");
	int            r;

	if (!is_given(opt.file))
		return usage(err, "a trace goes into a file; write -o FILE");
	r = find_server(&t, operands[0], "trace", err);
	if (!r)
		r = save_check(opt.file, SAVE_OPTION, err);
	if (r < 0)
		return r;
	snprintf(query, sizeof(query), "seconds=%" PRId64 "&checkpoint=1%s", seconds, opt.perfetto ? "&format=perfetto" : "");
	r = fetch(&t, "trace", query, seconds, true, opt.token_file, &f, err);
	r = take_trace(&t, &f, r, err);
	fetch_release(&f);
	return r;
}

/* Lines as they are, without what a terminal would obey. */
static int
print_text(const struct fetched *f)
{
	struct text out = TEXT_INIT;
	int         r;

	for (size_t at = 0, n; at < f->size; at += n) {
		const char *line = (const char *)f->data + at;
		char       *copy;

		for (n = 0; at + n < f->size && !strchr("\n\t", line[n]);)
			n++;
		copy = n ? strndup(line, n) : NULL;
		if (copy)
			text_add_visible(&out, copy, n);
		free(copy);
		if (at + n < f->size)
			text_add_bytes(&out, line[n] ? line + n : "?", 1), n++;
	}
	r = print(&out);
	text_release(&out);
	return r;
}

static int
print_answer(const char *word, const char *what, const char *query, struct component_error *err)
{
	struct fetched f;
	struct target  t;
	int            r = find_server(&t, word, what, err);

	if (r < 0)
		return r;
	r = fetch(&t, what, query, 0, false, opt.token_file, &f, err);
	if (!r)
		r = print_text(&f);
	fetch_release(&f);
	return r;
}

/* As it stands in the answer. */
static int
print_dump(pid_t pid, struct component_error *err)
{
	struct fetched f;
	int            r = unserved_dump(pid, &f, err);

	if (!r)
		r = print_text(&f);
	fetch_release(&f);
	return r;
}

static int
run_dump(char **operands, struct component_error *err)
{
	struct target t;
	int           r = target_find(&t, operands[0], err);

	if (r < 0)
		return r;
	return t.pid ? print_dump(t.pid, err) : print_answer(operands[0], "goroutine", "debug=2", err);
}

static int
run_memory(char **operands, struct component_error *err)
{
	return print_answer(operands[0], "memory", "", err);
}

const struct command profile_command = { .name = "profile", .operands = "TARGET [KIND]", .least = 1, .most = 2,
	.summary = "Takes a profile, saves it, and shows the hottest functions.", .flags = profile_flags, .run = run_profile };
const struct command trace_command = { .name = "trace", .operands = "TARGET", .least = 1, .most = 1,
	.summary = "Saves a trace of what the threads did.", .flags = trace_flags, .run = run_trace };
const struct command dump_command = { .name = "dump", .operands = "TARGET", .least = 1, .most = 1,
	.summary = "Shows what each thread does, deadlocks first.", .flags = text_flags, .run = run_dump };
const struct command memory_command = { .name = "memory", .operands = "TARGET", .least = 1, .most = 1,
	.summary = "Shows where the resident memory is.", .flags = text_flags, .run = run_memory };
