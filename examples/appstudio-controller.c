/*
 * appstudio-controller.c - promotes applications from one environment to the next.
 *
 *     status/dev/shop.sync: in-sync, for --soak-time
 *         |
 *         +--> sources/promoted/shop/<revision>/...    what dev holds, for good
 *         +--> applications/staging/shop.yaml          source: promoted/shop/<revision>
 *
 * The environment is the first name in an application file's path; their order is
 * --environments.  An application of the next environment keeps all its values but
 * the source (not its comments); one that does not exist is made after this one.
 *
 * What a stranger would get wrong: the source is copied, since dev's may change a
 * moment later and would then arrive in staging unsoaked.  The copy is built under
 * another name and renamed when it is whole; a copy of that revision which exists
 * is used again, as on the way from staging to production.
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

#define AGAIN_NS COMPONENT_MILLISECONDS(500) /* until files that are just changing agree */
#define LOOK_MS INT64_C(60000) /* at the latest: the clock may be set, --soak-time reloaded */
#define REVISION_DIGITS 16 /* of a copy's name */

static struct gitops_directories dirs = { .root = GITOPS_ROOT, .applications = "", .sources = "", .operations = "",
	.targets = "", .status = "", .locks = "" };
static struct component_list environments = { (const char *const[]){ "dev", "staging", "production" }, 3 };
static int64_t soak_ns = COMPONENT_MINUTES(10);
static const struct component_flag flags[] = {
	COMPONENT_FLAG_LIST("environments", &environments, "Environments, in the order of promotion.",
		.section = "Promotion", .argument = "NAME,..."),
	COMPONENT_FLAG_DURATION("soak-time", &soak_ns, "How long an application must have been in sync.",
		.section = "Promotion", .min = 0, .max = INT64_MAX, .bits = COMPONENT_FLAG_RELOADABLE),
	GITOPS_ROOT_FLAGS(dirs),
	GITOPS_DIRECTORY("applications-dir", &dirs.applications, "Application files; empty: ROOT/applications."),
	GITOPS_DIRECTORY("sources-dir", &dirs.sources, "Where promoted files go; empty: ROOT/sources."),
	GITOPS_DIRECTORY("operations-dir", &dirs.operations, "What is in sync; empty: ROOT/operations."),
	GITOPS_DIRECTORY("targets-dir", &dirs.targets, "The files in sync; empty: ROOT/targets."),
	GITOPS_DIRECTORY("status-dir", &dirs.status, "Where status is read and written; empty: ROOT/status."),
	COMPONENT_FLAG_END
};

/* One promotion: dev/shop to staging/shop. */
struct promotion {
	struct component *c;
	char here[GITOPS_PATH_MAX], there[GITOPS_PATH_MAX]; /* application files */
	char operation[GITOPS_PATH_MAX], status[GITOPS_PATH_MAX];
	char copies[GITOPS_PATH_MAX], copy[GITOPS_PATH_MAX];      /* promoted/shop, promoted/shop/<revision> */
	const char *from, *to, *revision;
	struct component_error *err;
};

/* The environment that path is in, and the next; false: there is none. */
static bool
environment_of(const char *path, const char **ret_from, const char **ret_to)
{
	for (size_t i = 0; i + 1 < environments.count; i++) {
		*ret_from = environments.items[i];
		*ret_to = environments.items[i + 1];
		if (gitops_path_below(path, *ret_from))
			return true;
	}
	return false;
}

static int
promotion_begin(struct promotion *p, const char *key)
{
	char name[GITOPS_PATH_MAX];

	if (!environment_of(key, &p->from, &p->to) || !gitops_suffix(p->here, key, ".sync", ".yaml") ||
			!gitops_suffix(p->operation, key, ".sync", ".operation") ||
			!gitops_suffix(p->status, key, ".sync", ".promotion") ||
			!gitops_suffix(name, key + strlen(p->from) + 1, ".sync", "") ||
			gitops_path_join(p->there, p->to, p->here + strlen(p->from) + 1, p->err) != 0)
		return -EINVAL;
	return gitops_path_join(p->copies, "promoted", name, p->err);
}

/* Builds the copy from what is in sync here, unless it is there; -ESTALE: not now. */
static int
copy_make(struct promotion *p, const char *target)
{
	struct gitops_document operation = { 0 };
	int r = gitops_document_read(dirs.operations, p->operation, &operation, p->err);

	if (r == 0 && strcmp(gitops_document_get(&operation, "revision"), p->revision) != 0)
		r = -ESTALE; /* the next one is under way */
	if (r == 0)
		r = gitops_copy_make(dirs.targets, target, &operation.files, dirs.sources, p->copy, p->err);
	gitops_document_free(&operation);
	return r == -ENOENT ? -ESTALE : r;
}

/* Does an environment still use this copy?  Whose file cannot be read now may.  For gitops_copies_tidy(). */
static bool
copy_in_use(const char *copy, void *arg)
{
	const struct promotion *p = arg;
	struct gitops_application a;
	char file[GITOPS_PATH_MAX];
	int r;
	bool found = false;

	for (size_t i = 0; i < environments.count && !found; i++) {
		if (gitops_path_join(file, environments.items[i], p->here + strlen(p->from) + 1, NULL) != 0)
			continue;
		r = gitops_application_read(dirs.applications, file, &a, NULL);
		found = r == 0 ? strcmp(a.source, copy) == 0 : r != -ENOENT;
		if (r == 0)
			gitops_application_free(&a);
	}
	return found;
}

