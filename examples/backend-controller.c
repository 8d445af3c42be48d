/*
 * backend-controller.c - application files in, operations out.
 *
 *     applications/dev/shop.yaml --+                  +--> operations/dev/shop.operation
 *                                  +-- applications --+
 *     sources/shop/... -- sources -+                  +--> status/dev/shop.application
 *
 * An operation says which files a target is to hold, with the hash of each, so that what is carried
 * out is what was looked at.  A bad application file gets a status with the reason and the line, and
 * its last good operation stays.  Two controllers: "applications" does the work; "sources" watches the
 * sources and only says whose they are.  What a stranger would get wrong: after a restart the operations
 * on disk, not the order of files, tell who owns a target; and which applications have gone meanwhile.
 * Tests: tests/examples/controllers.t.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <component/controller.h>
#include <component/ports.h>
#include <component/profiler.h>
#include <component/trace.h>

#include "gitops/gitops.h"

#define STALE_NS COMPONENT_MILLISECONDS(200) /* until a source that changed while it was read is read again, at first */
#define STALE_TIMES 6 /* in a row, some 12 s: then its status says so */

static struct gitops_directories dirs = { .root = GITOPS_ROOT, .applications = "", .sources = "", .operations = "",
	.status = "", .locks = "" };
static struct gitops_claims claims = GITOPS_CLAIMS_INIT;
static struct component_controller *controllers[2];
#define APPLICATIONS controllers[0]
static struct component_profile *reconciling;

static const struct component_flag flags[] = {
	GITOPS_ROOT_FLAGS(dirs),
	GITOPS_DIRECTORY("applications-dir", &dirs.applications, "Application files; empty: ROOT/applications."),
	GITOPS_DIRECTORY("sources-dir", &dirs.sources, "Files as they should be; empty: ROOT/sources."),
	GITOPS_DIRECTORY("operations-dir", &dirs.operations, "Where operations go; empty: ROOT/operations."),
	GITOPS_DIRECTORY("status-dir", &dirs.status, "Where status goes; empty: ROOT/status."),
	COMPONENT_FLAG_END
};

/* The names of an application: its key is that of its file. */
struct names {
	struct component *c;
	const char *key;
	char        operation[GITOPS_PATH_MAX], status[GITOPS_PATH_MAX];
};

/* The application file has gone: take its operation back. */
static int
application_withdraw(const struct names *n, struct component_error *err)
{
	if (gitops_file_remove(dirs.operations, n->operation) != 0 || gitops_file_remove(dirs.status, n->status) != 0) {
		component_error_set(err, "cannot remove '%s' or '%s'", n->operation, n->status);
		return -EIO;
	}
	gitops_claim_drop(&claims, n->key);
	gitops_claims_tell(&claims, GITOPS_WAITING, "", APPLICATIONS);
	component_log(n->c, COMPONENT_LOG_INFO, "application withdrawn", COMPONENT_KV("application", n->key));
	return 0;
}

/* The reason and the line of the file go into the status.  1: it was there and logged. */
static int
application_reject(const struct names *n, struct component_error *err)
{
	struct gitops_document old = { 0 };
	char line[16] = "0";
	bool known;

	gitops_document_read(dirs.status, n->status, &old, NULL);
	known = strcmp(gitops_document_get(&old, "reason"), err->text) == 0;
	gitops_document_free(&old);
	if (known)
		return 1;
	sscanf(err->text, "line %15[0-9]", line);
	return gitops_document_write(dirs.status, n->status, false, NULL, NULL, "state", "rejected", "file", n->key,
		"line", line, "reason", err->text, NULL);
}

/* Puts the line of a key in front of a reason that is about its value. */
static void
add_line(const struct gitops_application *a, const char *key, struct component_error *err)
{
	struct component_error reason = *err;

	for (size_t i = 0; i < a->document.count; i++)
		if (strcmp(a->document.fields[i].key, key) == 0)
			component_error_set(err, "line %u: %s", a->document.fields[i].line, reason.text);
}

/* 1: it cannot be written, which is not the application's fault. */
static int
operation_write(const struct names *n, const struct gitops_application *a, const struct gitops_files *files,
	struct component_error *err)
{
	char revision[GITOPS_HASH_SIZE], count[32];

