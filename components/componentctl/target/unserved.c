/*
 * unserved.c - a process that serves no profiles, looked at from outside.
 *
 *     outside_cpu() ──▶ struct profile ──▶ encode_pprof() ──▶ what a server would have sent
 *
 * What a stranger would get wrong:
 * - The first interrupt (Ctrl-C) ends the window early, and what was measured until then is kept.
 * - A process that ends meanwhile, or begins another program, takes its list of mappings along.  Names are those of
 *   the list at the beginning then.
 * - Where an object has taken another's place within the window, nobody knows which of the two a sample ran through.
 *
 * Tests: tests/componentctl/outside.t
 */
#include <config.h>

#include "unserved.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bar.h"
#include "encode.h"
#include "generations.h"
#include "outside.h"
#include "stack_table.h"
#include "symbols.h"

#define SYMBOLS_BYTES ((size_t)1 << 30) /* of tables: the tool's own memory */

static volatile sig_atomic_t interrupted;

static void
on_interrupt(int number)
{
	(void)number;
	interrupted = 1;
}

static bool
go_on(void *bar, int64_t done_ns)
{
	(void)done_ns;
	bar_show(bar, "");
	return !interrupted;
}

int
unserved_begin(pid_t pid, bool says_so, struct component_error *err)
{
	static bool begun; /* for the windows of a command that takes many */
	int         r = begun ? 0 : outside_begin(pid, err);

	/* Each of its threads takes a descriptor for each processor. */
	if (!begun)
		fetch_many_files();
	if (!r && !begun && says_so)
		fprintf(stderr, "Process %d serves no profiles; it is looked at from outside.\n", (int)pid);
	begun = r == 0;
	return r;
}

/* Closes s; gives an error that has no sentence one. */
static int
ended(struct symbols *s, int r, struct component_error *err)
{
	symbols_close(s);
	if (r < 0 && !*err->text)
		component_error_set(err, "what was measured cannot be written: %s", strerror(-r));
	return r;
}

static bool
has_another(const struct symbols *before, const struct symbols *after, uintptr_t pc)
{
	int                          i = symbols_mapping_find(before, pc), k = symbols_mapping_find(after, pc);
	const struct symbol_mapping *was, *is;

	if (i < 0 || k < 0)
		return false;
	was = symbols_mapping(before, (size_t)i);
	is = symbols_mapping(after, (size_t)k);
	if (*was->path == '[' || *is->path == '[') /* made at run time, or the kernel's: it has no place in a file */
		return strcmp(was->path, is->path) != 0;
	if (was->start - was->offset != is->start - is->offset)
		return true;
	/* A file may get another name meanwhile. */
	return *was->build_id && *is->build_id ? strcmp(was->build_id, is->build_id) != 0 : strcmp(was->path, is->path) != 0;
}

/* Addresses where another object was before get a tag that no object has: their number is their name. */
static void
leave_unnamed(struct profile *p, const struct symbols *before, const struct symbols *after)
{
	for (size_t i = 0; i < p->count; i++) {
		uintptr_t        pcs[STACK_FRAMES_MAX];
		uint32_t         stack = p->samples[i].stack;
		unsigned         n, found = 0;
		const uintptr_t *known = stack_table_pcs(stack, &n);

		for (unsigned k = 0; k < n; k++) {
			bool unnamed = has_another(before, after, known[k]);

			pcs[k] = unnamed ? known[k] | (uintptr_t)GENERATIONS_TAG_MAX << GENERATIONS_PC_BITS : known[k];
			found += unnamed;
		}
		if (!found)
			continue;
		p->samples[i].stack = stack_table_add(pcs, n);
		stack_table_unref(stack);
	}
}

int
unserved_refuse(pid_t pid, const char *what, struct component_error *err)
{
	component_error_set(err, "process %d serves no profiles, and from outside there is no '%.100s'; write 'componentctl profile "
		"%d' for its CPU time, 'componentctl dump %d' for its threads, or start it by 'componentctl run'", (int)pid, what,
		(int)pid, (int)pid);
	return -EINVAL;
}

int
unserved_profile(pid_t pid, const char *kind, int64_t seconds, bool shows_bar, struct fetched *ret, struct component_error *err)
{
	struct sigaction before, now = { .sa_handler = on_interrupt };
	struct symbols  *before_it = NULL, *s = NULL;
	struct profile   p;
	struct bar       bar;
	bool             is_over;
	int              r;

	*ret = (struct fetched){ .data = NULL };
	if (strcmp(kind, "profile"))
		return unserved_refuse(pid, kind, err);
	r = unserved_begin(pid, true, err);
	if (r < 0)
		return r;
	r = symbols_open(SYMBOLS_BYTES, &before_it);
	if (r < 0)
		return ended(NULL, r, err);
	sigaction(SIGINT, &now, &before);
	bar_begin(&bar, shows_bar ? seconds : 0);
	r = outside_cpu(seconds * 1000000000, go_on, &bar, &p, &is_over, err);
	bar_end(&bar);
	sigaction(SIGINT, &before, NULL);
	if (r < 0)
		return ended(before_it, r, err);
	r = symbols_open(SYMBOLS_BYTES, &s);
	if (!r && !is_over)
		leave_unnamed(&p, before_it, s);
	if (!r)
		r = encode_pprof(&p, is_over || !symbols_mapping_count(s) ? before_it : s, fetch_add, ret);
	symbols_close(before_it);
	profile_release(&p);
	return ended(s, r, err);
}

int
unserved_dump(pid_t pid, struct fetched *ret, struct component_error *err)
{
	struct symbols *s = NULL;
	struct dump     d;
	int             r = unserved_begin(pid, true, err);

	*ret = (struct fetched){ .data = NULL };
	if (r < 0)
		return r;
	r = outside_dump(&d, err);
	if (r < 0)
		return ended(NULL, r, err);
	r = symbols_open(SYMBOLS_BYTES, &s);
	if (!r)
		r = encode_panic(&d, s, fetch_add, ret);
	dump_release(&d);
	return ended(s, r, err);
}
