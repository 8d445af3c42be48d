/*
 * family.c - a program's processes, a master and its workers, as one target.
 *
 *     record_find() ──▶ records of that id ──▶ fetch_each() ──▶ read_profile() each, with a label ──▶ merge_profiles()
 *                                                                                   │
 *                              what one server would have sent ◀── write_profile() ◀┘
 *
 * What a stranger would get wrong:
 *  - An id means all that have it, also where the master has gone, and so does the PID of the one that the id means.
 *    Another PID means that process and those below it.
 *  - Durations are not added, as go tool pprof does: they were all measured in one window.
 *
 * Tests: tests/componentctl/children.t
 */
#include <config.h>

#include "family.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "merge.h"
#include "our_fd.h"
#include "proc_status.h"
#include "read.h"
#include "write.h"

#define COMMENTS_MAX 1000 /* of a profile, which are looked at */

static const struct record *
record_of(const struct records *all, pid_t pid)
{
	for (size_t i = 0; i < all->count; i++)
		if (all->items[i].pid == pid)
			return &all->items[i];
	return NULL;
}

/* By its parents, of which there are no more than records: in those that lie they may go round. */
static bool
leads_to(const struct records *all, const struct record *r, pid_t pid)
{
	for (size_t i = 0; i <= all->count && r; i++) {
		if (r->pid == pid)
			return true;
		r = record_of(all, r->parent);
	}
	return false;
}

/* The first number of that line of its status; -1: it is not to be had. */
static long
number_of(pid_t pid, const char *key)
{
	char path[32], value[PROC_STATUS_BYTES];

	snprintf(path, sizeof(path), "/proc/%ld/status", (long)pid);
	return proc_status_find(our_fd_open(path, O_RDONLY, 0), key, value) ? strtol(value, NULL, 10) : -1;
}

/* A record may say any id and any parent, and root reads those of all: it counts if it is of the head's user, or of a process
 * that the head or one of its has made. */
static bool
is_related(pid_t pid, pid_t head)
{
	long up = pid;

	if (number_of(pid, "\nUid:") == number_of(head, "\nUid:"))
		return true;
	while (up > 1 && up != head)
		up = number_of((pid_t)up, "\nPPid:");
	return up == head;
}

int
family_find(const char *id_or_pid, struct records *ret, struct component_error *err)
{
	struct record  head, meant;
	struct records all;
	bool           is_whole;
	int            r = record_find(id_or_pid, &head, err);

	*ret = (struct records){ .items = NULL };
	if (r < 0)
		return r;
	is_whole = !record_find(head.id, &meant, NULL) && meant.pid == head.pid;
	r = records_read(&all);
	if (!r && all.count)
		ret->items = calloc(all.count, sizeof(*ret->items));
	if (!r && !ret->items)
		r = -ENOMEM;
	for (size_t i = 0; i < all.count && !r; i++)
		if (!strcmp(all.items[i].id, head.id) && (is_whole || leads_to(&all, &all.items[i], head.pid)) &&
			is_related(all.items[i].pid, head.pid))
			ret->items[ret->count++] = all.items[i];
	records_release(&all);
	return r;
}

/* A process of the family. */
struct member {
	struct target target;
	struct pprof  p;
	bool          is_read;
	bool          is_part; /* it went away, and p is its last checkpoint */
};

struct family {
	size_t           count;
	struct member   *members;
	struct fetching *fetching; /* of each member */
};

static int
label_samples(struct pprof *p, pid_t pid)
{
	char number[24];
	int  r = 0;

	snprintf(number, sizeof(number), "%ld", (long)pid);
	for (size_t i = 0; i < p->sample_count && !r; i++)
		r = read_label_add(p, &p->samples[i], FAMILY_LABEL, number);
	return r;
}

/* NULL without memory. */
static const char *
joined(struct pprof *p, const char *before, const char *text)
{
	size_t size = strlen(before) + strlen(text) + 1;
	char  *both = arena_alloc(&p->arena, size);

	if (both)
		snprintf(both, size, "%s%s", before, text);
	return both;
}

static bool
says(const struct pprof *p, const char *comment)
{
	for (size_t i = 0; i < p->comment_count && i < COMMENTS_MAX; i++)
		if (!strcmp(p->comments[i], comment))
			return true;
	return false;
}

static bool
all_say(const struct family *f, const char *comment)
{
	for (size_t i = 0; i < f->count; i++)
		if (!f->fetching[i].result && !says(&f->members[i].p, comment))
			return false;
	return true;
}

/* What not all say is told with whose it is, and the '#' that keeps a comment out of tables. */
static int
tell_apart(const struct family *f)
{
	char whose[40];

	for (size_t i = 0; i < f->count; i++) {
		struct pprof *p = &f->members[i].p;

		snprintf(whose, sizeof(whose), "#process %ld: ", (long)f->members[i].target.process);
		for (size_t k = 0; !f->fetching[i].result && k < p->comment_count && k < COMMENTS_MAX; k++) {
			if (!all_say(f, p->comments[k]))
				p->comments[k] = joined(p, whose, p->comments[k]);
			if (!p->comments[k])
				return -ENOMEM;
		}
	}
	return 0;
}