	gitops_files_revision(files, revision);
	snprintf(count, sizeof count, "%zu", files->count);
	if (gitops_document_write(dirs.operations, n->operation, false, files, err, "application", n->key, "source", a->source,
			"target", a->target, "prune", a->prune ? "true" : "false", "interval", a->interval,
			"revision", revision, "count", count, NULL) != 0 ||
		gitops_document_write(dirs.status, n->status, false, NULL, err, "state", "accepted", "file", n->key,
			"revision", revision, "count", count, NULL) != 0)
		return 1;
	component_log(n->c, COMPONENT_LOG_DEBUG, "operation is current", COMPONENT_KV("application", n->key),
		COMPONENT_KV("revision", revision));
	return 0;
}

/* From a good application file to its operation. */
static int
application_apply(const struct names *n, const struct gitops_application *a, unsigned *ret_stale, struct component_error *err)
{
	struct gitops_files files = { 0 };
	int r = gitops_claim(&claims, n->key, a->source, a->target, dirs.applications, err);
	bool left = r > 0;

	if (r < 0) {
		add_line(a, "target", err);
		return r;
	}
	r = gitops_tree_look(dirs.sources, a->source, &files, err);
	*ret_stale = gitops_claim_stale(&claims, n->key, r == -ESTALE);
	if (r == 0 && files.count == 0) {
		component_error_set(err, "source: '%s' holds no files; nothing is done, since that would empty the target",
			a->source);
		r = -ENOENT;
	}
	if (r != 0)
		add_line(a, "source", err);
	else
		r = operation_write(n, a, &files, err);
	if (r == 0)
		left |= gitops_claim_at(&claims, n->key, a->target);
	if (left)
		gitops_claims_tell(&claims, GITOPS_WAITING, "", APPLICATIONS);
	gitops_files_free(&files);
	return r;
}

/* "shop.yml", "shop.YAML": nobody would find out why nothing comes of it. */
static bool
is_misnamed(const char *key)
{
	const char *end = strrchr(key, '.');

	return end != NULL && (strcasecmp(end, ".yml") == 0 || strcasecmp(end, ".yaml") == 0) && strcmp(end, ".yaml") != 0;
}

static void
misnamed_reconcile(struct names *n, struct component_result *ret)
{
	const char *slash = strrchr(n->key, '/'), *base = slash == NULL ? n->key : slash + 1;
	struct gitops_file file;

	if (snprintf(n->status, sizeof n->status, "%s.application", n->key) >= (int)sizeof n->status)
		return;
	if (gitops_file_look(dirs.applications, n->key, &file) == -ENOENT) {
		gitops_file_remove(dirs.status, n->status);
		return;
	}
	component_error_set(&ret->error, "the name of an application file ends in .yaml; rename it to '%.*s.yaml'",
		(int)(strrchr(base, '.') - base), base);
	ret->outcome = application_reject(n, &ret->error) > 0 ? COMPONENT_DONE : COMPONENT_TERMINAL;
}

static void
application_reconcile(struct component *c, const char *key, struct component_result *ret, void *arg)
{
	struct gitops_application a = { .interval_ns = 0 };
	struct names n = { .c = c, .key = key };
	unsigned stale = 0;
	int r;

	(void)arg;
	if (is_misnamed(key)) {
		misnamed_reconcile(&n, ret);
		return;
	}
	if (!gitops_suffix(n.operation, key, ".yaml", ".operation") ||
			!gitops_suffix(n.status, key, ".yaml", ".application"))
		return;
	r = gitops_application_read(dirs.applications, key, &a, &ret->error);
	if (r == -ENOENT) {
		ret->outcome = application_withdraw(&n, &ret->error) == 0 ? COMPONENT_DONE : COMPONENT_ERROR;
		return;
	}
	/* A fault of the file is mended by a change of it alone. */
	ret->outcome = r == -EINVAL || r == -EFBIG || r == -ELOOP ? COMPONENT_TERMINAL : COMPONENT_ERROR;
	if (r == 0) {
		r = application_apply(&n, &a, &stale, &ret->error);
		if (r == 0 || r == -ESTALE || r == -ECANCELED)
			ret->outcome = COMPONENT_AFTER;
		else if (r == -EEXIST)
			ret->outcome = COMPONENT_TERMINAL; /* it is told when the target is free */
		else if (r == -EINPROGRESS)
			ret->outcome = COMPONENT_DONE; /* so it is here, in a second: a file was renamed */
		ret->after_ns = r == 0 ? a.interval_ns : gitops_stale_ns(STALE_NS, stale);
		gitops_application_free(&a);
	}
	if (r >= 0 || (r == -ESTALE && stale < STALE_TIMES) || r == -ECANCELED || r == -EINPROGRESS)
		return;
	r = application_reject(&n, &ret->error);
	if (r < 0)
		ret->outcome = COMPONENT_ERROR;
	else if (r > 0 && ret->outcome == COMPONENT_TERMINAL)
		ret->outcome = COMPONENT_DONE;
}

