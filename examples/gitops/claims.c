/*
 * claims.c - which application has which source and which target.
 *
 * Targets of two applications must not overlap, or pruning one would take files of
 * the other: the first to claim a target has it until it drops it.  The others are
 * remembered as waiting, so that they can be looked at again then.  Whoever waits for another target
 * than it has keeps that one: its last good version stays in force.  Whoever moves has both until it is
 * at the new one.
 *
 * A list is enough: it is walked once for each event, and an application is some
 * thousand times the work.
 *
 * Tests: tests/examples/test_gitops.c.
 */
#include "gitops.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gitops_claim {
	struct gitops_claim *next;
	bool waiting; /* for a target that is another's */
	unsigned stale;
	char key[GITOPS_PATH_MAX];
	char source[GITOPS_PATH_MAX], target[GITOPS_PATH_MAX]; /* in force; target "": none so far */
	char at[GITOPS_PATH_MAX]; /* the target that has its files, or its operation; "": none so far */
};

static bool
overlap(const char *a, const char *b)
{
	return gitops_path_below(a, b) || gitops_path_below(b, a);
}

/* The path of a claim that overlaps target; NULL: none does. */
static const char *
in_the_way(const struct gitops_claim *claim, const char *target)
{
	if (*claim->target != '\0' && overlap(claim->target, target))
		return claim->target;
	return *claim->at != '\0' && overlap(claim->at, target) ? claim->at : NULL;
}

/* Its file has gone, so it will be dropped in a moment, and who waits is told. */
static bool
is_leaving(const char *root, const char *key)
{
	struct gitops_file file;

	return root != NULL && gitops_file_look(root, key, &file) == -ENOENT;
}

int
gitops_claim(struct gitops_claims *c, const char *key, const char *source, const char *target, const char *root,
	struct component_error *err)
{
	struct gitops_claim *claim, *own = NULL, *other = NULL;
	char owner[GITOPS_PATH_MAX] = "";
	int r = -ENOMEM;

	pthread_mutex_lock(&c->mutex);
	for (claim = c->first; claim != NULL; claim = claim->next) {
		if (strcmp(claim->key, key) == 0)
			own = claim;
		else if (in_the_way(claim, target) != NULL)
			other = claim;
	}
	if (own == NULL) {
		own = calloc(1, sizeof *own);
		if (own == NULL)
			goto out;
		snprintf(own->key, sizeof own->key, "%s", key);
		snprintf(own->source, sizeof own->source, "%s", source);
		own->next = c->first;
		c->first = own;
	}
	own->waiting = other != NULL;
	if (other != NULL) {
		component_error_set(err, "target: '%s' belongs to %s, which has '%s'; choose another", target, other->key,
			in_the_way(other, target));
		memcpy(owner, other->key, sizeof owner);
		r = -EEXIST;
		goto out;
	}
	r = *own->target != '\0' && strcmp(own->target, target) != 0;
	snprintf(own->source, sizeof own->source, "%s", source);
	snprintf(own->target, sizeof own->target, "%s", target);

out:
	pthread_mutex_unlock(&c->mutex);
	return r == -EEXIST && is_leaving(root, owner) ? -EINPROGRESS : r;
}

bool
gitops_claim_at(struct gitops_claims *c, const char *key, const char *target)
{
	bool left = false;

	pthread_mutex_lock(&c->mutex);
	for (struct gitops_claim *claim = c->first; claim != NULL; claim = claim->next) {
		if (strcmp(claim->key, key) != 0 || *claim->target == '\0')
			continue; /* who has none keeps it from nobody */
		left = *claim->at != '\0' && strcmp(claim->at, target) != 0;
		snprintf(claim->at, sizeof claim->at, "%s", target);
	}
	pthread_mutex_unlock(&c->mutex);
	return left;
}

void
gitops_claim_drop(struct gitops_claims *c, const char *key)
{
	struct gitops_claim **at, *claim;

	pthread_mutex_lock(&c->mutex);
	for (at = &c->first; (claim = *at) != NULL; ) {
		if (strcmp(claim->key, key) != 0) {
			at = &claim->next;
			continue;
		}
		*at = claim->next;
		free(claim);
	}
	pthread_mutex_unlock(&c->mutex);
}

unsigned
gitops_claim_stale(struct gitops_claims *c, const char *key, bool stale)
{
	unsigned times = 0;

	pthread_mutex_lock(&c->mutex);
	for (struct gitops_claim *claim = c->first; claim != NULL; claim = claim->next)
		if (strcmp(claim->key, key) == 0)
			times = claim->stale = stale ? claim->stale + 1 : 0;
	pthread_mutex_unlock(&c->mutex);
	return times;
}

int64_t
gitops_stale_ns(int64_t first_ns, unsigned times)
{
	return first_ns << (times > 9 ? 8 : times > 0 ? times - 1 : 0);
}

void
gitops_claims_tell(struct gitops_claims *c, enum gitops_claims_of of, const char *path,
	struct component_controller *controller)
{
	pthread_mutex_lock(&c->mutex);
	for (struct gitops_claim *claim = c->first; claim != NULL; claim = claim->next)
		if (of == GITOPS_ALL || (of == GITOPS_WAITING && claim->waiting) ||
				(of == GITOPS_SOURCE && gitops_path_below(path, claim->source)) ||
				(of == GITOPS_TARGET && *claim->target != '\0' && gitops_path_below(path, claim->target)))
			component_controller_enqueue(controller, claim->key);
	pthread_mutex_unlock(&c->mutex);
}

void
gitops_made_tell(const char *root, const char *from, const char *to, struct component_controller *controller)
{
	struct gitops_files files = { 0 };
	char key[GITOPS_PATH_MAX];

	gitops_tree_list(root, "", &files, NULL);
	for (size_t i = 0; i < files.count; i++)
		if (gitops_suffix(key, files.items[i].path, from, to))
			component_controller_enqueue(controller, key);
	gitops_files_free(&files);
}

int
gitops_claims_load(struct gitops_claims *c, const char *root, struct component_error *err)
{
	struct gitops_files files = { 0 };
	struct gitops_document d;
	int r = gitops_tree_list(root, "", &files, err);

	for (size_t i = 0; r == 0 && i < files.count; i++) {
		if (gitops_document_read(root, files.items[i].path, &d, NULL) != 0)
			continue; /* whoever needs it will say what is wrong with it */
		r = gitops_claim(c, gitops_document_get(&d, "application"), gitops_document_get(&d, "source"),
			gitops_document_get(&d, "target"), NULL, err);
		if (r == 0)
			gitops_claim_at(c, gitops_document_get(&d, "application"), gitops_document_get(&d, "target"));
		r = r == -ENOMEM ? r : 0;
		gitops_document_free(&d);
	}
	gitops_files_free(&files);
	return r;
}
