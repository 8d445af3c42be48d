/*
 * cluster-agent.c - carries operations out: targets become what they should be.
 *
 *     operations/dev/shop.operation -- operations --+--> targets/...
 *     sources/...  --------------------/            +--> managed/dev/shop.managed
 *     targets/... changed by hand ---- drift -------+--> status/dev/shop.sync
 *
 * How a target is brought to hold the operation's files, so that neither a reader
 * nor a kill -9 ever sees half of one, is in gitops/sync.c.
 *
 * What a stranger would get wrong: our own writes are drift events too.  They lead
 * to one more look at the files, which finds nothing to do and so ends.
 *
 * Tests: tests/examples/controllers.t.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <component/controller.h>
#include <component/ports.h>

#include "gitops/gitops.h"

/* How long the backend-controller has to notice that a source has changed, ns, at first. */
#define STALE_NS COMPONENT_MILLISECONDS(500)

static struct gitops_directories dirs = { .root = GITOPS_ROOT, .sources = "", .operations = "", .targets = "",
	.managed = "", .status = "", .locks = "" };
static struct gitops_claims claims = GITOPS_CLAIMS_INIT;
static struct component_controller *controllers[2];
#define OPERATIONS controllers[0]

static const struct component_flag flags[] = {
	GITOPS_ROOT_FLAGS(dirs),
	GITOPS_DIRECTORY("sources-dir", &dirs.sources, "Files as they should be; empty: ROOT/sources."),
	GITOPS_DIRECTORY("operations-dir", &dirs.operations, "Operations to carry out; empty: ROOT/operations."),
	GITOPS_DIRECTORY("targets-dir", &dirs.targets, "Files as they are; empty: ROOT/targets."),
	GITOPS_DIRECTORY("managed-dir", &dirs.managed, "Lists of what was put there; empty: ROOT/managed."),
	GITOPS_DIRECTORY("status-dir", &dirs.status, "Where status goes; empty: ROOT/status."),
	COMPONENT_FLAG_END
};

/* The operation has gone: so does what it has brought, if it said so. */
static int
withdraw(struct gitops_sync *s, const char *status_path)
{
	int r = gitops_sync_withdraw(s);

	if (r == 0 && gitops_file_remove(dirs.status, status_path) != 0) {
		component_error_set(s->err, "cannot remove '%s'", status_path);
		r = -EIO;
	}
	if (r == 0) {
		gitops_claim_drop(&claims, s->key);
		gitops_claims_tell(&claims, GITOPS_WAITING, "", OPERATIONS);
	}
	return r;
}

/* "since" is when it came to be so: the same state written again keeps it. */
static int
status_write(struct component *c, struct gitops_sync *s, const char *status_path, bool in_sync)
{
	const char *revision = gitops_document_get(&s->operation, "revision"), *state = in_sync ? "in-sync" : "out-of-sync";
	struct gitops_document old = { 0 };
	char since[32];
	bool same;
	int r;

	gitops_document_read(dirs.status, status_path, &old, NULL);
	same = s->changed == 0 && strcmp(gitops_document_get(&old, "state"), state) == 0 &&
	       strcmp(gitops_document_get(&old, "revision"), revision) == 0;
	snprintf(since, sizeof since, "%lld", (long long)gitops_now_ms());
	r = gitops_document_write(dirs.status, status_path, false, NULL, s->err, "state", state, "revision", revision,
		"since_ms", same ? gitops_document_get(&old, "since_ms") : since,
		"reason", in_sync ? "" : s->err->text, NULL);
	if (r == 0 && !same && in_sync)
		component_log(c, COMPONENT_LOG_INFO, "in sync", COMPONENT_KV("operation", s->key), COMPONENT_KV("revision", revision));
	gitops_document_free(&old);
	return r;
}

/* An old target is free when nothing of ours is there any more, and not before. */
static int
claim_and_apply(struct gitops_sync *s)
{
	bool left = gitops_claim_at(&claims, s->key, gitops_document_get(&s->managed, "target"));
	int r = gitops_claim(&claims, s->key, s->source, s->target, dirs.operations, s->err);

	left |= r > 0;
	if (r >= 0)
		r = gitops_sync_apply(s);
	if (r == 0)
		left |= gitops_claim_at(&claims, s->key, s->target);
	if (left)
		gitops_claims_tell(&claims, GITOPS_WAITING, "", OPERATIONS);
	return r;
}