/* What is worked on now is a profile of its own, and in a trace a task; all others tell for whom. */
static void
application_reconcile_profiled(struct component *c, const char *key, struct component_result *ret, void *arg)
{
	uint64_t task = component_trace_task_begin("reconcile", 0);

	COMPONENT_LABEL_SCOPE("application", key);
	component_profile_add(reconciling, ret, 0);
	component_trace_log(task, "application", "%s", key);
	application_reconcile(c, key, ret, arg);
	component_profile_remove(reconciling, ret);
	component_trace_task_end(task);
}

static bool
application_accept(char *key, size_t size, void *arg)
{
	char other[GITOPS_PATH_MAX];

	(void)size;
	(void)arg;
	return !gitops_is_partial(key) && (is_misnamed(key) || gitops_suffix(other, key, ".yaml", ".application"));
}

static bool
source_accept(char *key, size_t size, void *arg)
{
	(void)size;
	(void)arg;
	return !gitops_is_partial(key);
}

static void
source_reconcile(struct component *c, const char *key, struct component_result *ret, void *arg)
{
	(void)c;
	(void)ret;
	(void)arg;
	gitops_claims_tell(&claims, GITOPS_SOURCE, key, APPLICATIONS);
}

static struct component_controller_spec application_spec = { .size = sizeof application_spec, .name = "applications",
	.accept = application_accept, .reconcile = application_reconcile_profiled };
static struct component_controller_spec source_spec = { .size = sizeof source_spec, .name = "sources",
	.accept = source_accept, .reconcile = source_reconcile };
static const struct component_controller_spec *const specs[] = { &application_spec, &source_spec };

/* Files that were refused have no operation, and may have gone while nobody looked. */
static void
statuses_tell(void)
{
	struct gitops_files files = { 0 };
	struct gitops_document d;
	char other[GITOPS_PATH_MAX];

	gitops_tree_list(dirs.status, "", &files, NULL);
	for (size_t i = 0; i < files.count; i++)
		if (gitops_suffix(other, files.items[i].path, ".application", "") &&
				gitops_document_read(dirs.status, files.items[i].path, &d, NULL) == 0) {
			component_controller_enqueue(APPLICATIONS, gitops_document_get(&d, "file"));
			gitops_document_free(&d);
		}
	gitops_files_free(&files);
}

static int
begin(struct component *c, struct component_error *err)
{
	int r = component_profile_new("reconciling", &reconciling, err);

	application_spec.directory = dirs.applications;
	source_spec.directory = dirs.sources;
	if (r == 0) /* what was in force before */
		r = gitops_claims_load(&claims, dirs.operations, err);
	if (r == 0)
		r = component_controllers_start(c, specs, 2, controllers, err);
	if (r == 0) {
		gitops_claims_tell(&claims, GITOPS_ALL, "", APPLICATIONS);
		statuses_tell();
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
	struct component_spec spec = COMPONENT_SPEC(.name = "backend-controller", .version = "1.0", .flags = flags,
		.start = start, .stop = gitops_stop, .check = check, .parts = (component_part_fn *const[]){ component_controllers, NULL });

	spec.summary = component_ports_find(spec.name)->summary;
	return component_main(&spec, argc, argv);
}
