/*
 * listing.c - the source of functions with what was measured in each line, as go tool pprof -list has it.
 *
 *     Total: 310ms
 *     ROUTINE ======================== crunch in /src/work.c
 *          240ms      240ms (flat, cum) 77.42% of Total
 *              .          .      5:void crunch(void) {
 *          240ms      240ms      6:	for (...)
 *
 * Lines are counted as functions are in graph.c: flat where they are the leaf, cum once a stack.  A function's figures
 * are the sums of its lines', so that one which calls itself from another line counts twice, as in pprof.
 *
 * What a stranger would get wrong:
 *  - paths are from the file, which may mean harm: file_open_regular() opens neither a device nor a fifo.
 *  - a path that is not absolute is looked for in the folders of --source-path and in all above them.  One that has the
 *    last part of such a folder's name in it begins behind that.
 *  - from the function's first line on, if the profile says where that is, else from five above the first that was met.
 *
 * Tests: tests/componentctl/listing.t
 */
#include <config.h>

#include "top.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"
#include "graph.h"
#include "order.h"
#include "our_fd.h"
#include "strings.h"
#include "units.h"

#define MARGIN       5 /* lines before the first and after the last */
#define SOURCE_MAX   ((off_t)64 << 20) /* bytes of a file that is shown */
#define UNMATCHED    UINT32_MAX
#define PROCESS_CWD  "/proc/self/cwd/"

struct row {
	const char *name, *file;
	int64_t     line, start_line;
	int64_t     flat, cum;
	size_t      last; /* the number of the last sample counted in cum, from 1 */
};

struct listing {
	const struct pprof *p;
	const struct view  *view;
	struct arena       *arena;
	struct text        *out;
	struct shown        shown;
	struct match        match;
	struct strings      keys;
	struct row         *rows;    /* by the number of their key */
	uint32_t          **numbers; /* of rows, by location, by function */
	const char        **files;   /* by function */
	char                folder[PATH_MAX]; /* where sources are looked for */
	const char         *source_path;
	char               *source; /* the file that was read last */
	size_t              source_size;
	uint32_t           *order;
};