/* An answer as a profile; what is none has a sentence then. */
static void
member_read(struct member *m, struct fetching *f, const char *kind)
{
	struct component_error why = COMPONENT_ERROR_INIT;

	if (f->result < 0 && f->result != -EPIPE)
		return;
	m->is_read = true;
	if (read_profile(f->fetched.data, f->fetched.size, &m->p, &why) < 0) {
		if (f->result != -EPIPE)
			component_error_set(&f->err, "%s: the answer for '%s' %s", m->target.word, kind, why.text);
		f->result = f->result < 0 ? f->result : -EBADMSG;
	} else if (label_samples(&m->p, m->target.process) < 0) {
		component_error_set(&f->err, "%s: there is not enough memory for its profile", m->target.word);
		f->result = -ENOMEM;
	} else {
		m->is_part = f->result == -EPIPE && f->fetched.has_checkpoints;
		f->result = 0; /* a server that went away behind a whole profile */
	}
	fetch_release(&f->fetched);
}

static void
family_read(struct family *f, const char *kind)
{
	for (size_t i = 0; i < f->count; i++)
		member_read(&f->members[i], &f->fetching[i], kind);
}

/* Of all of them, and of those left out. */
static int
add_comments(const struct family *f, struct pprof *p, size_t answered)
{
	const char **comments = arena_array(&p->arena, p->comment_count + f->count + 1, sizeof(*comments));
	char         number[24];
	size_t       n = p->comment_count;

	if (!comments)
		return -ENOMEM;
	if (n)
		memcpy(comments, p->comments, n * sizeof(*comments));
	snprintf(number, sizeof(number), "%zu", answered);
	comments[n++] = joined(p, "processes, whose numbers are the label '" FAMILY_LABEL "': ", number);
	for (size_t i = 0; i < f->count && comments[n - 1]; i++)
		if (f->fetching[i].result)
			comments[n++] = joined(p, "left out: ", f->fetching[i].err.text);
	p->comments = comments;
	p->comment_count = n;
	return comments[n - 1] ? 0 : -ENOMEM;
}

static int
merge(const struct family *f, const struct merge_source *sources, size_t count, struct fetched *ret, struct component_error *err)
{
	struct pprof p;
	int          r = merge_profiles(sources, count, &p, err);

	for (size_t i = 0; i < count && !r; i++)
		if (!i || sources[i].p->duration_ns > p.duration_ns)
			p.duration_ns = sources[i].p->duration_ns;
	if (!r)
		r = add_comments(f, &p, count);
	if (!r)
		r = write_profile(&p, fetch_add, ret);
	for (size_t i = 0; i < f->count && !r; i++)
		if (f->fetching[i].result)
			fprintf(stderr, "Left out: %s\n", f->fetching[i].err.text);
		else if (f->members[i].is_part)
			fprintf(stderr, FETCH_KEPT, f->fetching[i].err.text, (double)f->members[i].p.duration_ns / 1e9);
	if (r < 0 && !*err->text)
		component_error_set(err, "the profiles of %zu processes cannot be written as one: %s", count, strerror(-r));
	read_release(&p);
	return r;
}

/* Of those that have answered. */
static int
family_merge(const struct family *f, struct fetched *ret, struct component_error *err)
{
	struct merge_source *sources = calloc(f->count, sizeof(*sources));
	size_t               count = 0;
	int                  r = sources ? tell_apart(f) : -ENOMEM;

	for (size_t i = 0; i < f->count && !r; i++)
		if (!f->fetching[i].result)
			sources[count++] = (struct merge_source){ &f->members[i].p, 1, false };
	if (count) {
		r = merge(f, sources, count, ret, err);
	} else if (!r) {
		r = f->fetching[0].result;
		component_error_set(err, "none of %zu processes has answered; %s", f->count, f->fetching[0].err.text);
	}
	free(sources);
	return r;
}

int
family_fetch(const struct records *family, const char *kind, const char *query, int64_t seconds, const char *token,
	struct fetched *ret, struct component_error *err)
{
	struct family f = { family->count, calloc(family->count, sizeof(*f.members)), calloc(family->count, sizeof(*f.fetching)) };
	int           r = f.members && f.fetching ? 0 : -ENOMEM;

	*ret = (struct fetched){ .data = NULL };
	for (size_t i = 0; i < f.count && !r; i++) {
		char word[32];

		snprintf(word, sizeof(word), "process %ld", (long)family->items[i].pid);
		f.fetching[i].target = &f.members[i].target;
		f.fetching[i].result = target_of_record(&f.members[i].target, word, &family->items[i], &f.fetching[i].err);
	}
	fetch_many_files(); /* a socket each */
	if (!r)
		r = fetch_each(f.fetching, f.count, kind, query, seconds, true, token, err);
	if (!r) {
		family_read(&f, kind);
		r = family_merge(&f, ret, err);
	}
	for (size_t i = 0; i < f.count && f.members && f.fetching; i++) {
		fetch_release(&f.fetching[i].fetched);
		if (f.members[i].is_read)
			read_release(&f.members[i].p);
	}
	free(f.members);
	free(f.fetching);
	return r;
}