/* Carries the operation out, if it is one, and says so in the status. */
static int
carry_out(struct component *c, struct gitops_sync *s, const char *status_path, int64_t *ret_interval_ns)
{
	const struct gitops_document *d = &s->operation;
	int r;

	s->source = gitops_document_get(d, "source");
	s->target = gitops_document_get(d, "target");
	s->prune = gitops_document_get(d, "prune");
	*ret_interval_ns = gitops_interval_ns(gitops_document_get(d, "interval"));
	r = gitops_path_check(s->source, s->err);
	if (r == 0)
		r = gitops_path_check(s->target, s->err);
	if (r == 0 && (*ret_interval_ns == 0 || strtoull(gitops_document_get(d, "count"), NULL, 10) != d->files.count)) {
		component_error_set(s->err, "not a whole operation; the backend-controller writes them");
		r = -EINVAL;
	}
	if (r == 0)
		r = claim_and_apply(s);
	if (r != -ECANCELED && r != -EINPROGRESS && status_write(c, s, status_path, r == 0) != 0)
		r = -EIO;
	return r;
}

static void
operation_reconcile(struct component *c, const char *key, struct component_result *ret, void *arg)
{
	struct gitops_sync s = { .key = key, .sources = dirs.sources, .targets = dirs.targets, .managed_root = dirs.managed,
		.err = &ret->error };
	char status_path[GITOPS_PATH_MAX];
	int r;

	(void)arg;
	if (!gitops_suffix(s.managed_path, key, ".operation", ".managed") ||
			!gitops_suffix(status_path, key, ".operation", ".sync"))
		return;
	r = gitops_sync_begin(&s);
	if (r == 0)
		r = gitops_document_read(dirs.operations, key, &s.operation, &ret->error);
	ret->after_ns = STALE_NS;
	if (r == -ENOENT) {
		r = withdraw(&s, status_path);
		ret->outcome = r == 0 ? COMPONENT_DONE : COMPONENT_ERROR;
	} else {
		if (r == 0)
			r = carry_out(c, &s, status_path, &ret->after_ns);
		if (r == -EINPROGRESS)
			ret->outcome = COMPONENT_DONE; /* it is told when the other one is withdrawn, in a second */
		else if (r == 0 || r == -ESTALE)
			ret->outcome = COMPONENT_AFTER;
		else
			ret->outcome = r == -EINVAL ? COMPONENT_TERMINAL : COMPONENT_ERROR;
	}
	if (r == -ECANCELED)
		ret->outcome = COMPONENT_AFTER; /* stopping: the next start does it */
	if (r == -ESTALE || r == 0)
		r = (int)gitops_claim_stale(&claims, key, r == -ESTALE);
	if (r > 0)
		ret->after_ns = gitops_stale_ns(STALE_NS, (unsigned)r);
	gitops_sync_end(&s);
}

static bool
operation_accept(char *key, size_t size, void *arg)
{
	char other[GITOPS_PATH_MAX];

	(void)size;
	(void)arg;
	return !gitops_is_partial(key) && gitops_suffix(other, key, ".operation", ".managed");
}

static bool
drift_accept(char *key, size_t size, void *arg)
{
	(void)size;
	(void)arg;
	return !gitops_is_partial(key);
}

/* Something below targets/ has changed: who is to look at it? */
static void
drift_reconcile(struct component *c, const char *key, struct component_result *ret, void *arg)
{
	(void)c;
	(void)ret;
	(void)arg;
	gitops_claims_tell(&claims, GITOPS_TARGET, key, OPERATIONS);
}

static struct component_controller_spec operation_spec = { .size = sizeof operation_spec, .name = "operations",
	.accept = operation_accept, .reconcile = operation_reconcile };
static struct component_controller_spec drift_spec = { .size = sizeof drift_spec, .name = "drift",
	.accept = drift_accept, .reconcile = drift_reconcile };
static const struct component_controller_spec *const specs[] = { &operation_spec, &drift_spec };

static int
begin(struct component *c, struct component_error *err)
{
	int r;

	operation_spec.directory = dirs.operations;
	drift_spec.directory = dirs.targets;
	r = gitops_claims_load(&claims, dirs.managed, err); /* operations may have gone while nobody looked */
	if (r == 0)
		r = component_controllers_start(c, specs, 2, controllers, err);
	if (r == 0) {
		gitops_claims_tell(&claims, GITOPS_ALL, "", OPERATIONS);
		gitops_made_tell(dirs.status, ".sync", ".operation", OPERATIONS);
	}
	return r;
}

static int
start(struct component *c, struct component_error *err)
{
	return gitops_begin(c, &dirs, begin, err);
}

static int
check(struct component *c, struct component_error *err)
{
	int r = component_controllers_check(c, specs, 2, err);

	return gitops_directories_check(c, &dirs, err) < 0 ? -EINVAL : r;
}

int
main(int argc, char **argv)
{
	struct component_spec spec = COMPONENT_SPEC(.name = "cluster-agent", .version = "1.0", .flags = flags,
		.start = start, .stop = gitops_stop, .check = check, .parts = (component_part_fn *const[]){ component_controllers, NULL });

	spec.summary = component_ports_find(spec.name)->summary;
	return component_main(&spec, argc, argv);
}
