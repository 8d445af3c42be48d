/*
 * names.c - which functions have names, object by object.
 *
 * What a stranger would get wrong:
 * - Nearly all of a distribution's objects have lost their own table of symbols.  That matters for the program itself, and for
 *   an object in which a stack was met that could not be named: of these is warned.
 * - A function without a name is called by its place, "libc.so.6+0x1234", in a profile.  A name that looks so is none.
 * - Words in brackets are no functions: [lost samples], [stack table full] and [no answer] stand for stacks that are not there.
 *
 * Tests: tests/componentctl/doctor.t
 */
#include <config.h>

#include "names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "outside.h"
#include "package.h"
#include "shell.h"
#include "sources.h"
#include "stack_table.h"

#define SYMBOLS_BYTES    ((size_t)1 << 30) /* of tables: the tool's own memory */
#define LOST_PERCENT     1
#define NAMELESS_PERCENT 1

struct names_object {
	char    *path;     /* "": code that no file has */
	char     build_id[BUILD_ID_MAX];
	uint64_t frames, nameless;
	unsigned sources;
	bool     is_known, is_main; /* is_known: sources is */
};

/* ---- counting ---- */

/* NULL: no memory. */
static struct names_object *
object_of(struct names *n, const char *path)
{
	struct names_object *more;
	size_t               room = n->room ? 2 * n->room : 32;

	for (size_t i = 0; i < n->count; i++)
		if (!strcmp(n->objects[i].path, path))
			return &n->objects[i];
	more = n->count < n->room ? n->objects : reallocarray(n->objects, room, sizeof(*more));
	if (more) {
		n->room = n->count < n->room ? n->room : room;
		n->objects = more;
		more += n->count;
		*more = (struct names_object){ .path = strdup(path) };
		if (more->path) {
			n->count++;
			return more;
		}
	}
	n->failed = true;
	return NULL;
}

static void
frame_count(struct names *n, const char *object, bool named, uint64_t times)
{
	struct names_object *o = object_of(n, object);

	n->frames += times;
	n->nameless += named ? 0 : times;
	if (o) {
		o->frames += times;
		o->nameless += named ? 0 : times;
	}
}

/* "[lost samples]" and its like. */
static bool
is_no_function(const char *name)
{
	return *name == '[' && name[strlen(name) - 1] == ']';
}

/* A sample without a stack. */
static bool
is_lost(const char *name)
{
	return !strcmp(name, stack_pseudo_name(STACK_PSEUDO_LOST)) || !strcmp(name, stack_pseudo_name(STACK_PSEUDO_FULL)) ||
		!strcmp(name, stack_pseudo_name(STACK_PSEUDO_SILENT));
}

/* By its place alone: "0x1234", "redis-server+0x1234". */
static bool
is_place(const char *name)
{
	const char *number = strrchr(name, '+');

	number = number ? number + 1 : name;
	return !strncmp(number, "0x", 2) && number[2] && number[2 + strspn(number + 2, "0123456789abcdef")] == '\0';
}

static void
location_count(struct names *n, const struct pprof_location *l, uint64_t times, bool *lost)
{
	const char *name = l->count ? l->functions[0]->name : "";

	if (is_no_function(name))
		*lost |= is_lost(name);
	else
		frame_count(n, l->object, *name && !is_place(name), times);
}

void
names_count_profile(struct names *n, const struct pprof *p, bool is_cpu)
{
	n->is_measured |= is_cpu;
	for (size_t i = 0; i < p->sample_count; i++) {
		const struct pprof_sample *s = &p->samples[i];
		uint64_t                   times = s->values[0] > 0 ? (uint64_t)s->values[0] : 0;
		bool                       lost = false;

		for (uint32_t k = 0; k < s->count; k++)
			location_count(n, s->stack[k], times, &lost);
		n->stacks += times;
		n->samples += is_cpu ? times : 0;
		n->lost += is_cpu && lost ? times : 0;
	}
}

/* ---- a process here ---- */

static bool
pcs_count(struct names *n, struct symbols *s, const uintptr_t *pcs, size_t count, uint64_t times)
{
	struct symbol_frame frame;
	bool                lost = false;

	for (size_t i = 0; i < count; i++) {
		const char *pseudo = stack_pseudo_name(pcs[i]);

		if (pseudo)
			lost |= is_lost(pseudo);
		else if (symbols_frames(s, pcs[i], &frame, 1))
			frame_count(n, frame.object ? frame.object : "", frame.named, times);
		else
			frame_count(n, "", false, times);
	}
	n->stacks += times;
	return lost;
}

static bool
always(void *arg, int64_t done_ns)
{
	(void)arg, (void)done_ns;
	return true;
}