static int64_t
sum(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

/* ---- paths ---- */

/* Without "//", "/./" and "a/../", as Go's filepath.Clean() has it. */
static char *
clean_path(struct arena *a, const char *path)
{
	char  *to = arena_strndup(a, path, strlen(path) + 1);
	bool   rooted = *path == '/';
	size_t n = rooted, floor = rooted;

	while (to && *path) {
		size_t part = strcspn(path, "/");

		if (part == 2 && !memcmp(path, "..", 2) && n > floor) {
			for (n--; n > floor && to[n] != '/';)
				n--;
		} else if (part && !(part == 1 && *path == '.') && !(part == 2 && !memcmp(path, "..", 2) && rooted)) {
			if (n > rooted)
				to[n++] = '/';
			memmove(to + n, path, part);
			n += part;
			if (part == 2 && !memcmp(path, "..", 2))
				floor = n;
		}
		path += part + (path[part] == '/');
	}
	if (to && !n)
		to[n++] = '.';
	if (to)
		to[n] = '\0';
	return to;
}

/* The next of "a:b", NULL: there is none; *list goes behind it. */
static const char *
next_part(const char **list, size_t *ret_size)
{
	const char *part = *list;

	if (!part || !*part)
		return NULL;
	*ret_size = strcspn(part, ":");
	*list = part + *ret_size + (part[*ret_size] == ':');
	return part;
}

/* What is left of a path without the beginning that a folder of the list means; NULL: it does not begin so. */
static const char *
behind(const char *path, const char *folder, size_t size)
{
	size -= size && folder[size - 1] == '/';
	return !strncmp(path, folder, size) && path[size] == '/' ? path + size + 1 : NULL;
}

/* Where the last part of a folder of the list stands in it. */
static const char *
behind_last_part(const char *path, const char *folder, size_t size)
{
	char        part[NAME_MAX + 3];
	const char *found, *base;

	while (size > 1 && folder[size - 1] == '/')
		size--;
	for (base = folder + size; base > folder && base[-1] != '/';)
		base--;
	size -= (size_t)(base - folder);
	if (!size || size > NAME_MAX)
		return NULL;
	snprintf(part, sizeof(part), "/%.*s/", (int)size, base);
	found = strstr(path, part);
	return found ? found + size + 2 : NULL;
}

static const char *
trim(const struct view *v, const char *path, const char *source_path)
{
	static const char *const usual[] = { PROCESS_CWD "./", PROCESS_CWD };
	const char              *trims = v->trim_path, *part, *rest;
	size_t                   size;

	while ((!v->trim_path || !*v->trim_path) && (part = next_part(&source_path, &size)))
		if ((rest = behind_last_part(path, part, size)))
			return rest;
	while ((part = next_part(&trims, &size)))
		if ((rest = behind(path, part, size)))
			return rest;
	for (unsigned i = 0; i < 2; i++)
		if ((rest = behind(path, usual[i], strlen(usual[i]))))
			return rest;
	return path;
}

/* ---- counted ---- */

static int
row_of(struct listing *l, const struct pprof_location *at, uint32_t k, uint32_t *ret)
{
	const struct pprof_function *f = at->count ? at->functions[k] : NULL;
	const char                  *name = f ? f->name : "", *file = f ? l->files[f - l->p->functions] : "";
	struct row                   row = { .name = name, .file = file, .line = f ? at->lines[k].line : 0,
		.start_line = f ? f->start_line : 0 };
	struct text                  key = TEXT_INIT;
	uint64_t                     id;
	bool                         is_new;
	int                          r;

	*ret = UNMATCHED;
	if (!match_finds(&l->match, name))
		return 0;
	text_add_bytes(&key, name, strlen(name) + 1);
	text_add_bytes(&key, file, strlen(file) + 1);
	text_add(&key, "%" PRId64 " %" PRId64 " %s", row.start_line, row.line, at->object);
	r = key.failed ? -ENOMEM : strings_id(&l->keys, key.data, key.size, false, &id, &is_new);
	text_release(&key);
	if (r < 0 || id >= UNMATCHED)
		return -ENOMEM;
	if (is_new)
		l->rows[id] = row;
	*ret = (uint32_t)id;
	return 0;
}

/* Rows of all lines whose function is meant, without values. */
static int
make_rows(struct listing *l)
{
	const struct pprof *p = l->p;
	size_t              lines = 0;

	l->files = arena_array(l->arena, p->function_count + 1, sizeof(*l->files));
	l->numbers = arena_array(l->arena, p->location_count + 1, sizeof(*l->numbers));
	for (size_t i = 0; i < p->location_count; i++)
		lines += p->locations[i].count ? p->locations[i].count : 1;
	l->rows = arena_array(l->arena, lines + 1, sizeof(*l->rows));
	if (!l->files || !l->numbers || !l->rows)
		return -ENOMEM;
	for (size_t i = 0; i < p->function_count; i++) {
		const char *file = trim(l->view, p->functions[i].file, l->view->source_path);

		l->files[i] = *file ? clean_path(l->arena, file) : "";
		if (!l->files[i])
			return -ENOMEM;
	}
	for (size_t i = 0; i < p->location_count; i++) {
		uint32_t count = p->locations[i].count ? p->locations[i].count : 1;

		l->numbers[i] = arena_array(l->arena, count, sizeof(uint32_t));
		if (!l->numbers[i])
			return -ENOMEM;
		for (uint32_t k = 0; k < count; k++)
			if (row_of(l, &p->locations[i], k, &l->numbers[i][k]) < 0)
				return -ENOMEM;
	}
	return 0;
}

static void
count_sample(struct listing *l, const struct pprof_sample *s, size_t number)
{
	int64_t value = s->values[l->shown.type];

	for (uint32_t i = 0; i < s->count && value; i++) {
		const struct pprof_location *at = s->stack[i];
		uint32_t                     count = at->count ? at->count : 1;

		for (uint32_t k = 0; k < count; k++) {
			uint32_t    id = l->numbers[at - l->p->locations][k];
			struct row *row = id == UNMATCHED ? NULL : &l->rows[id];

			if (row && row->last != number)
				row->cum = sum(row->cum, value);
			if (row && !i && !k)
				row->flat = sum(row->flat, value);
			if (row)
				row->last = number;
		}
	}
}

static bool
before(const void *arg, uint32_t a, uint32_t b)
{
	const struct listing *l = arg;
	const struct row     *x = &l->rows[a], *y = &l->rows[b];
	int                   r = strcmp(x->name, y->name);

	if (!r)
		r = strcmp(x->file, y->file);
	return r ? r < 0 : x->line != y->line ? x->line < y->line : a < b;
}

/* ---- sources ---- */

static int
read_regular(struct listing *l, const char *path)
{
	int         fd = file_open_regular(path), r = fd < 0 ? fd : 0;
	struct stat st;
	ssize_t     n = 1;

	if (fd < 0)
		return r;
	if (fstat(fd, &st) < 0 || st.st_size > SOURCE_MAX)
		r = -EFBIG;
	free(l->source);
	l->source_size = 0;
	l->source = r ? NULL : malloc((size_t)st.st_size + 1);
	if (!r && !l->source)
		r = -ENOMEM;
	while (!r && n > 0 && l->source_size < (size_t)st.st_size) {
		n = read(fd, l->source + l->source_size, (size_t)st.st_size - l->source_size);
		l->source_size += n > 0 ? (size_t)n : 0;
		r = n < 0 ? -errno : 0;
	}
	our_fd_close(fd);
	return r;
}

/* In a folder of the list, or in one above it. */
static int
read_somewhere(struct listing *l, const char *path)
{
	const char *list = l->source_path, *folder;
	size_t      size;
	char        whole[2 * PATH_MAX];

	while ((folder = next_part(&list, &size)))
		for (;;) {
			if (snprintf(whole, sizeof(whole), "%.*s/%s", (int)size, folder, path) < (int)sizeof(whole) &&
				!read_regular(l, whole))
				return 0;
			while (size && folder[size - 1] != '/')
				size--;
			while (size && folder[size - 1] == '/')
				size--;
			if (size)
				continue;
			/* Above all: the root, or for a folder that is not absolute this one. */
			snprintf(whole, sizeof(whole), "%s%s", *folder == '/' ? "/" : "", path);
			if (!read_regular(l, whole))
				return 0;
			break;
		}
	return -ENOENT;
}

/* 0, or what is wrong in words, as Go has them. */
static int
read_source(struct listing *l, const char *file)
{
	const char *path = trim(l->view, file, l->source_path), *why;
	bool        absolute = *path == '/';
	int         r = absolute ? read_regular(l, path) : read_somewhere(l, path);

	if (!r)
		return 0;
	text_add(l->out, " Error: %s ", absolute ? "open" : "could not find file");
	text_add_visible(l->out, path, strlen(path));
	why = strerror(-r);
	if (absolute)
		text_add(l->out, ": %c%s\n", *why >= 'A' && *why <= 'Z' ? *why + 32 : *why, why + 1);
	else
		text_add(l->out, " on path %s\n", l->source_path);
	return r;
}

/* ---- printed ---- */

static void
add_amount(const struct listing *l, int64_t value, bool dot)
{
	char text[UNITS_MAX];

	units_format(text, value, l->p->types[l->shown.type].unit, "auto");
	text_add(l->out, "%10s ", dot && !value ? "." : text);
}

/* A line of a source, in which a tab is a tab. */
static void
add_line(struct text *out, const char *line, size_t size)
{
	const char *end = line + size;

	while (line < end) {
		const char *tab = memchr(line, '\t', (size_t)(end - line));
		size_t      n = (size_t)((tab ? tab : end) - line);
		char       *copy = n ? strndup(line, n) : NULL;

		if (copy)
			text_add_visible(out, copy, n);
		free(copy);
		if (tab)
			text_add(out, "\t");
		line += n + (tab != NULL);
	}
}

/* Rows of one file, by line. */
static void
print_lines(const struct listing *l, const uint32_t *rows, size_t count, int64_t first, int64_t last)
{
	const char *at = l->source, *end = l->source + l->source_size;
	size_t      i = 0;

	for (int64_t line = 1; at < end && line <= last && l->out->size <= TOP_MEMORY_MAX; line++) {
		const char *next = memchr(at, '\n', (size_t)(end - at)), *stop = next ? next : end;
		int64_t     flat = 0, cum = 0;

		for (; i < count && l->rows[rows[i]].line <= line; i++)
			if (l->rows[rows[i]].line == line) {
				flat = sum(flat, l->rows[rows[i]].flat);
				cum = sum(cum, l->rows[rows[i]].cum);
			}
		if (line >= first) {
			add_amount(l, flat, true);
			add_amount(l, cum, true);
			text_add(l->out, "%6" PRId64 ":", line);
			add_line(l->out, at, (size_t)(stop - at) - (stop > at && stop[-1] == '\r'));
			text_add(l->out, "\n");
		}
		at = stop + 1;
	}
}

/* A function in a file. */
static void
print_file(struct listing *l, const uint32_t *rows, size_t count)
{
	const struct row *row = &l->rows[rows[0]];
	int64_t           flat = 0, cum = 0, first = INT64_MAX, last = l->rows[rows[count - 1]].line;
	char              share[UNITS_MAX];

	for (size_t i = 0; i < count; i++) {
		const struct row *one = &l->rows[rows[i]];
		int64_t           start = one->start_line;

		flat = sum(flat, one->flat);
		cum = sum(cum, one->cum);
		if (!start)
			start = one->line > INT64_MIN + MARGIN ? one->line - MARGIN : one->line;
		first = start < first ? start : first;
	}
	text_add(l->out, "ROUTINE ======================== ");
	text_add_visible(l->out, row->name, strlen(row->name));
	text_add(l->out, " in ");
	text_add_visible(l->out, row->file, strlen(row->file));
	text_add(l->out, "\n");
	add_amount(l, flat, false);
	add_amount(l, cum, false);
	units_percent(share, cum, l->shown.total);
	text_add(l->out, "(flat, cum) %s of Total\n", share);
	if (!read_source(l, row->file))
		print_lines(l, rows, count, first, last < INT64_MAX - MARGIN ? last + MARGIN : last);
}

/* How many of the rows behind have the same name, or the same file as well. */
static size_t
group(const struct listing *l, const uint32_t *rows, size_t count, bool by_file)
{
	size_t n = 1;

	while (n < count && !strcmp(l->rows[rows[n]].name, l->rows[rows[0]].name) &&
		(!by_file || !strcmp(l->rows[rows[n]].file, l->rows[rows[0]].file)))
		n++;
	return n;
}

static void
print_function(struct listing *l, const uint32_t *rows, size_t count)
{
	bool found = false;

	for (size_t i = 0, n; i < count && l->out->size <= TOP_MEMORY_MAX; i += n) {
		n = group(l, rows + i, count - i, true);
		if (!*l->rows[rows[i]].file)
			continue;
		print_file(l, rows + i, n);
		found = true;
	}
	if (found)
		return;
	text_add(l->out, "No source information for ");
	text_add_visible(l->out, l->rows[rows[0]].name, strlen(l->rows[rows[0]].name));
	text_add(l->out, "\n");
}

static int
print(struct listing *l, struct component_error *err)
{
	size_t count = 0;
	char   total[UNITS_MAX];

	l->order = arena_array(l->arena, l->keys.count + 1, sizeof(*l->order));
	if (!l->order)
		return -ENOMEM;
	for (uint32_t i = 0; i < l->keys.count; i++)
		if (l->rows[i].cum || l->rows[i].flat)
			l->order[count++] = i;
	if (!count) {
		component_error_set(err, "--list '%.80s' is no function of this profile; 'componentctl profile FILE --top=0' shows all",
			l->view->list);
		return -ENOENT;
	}
	order_sort(l->order, count, before, l);
	units_format(total, l->shown.total, l->p->types[l->shown.type].unit, "auto");
	text_add(l->out, "Total: %s\n", total);
	for (size_t i = 0, n; i < count && l->out->size <= TOP_MEMORY_MAX; i += n) {
		n = group(l, l->order + i, count - i, false);
		print_function(l, l->order + i, n);
	}
	return top_printed(l->out, err);
}

int
listing_print(const struct pprof *p, const struct view *v, struct text *out, struct text *notes, struct component_error *err)
{
	struct arena_budget budget = { 0, TOP_MEMORY_MAX };
	struct arena        arena;
	struct listing      l = { .p = p, .view = v, .arena = &arena, .out = out, .match = MATCH_INIT, .source_path = v->source_path };
	int                 r;

	arena_init(&arena, &budget);
	strings_init(&l.keys, &arena);
	if (!l.source_path || !*l.source_path)
		l.source_path = getcwd(l.folder, sizeof(l.folder)) ? l.folder : "/";
	r = shown_select(&l.shown, p, v, &arena, notes, err);
	if (!r)
		r = shown_compile(&l.match, "--list", v->list, err);
	if (!r)
		r = make_rows(&l);
	for (size_t i = 0; i < l.shown.count && !r; i++)
		count_sample(&l, &l.shown.samples[i], i + 1);
	if (!r)
		r = print(&l, err);
	free(l.source);
	match_release(&l.match);
	strings_release(&l.keys);
	arena_release(&arena);
	return r;
}
