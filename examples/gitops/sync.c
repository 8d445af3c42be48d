/*
 * sync.c - a target holds an operation's files, and nothing of ours besides.
 *
 *     find out --> compare --> prune --> note what will be written --> write --> note it
 *
 * managed/ says which files are ours, and is written before a file is touched and
 * again after: a kill -9 in between leaves files marked "intended" and "complete:
 * false", upon which the next run finds out whether they came to be.  Only what we
 * have written is ever removed: managed/ does not name a file that was there and right.
 *
 * What a stranger would get wrong: pruning comes first, so that a path can turn
 * from a file into a directory; and a file whose source has moved on since the
 * operation was written is left as it is, while the others are brought up to date.
 *
 * Tests: tests/examples/controllers.t.
 */
#include "gitops.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int
managed_write(struct gitops_sync *s, const struct gitops_files *files, const char *complete)
{
	return gitops_document_write(s->managed_root, s->managed_path, true, files, s->err, "application", s->key,
		"target", s->target, "prune", s->prune, "complete", complete, NULL);
}

/* Removes a file that is ours; one that was only intended never came to be. */
static int
prune_file(struct gitops_sync *s, const char *target, const struct gitops_file *file)
{
	struct gitops_file now = { 0 };
	char path[GITOPS_PATH_MAX];
	int r = gitops_path_join(path, target, file->path, s->err);

	if (r != 0)
		return r;
	if (file->intended || gitops_file_look(s->targets, path, &now) == -ENOENT)
		return 0;
	r = gitops_file_remove(s->targets, path);
	s->changed += r == 0;
	if (r != 0 && r != -ENOTDIR && r != -ELOOP && r != -EISDIR) {
		component_error_set(s->err, "cannot remove '%s': %s", path, strerror(-r));
		return r;
	}
	return 0; /* what is there now is not ours */
}

/* Removes what is ours and not in KEEP, below the target it was written to. */
static int
prune(struct gitops_sync *s, const struct gitops_files *keep)
{
	const char *target = gitops_document_get(&s->managed, "target");
	int r = 0;

	for (size_t i = 0; r == 0 && i < s->managed.files.count; i++)
		if (!gitops_go_on(0))
			r = -ECANCELED;
		else if (keep == NULL || gitops_files_find(keep, s->managed.files.items[i].path) == NULL)
			r = prune_file(s, target, &s->managed.files.items[i]);
	return r;
}

int
gitops_sync_withdraw(struct gitops_sync *s)
{
	int r = strcmp(gitops_document_get(&s->managed, "prune"), "true") == 0 ? prune(s, NULL) : 0;

	if (r != 0)
		return r;
	r = gitops_file_remove(s->managed_root, s->managed_path);
	if (r != 0)
		component_error_set(s->err, "cannot remove '%s': %s", s->managed_path, strerror(-r));
	return r;
}

static int
copy(struct gitops_sync *s, const struct gitops_file *want)
{
	char from[GITOPS_PATH_MAX], to[GITOPS_PATH_MAX];
	int r = gitops_path_join(from, s->source, want->path, s->err);

	if (r == 0)
		r = gitops_path_join(to, s->target, want->path, s->err);
	if (r == 0)
		r = gitops_file_copy(s->sources, from, s->targets, to, want, s->err);
	s->changed += r == 0;
	return r;
}

/* What managed/ is to say: the operation's files that are ours or WRONG, so that we write them, and old ones that stay. */
static int
managed_merge(struct gitops_sync *s, const bool *wrong, bool is_written, struct gitops_files *ret)
{
	const struct gitops_files *wanted = &s->operation.files, *old = &s->managed.files;
	bool stay = strcmp(s->prune, "true") != 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < wanted->count; i++) {
		struct gitops_file file = wanted->items[i], *had = gitops_files_find(old, file.path);
		bool ours = had != NULL && !had->intended;

		file.intended = !ours && !is_written;
		if (ours || wrong[i]) /* else somebody else has put it there */
			r = gitops_files_add(ret, &file);
	}
	for (size_t i = 0; r == 0 && stay && i < old->count; i++)
		if (gitops_files_find(wanted, old->items[i].path) == NULL)
			r = gitops_files_add(ret, &old->items[i]);
	gitops_files_sort(ret);
	return r;
}

/* Prunes, notes what will be written, writes it, notes that it is. */
static int
apply(struct gitops_sync *s, const bool *wrong, size_t wrong_count)
{
	struct gitops_files before = { 0 }, after = { 0 };
	bool moved = strcmp(gitops_document_get(&s->managed, "target"), s->target) != 0;
	int r = 0, stale = 0;

	if (strcmp(s->prune, "true") == 0)
		r = prune(s, moved ? NULL : &s->operation.files);
	if (moved)
		gitops_files_free(&s->managed.files);
	if (r == 0)
		r = managed_merge(s, wrong, false, &before);
	if (r == 0 && wrong_count > 0)
		r = managed_write(s, &before, "false");
	for (size_t i = 0; r == 0 && i < s->operation.files.count; i++) {
		if (wrong[i])
			r = copy(s, &s->operation.files.items[i]);
		if (r == -ESTALE) { /* the others can be brought up to date all the same */
			stale = r;
			r = 0;
		}
	}
	if (r == 0 && stale == 0)
		r = managed_merge(s, wrong, true, &after);
	if (r == 0 && stale == 0)
		r = managed_write(s, &after, "true");
	gitops_files_free(&before);
	gitops_files_free(&after);
	return r != 0 ? r : stale;
}

int
gitops_sync_apply(struct gitops_sync *s)
{
	bool *wrong = calloc(s->operation.files.count + 1, sizeof *wrong);
	size_t count;
	int r = wrong == NULL ? -ENOMEM : gitops_tree_compare(s->targets, s->target, &s->operation.files, wrong, &count,
		s->err);

	if (r == 0)
		r = apply(s, wrong, count);
	free(wrong);
	return r;
}

/* After a kill -9, or a stop in the middle, it has to be found out which of the files that were intended are ours
 * now.  This must come before anything else is intended for them: later nobody knows
 * what we wrote. */
static int
find_out(struct gitops_sync *s)
{
	const char *target = gitops_document_get(&s->managed, "target");
	char path[GITOPS_PATH_MAX];
	int r = 0;

	if (strcmp(gitops_document_get(&s->managed, "complete"), "false") != 0)
		return 0;
	for (size_t i = 0; r != -ECANCELED && i < s->managed.files.count; i++) {
		struct gitops_file *file = &s->managed.files.items[i], now = { 0 };

		if (!file->intended || gitops_path_join(path, target, file->path, NULL) != 0)
			continue;
		r = gitops_file_look(s->targets, path, &now);
		if (r == 0 && now.mode == file->mode && strcmp(now.hash, file->hash) == 0)
			file->intended = false;
	}
	return r == -ECANCELED ? r : 0;
}

int
gitops_sync_begin(struct gitops_sync *s)
{
	int r = gitops_document_read(s->managed_root, s->managed_path, &s->managed, s->err);

	if (r == 0)
		r = find_out(s);
	/* Without knowing what is ours nothing is touched. */
	return r == 0 || r == -ENOENT ? 0 : r == -ECANCELED ? r : -EIO;
}

void
gitops_sync_end(struct gitops_sync *s)
{
	gitops_document_free(&s->managed);
	gitops_document_free(&s->operation);
}