static void
cpu_count(struct names *n, struct symbols *s, int64_t seconds)
{
	struct component_error err = COMPONENT_ERROR_INIT;
	struct profile         p;
	bool                   ended;

	/* Why not is told by another finding. */
	if (!seconds || outside_cpu(seconds * 1000000000, always, NULL, &p, &ended, &err) < 0)
		return;
	n->is_measured = true;
	for (size_t i = 0; i < p.count; i++) {
		unsigned         count;
		const uintptr_t *pcs = stack_table_pcs(p.samples[i].stack, &count);
		uint64_t         times = (uint64_t)p.samples[i].values[0];

		n->lost += pcs_count(n, s, pcs, count, times) ? times : 0;
		n->samples += times;
	}
	profile_release(&p);
}

static void
threads_count(struct names *n, struct symbols *s)
{
	struct component_error err = COMPONENT_ERROR_INIT;
	struct dump            d;

	if (outside_dump(&d, &err) < 0)
		return;
	for (size_t i = 0; i < d.count; i++)
		pcs_count(n, s, d.pcs + d.threads[i].first, d.threads[i].count, 1);
	dump_release(&d);
}

void
names_look(struct names *n, bool is_outside, int64_t seconds)
{
	struct symbols *s = NULL;

	n->failed |= symbols_open(SYMBOLS_BYTES, &s) < 0;
	if (is_outside && s) {
		threads_count(n, s);
		cpu_count(n, s, seconds);
	}
	for (size_t i = 0; s && i < symbols_mapping_count(s); i++) {
		const struct symbol_mapping *m = symbols_mapping(s, i);
		struct names_object         *o = *m->path == '/' && !m->gone ? object_of(n, m->path) : NULL;

		if (!o || o->is_known)
			continue;
		o->is_known = true;
		o->is_main = i == 0;
		o->sources = sources_of_mapping(s, i);
		snprintf(o->build_id, sizeof(o->build_id), "%s", m->build_id);
	}
	symbols_close(s);
}

/* ---- telling ---- */

/* Where its names come from, in words. */
static const char *
names_from(unsigned sources)
{
	return sources & SOURCES_SYMTAB ? "all names (.symtab)" : sources & SOURCES_APART_SYMTAB ? "all names (its debug file)" :
		sources & SOURCES_PACKED ? "all names (.gnu_debugdata)" : sources & SOURCES_EXPORTED ? "exported names alone (.dynsym)" :
		sources & SOURCES_NO_FILE ? "its file cannot be read" : "no names";
}

static const char *
lines_from(unsigned sources)
{
	return sources & SOURCES_LINES ? ", lines (.debug_info)" : sources & SOURCES_APART_LINES ? ", lines (its debug file)" : "";
}

/* Of a program that no stack was seen of, all names are wanted. */
static bool
is_enough(const struct names_object *o)
{
	return o->sources & SOURCES_ALL_NAMES || (!o->nameless && (o->frames || !o->is_main));
}

static void
object_tell(const struct names_object *o, pid_t pid, struct findings *f)
{
	char command[PACKAGE_COMMAND_MAX] = "", seen[80] = "", where[BUILD_ID_MAX + 160] = "";

	if (o->frames)
		snprintf(seen, sizeof(seen), "; %" PRIu64 " of %" PRIu64 " frames in it have no name", o->nameless, o->frames);
	if (is_enough(o)) {
		findings_ok(f, "names", NULL, "%s: %s%s%s", o->path, names_from(o->sources), lines_from(o->sources), seen);
		return;
	}
	if (o->sources & SOURCES_NO_FILE) {
		snprintf(where, sizeof(where), "; it was replaced while the program runs, or is kept from this user: restart the program, or "
			"run this as root");
		if (geteuid())
			snprintf(command, sizeof(command), "sudo componentctl doctor %d", (int)pid);
	} else if (package_command(pid, o->path, command)) {
		if (strstr(command, "-dbgsym"))
			snprintf(where, sizeof(where), "; the package is in the distribution's archive of debug symbols");
	} else if (strlen(o->build_id) > 2) {
		snprintf(where, sizeof(where), "; keep its table (no strip, no -s), or put its debug file at "
			"/usr/lib/debug/.build-id/%.2s/%s.debug", o->build_id, o->build_id + 2);
		snprintf(command, sizeof(command), "install -D -m 644 UNSTRIPPED /usr/lib/debug/.build-id/%.2s/%s.debug", o->build_id,
			o->build_id + 2);
	} else {
		snprintf(where, sizeof(where), "; keep its table: no strip, no -s");
		snprintf(command, sizeof(command), "cc -g -Wl,--build-id SOURCES");
	}
	findings_warn(f, "names", command, "%s: %s%s%s", o->path, names_from(o->sources), seen, where);
}

/* Its mapping is not known here: it runs elsewhere, or is kept from this user, or the object is there no more.  Only what was
 * met is known then. */