/* Writes the next environment's application file, if it does not say so already. */
static int
application_point(struct promotion *p, const struct gitops_application *here)
{
	struct gitops_application there = { .source = "" };
	char target[GITOPS_PATH_MAX];
	int r = gitops_application_read(dirs.applications, p->there, &there, p->err);

	if (r == -ENOENT && !gitops_path_below(here->target, p->from)) {
		component_error_set(p->err, "cannot make '%s': target '%s' does not start with '%s/', so that of %s is not "
			"known; write the file", p->there, here->target, p->from, p->to);
		return -EINVAL;
	}
	if (r == -ENOENT) {
		there = *here;
		there.document = (struct gitops_document){ .text = NULL }; /* stays here's */
		there.source = "";
		r = gitops_path_join(target, p->to, here->target + strlen(p->from) + 1, p->err);
		there.target = target;
	}
	if (r == 0 && strcmp(there.source, p->copy) != 0) {
		r = gitops_document_write(dirs.applications, p->there, true, NULL, p->err, "name", there.name, "source", p->copy,
			"target", there.target, "prune", there.prune ? "true" : "false", "interval", there.interval, NULL);
		if (r == 0)
			component_log(p->c, COMPONENT_LOG_INFO, "promoted", COMPONENT_KV("application", p->here),
				COMPONENT_KV("to", p->to), COMPONENT_KV("revision", p->revision));
	}
	gitops_application_free(&there);
	return r;
}

static int
promote(struct promotion *p)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* a copy is not tidied before it is pointed at */
	struct gitops_application here;
	char name[REVISION_DIGITS + 1];
	int r = gitops_application_read(dirs.applications, p->here, &here, p->err);

	if (r != 0) /* the backend-controller tells people what is wrong with it */
		return r == -EINVAL ? -ENOENT : r;
	pthread_mutex_lock(&mutex);
	snprintf(name, sizeof name, "%.*s", REVISION_DIGITS, p->revision);
	r = gitops_path_join(p->copy, p->copies, name, p->err);
	if (r == 0)
		r = copy_make(p, here.target);
	if (r == 0)
		r = application_point(p, &here);
	if (r == 0)
		gitops_copies_tidy(dirs.sources, p->copies, copy_in_use, p);
	pthread_mutex_unlock(&mutex);
	gitops_application_free(&here);
	return r;
}

static void
promotion_reconcile(struct component *c, const char *key, struct component_result *ret, void *arg)
{
	struct promotion p = { .c = c, .err = &ret->error };
	struct gitops_document sync;
	int64_t left_ms;
	int r;

	(void)arg;
	if (promotion_begin(&p, key) != 0)
		return; /* there is no next environment */
	r = gitops_document_read(dirs.status, key, &sync, &ret->error);
	if (r == -ENOENT)
		gitops_file_remove(dirs.status, p.status);
	else if (r != 0 && r != -EINVAL)
		ret->outcome = COMPONENT_ERROR; /* it may say that all is in sync, and not change any more */
	if (r != 0)
		return;
	p.revision = gitops_document_get(&sync, "revision");
	left_ms = strtoll(gitops_document_get(&sync, "since_ms"), NULL, 10) + soak_ns / COMPONENT_MILLISECONDS(1) - gitops_now_ms();
	if (strcmp(gitops_document_get(&sync, "state"), "in-sync") != 0 || strlen(p.revision) != GITOPS_HASH_SIZE - 1)
		goto out; /* its status will change and bring us back */
	ret->outcome = COMPONENT_AFTER;
	ret->after_ns = COMPONENT_MILLISECONDS(left_ms < LOOK_MS ? left_ms : LOOK_MS);
	if (left_ms > 0)
		goto out;
	r = promote(&p);
	if (r == 0)
		ret->outcome = COMPONENT_DONE;
	else if (r == -ESTALE || r == -ENOENT || r == -ECANCELED)
		ret->outcome = COMPONENT_AFTER;
	else
		ret->outcome = COMPONENT_ERROR; /* -EINVAL, too: nothing tells us when a person mends the file */
	ret->after_ns = r == -ESTALE ? AGAIN_NS : COMPONENT_MILLISECONDS(LOOK_MS);
	if (ret->outcome != COMPONENT_AFTER)
		gitops_document_write(dirs.status, p.status, false, NULL, NULL, "state", r == 0 ? "promoted" : "failed",
			"to", p.to, "revision", p.revision, "reason", r == 0 ? "" : ret->error.text, NULL);
out:
	gitops_document_free(&sync);
}

static bool
promotion_accept(char *key, size_t size, void *arg)
{
	char other[GITOPS_PATH_MAX];

	(void)size;
	(void)arg;
	return !gitops_is_partial(key) && gitops_suffix(other, key, ".sync", ".promotion");
}

static struct component_controller_spec promotion_spec = { .size = sizeof promotion_spec, .name = "promotions",
	.accept = promotion_accept, .reconcile = promotion_reconcile };
static const struct component_controller_spec *const specs[] = { &promotion_spec };

static int
begin(struct component *c, struct component_error *err)
{
	struct component_controller *promotions;
	int r;

	promotion_spec.directory = dirs.status;
	r = component_controllers_start(c, specs, 1, &promotions, err);
	if (r == 0)
		gitops_made_tell(dirs.status, ".promotion", ".sync", promotions);
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
	int r = component_controllers_check(c, specs, 1, err);

	return gitops_directories_check(c, &dirs, err) < 0 ? -EINVAL : r;
}

int
main(int argc, char **argv)
{
	struct component_spec spec = COMPONENT_SPEC(.name = "appstudio-controller", .version = "1.0", .flags = flags,
		.start = start, .stop = gitops_stop, .check = check, .parts = (component_part_fn *const[]){ component_controllers, NULL });

	spec.summary = component_ports_find(spec.name)->summary;
	return component_main(&spec, argc, argv);
}