static void
remote_tell(const struct names_object *o, pid_t pid, struct findings *f)
{
	char command[PACKAGE_COMMAND_MAX] = "";

	if (!*o->path || !o->nameless)
		return;
	if (!pid)
		snprintf(command, sizeof(command), "ssh HOST componentctl doctor ID");
	else if (geteuid())
		snprintf(command, sizeof(command), "sudo componentctl doctor %d", (int)pid);
	else if (!package_command(pid, o->path, command))
		snprintf(command, sizeof(command), "cc -g -Wl,--build-id SOURCES");
	findings_warn(f, "names", command, "%s: %" PRIu64 " of %" PRIu64 " frames in it have no name; install its debug symbols where it "
		"runs, or do not strip it", o->path, o->nameless, o->frames);
}

static void
shares_tell(const struct names *n, const char *word, struct findings *f)
{
	char   quoted[SHELL_WORD_MAX], stacks[SHELL_WORD_MAX + 64], threads[SHELL_WORD_MAX + 64], comments[SHELL_WORD_MAX + 64];
	double nameless = n->frames ? 100.0 * (double)n->nameless / (double)n->frames : 0;
	double lost = n->samples ? 100.0 * (double)n->lost / (double)n->samples : 0;

	word = shell_word(word, quoted);
	snprintf(stacks, sizeof(stacks), "componentctl profile %s --folded", word);
	snprintf(threads, sizeof(threads), "componentctl dump %s", word);
	snprintf(comments, sizeof(comments), "componentctl profile %s --comments", word);
	if (n->frames && nameless <= NAMELESS_PERCENT)
		findings_ok(f, "names", NULL, "%.1f %% of %" PRIu64 " frames in %" PRIu64 " stacks have none", nameless, n->frames, n->stacks);
	else if (n->frames)
		findings_warn(f, "names", stacks, "%.1f %% of %" PRIu64 " frames in %" PRIu64 " stacks have none", nameless, n->frames,
			n->stacks);
	for (size_t i = 0; i < n->count; i++)
		if (!*n->objects[i].path && n->objects[i].nameless)
			findings_warn(f, "names", threads, "%" PRIu64 " frames are in code that no file has: it is made at run time, or the stack was "
				"walked wrongly", n->objects[i].nameless);
	if (n->samples && lost <= LOST_PERCENT)
		findings_ok(f, "stacks", NULL, "%.1f %% of %" PRIu64 " samples of CPU time have none", lost, n->samples);
	else if (n->samples)
		findings_warn(f, "stacks", comments, "%.1f %% of %" PRIu64 " samples of CPU time have none; its comments say why", lost,
			n->samples);
	else if (n->is_measured)
		findings_ok(f, "stacks", NULL, "no CPU time was used, so no sample could be lost");
	else
		findings_ok(f, "stacks", NULL, "not known: no CPU time was looked at");
}

static bool
is_idle(const struct names_object *o)
{
	return !o->frames && !o->is_main && o->is_known;
}

/* What no stack has met: one line for those with all names, one for the others. */
static void
idle_tell(const struct names *n, struct findings *f)
{
	struct text texts[2] = { TEXT_INIT, TEXT_INIT };

	for (size_t i = 0; i < n->count; i++) {
		const struct names_object *o = &n->objects[i];
		struct text               *t = &texts[(o->sources & SOURCES_ALL_NAMES) != 0];

		if (is_idle(o))
			text_add(t, "%s%s", t->size ? ", " : "", strrchr(o->path, '/') + 1);
	}
	if (texts[1].size)
		findings_ok(f, "names", NULL, "met by no stack, with all names: %s", text_string(&texts[1]));
	if (texts[0].size)
		findings_ok(f, "names", NULL, "met by no stack, with exported names alone or none: %s", text_string(&texts[0]));
	text_release(&texts[0]);
	text_release(&texts[1]);
}

void
names_tell(const struct names *n, const char *word, pid_t pid, struct findings *f)
{
	f->failed |= n->failed;
	shares_tell(n, word, f);
	for (size_t i = 0; i < n->count; i++)
		if (!n->objects[i].is_known)
			remote_tell(&n->objects[i], pid, f);
		else if (!is_idle(&n->objects[i]))
			object_tell(&n->objects[i], pid, f);
	idle_tell(n, f);
}

void
names_tell_file(const char *path, struct findings *f)
{
	struct names_object o = { .is_main = true };
	char               *real = realpath(path, NULL);

	o.path = real;
	if (!real)
		return;
	o.sources = sources_of_file(real, o.build_id);
	if (!(o.sources & SOURCES_NO_FILE))
		object_tell(&o, 0, f);
	free(real);
}

void
names_release(struct names *n)
{
	for (size_t i = 0; i < n->count; i++)
		free(n->objects[i].path);
	free(n->objects);
	*n = (struct names){ .objects = NULL };
}
