/*
 * annotate.c - componentctl annotate: a manifest of Kubernetes with what the annotations of its pods ask for.
 *
 *     metadata.annotations of a pod ── "true" of keys[] ──▶ one of its containers ──▶ container.c
 *
 * What a stranger would get wrong:
 * - What has been added is kept as what is there already, so annotated again it is the same.  That is tried before
 *   anything is written, and that all that was there is still there.
 * - An annotation is a text: true without quotes is refused by Kubernetes, and the words 1, yes and on are no
 *   booleans of Dapr's.
 * - A pod gets the annotations of its template, and not those of the Deployment.
 *
 * Tests: tests/componentctl/annotate.t.
 */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <component/ports.h>

#include "command.h"
#include "container.h"
#include "manifest.h"

#define DEFAULT_OF_POD "kubectl.kubernetes.io/default-container"

static const char           *filename, *container_name;
static struct container_wish wish = { COMPONENT_PORT_COMPONENTCTL_PROFILING, COMPONENT_PORT_COMPONENTCTL_HEALTH, true, false };

/* As --profiling-enable-file has them: the first that is there decides. */
static const char *const keys[] = { "component.dev/profiling", "dapr.io/enable-profiling", "dapr.io/profiling" };
#define KEYS (sizeof(keys) / sizeof(keys[0]))

static const struct {
	const char *kind, *template;
} kinds[] = {
	{ "Pod", "" },
	{ "Deployment", "spec.template" },
	{ "StatefulSet", "spec.template" },
	{ "DaemonSet", "spec.template" },
	{ "ReplicaSet", "spec.template" },
	{ "ReplicationController", "spec.template" },
	{ "Job", "spec.template" },
	{ "CronJob", "spec.jobTemplate.spec.template" },
	{ "PodTemplate", "template" },
};
#define KINDS_TO_WRITE "a Pod, Deployment, StatefulSet, DaemonSet, Job or CronJob"

struct plan {
	struct manifest *m;
	size_t           pods, asked;
};

/* ---- which container of which pod ---- */

/* That of --container, else that of kubectl's annotation, else the first; not Dapr's sidecar, which is no daemon of ours. */
static struct node *
container_choose(struct plan *p, struct node *spec, struct node *annotations)
{
	struct node *list = manifest_get(p->m, spec, "containers"), *first = NULL;
	const char  *wanted = container_name && *container_name ? container_name :
		manifest_text(manifest_get(p->m, annotations, DEFAULT_OF_POD));
	size_t       others = 0;

	for (struct node *n = manifest_items(p->m, list, "containers"); n; n = n->next) {
		const char *name = manifest_text(manifest_get(p->m, n, "name"));

		if (*wanted ? !strcmp(name, wanted) : !first && strcmp(name, "daprd") != 0)
			first = n;
		else if (strcmp(name, "daprd") != 0)
			others++;
	}
	if (!first && *wanted)
		manifest_fault(p->m, list ? list : spec, "the pod has no container '%s'; write the name of one of its containers", wanted);
	else if (!first)
		manifest_fault(p->m, list ? list : spec, "the pod has no container that could serve profiles; "
			"write containers: [{name: ..., image: ...}]");
	else if (others && !*wanted)
		manifest_note(p->m, "line %zu: of several containers '%s' is changed; --container=NAME changes another one", first->line + 1,
			manifest_text(manifest_get(p->m, first, "name")));
	return p->m->fault ? NULL : first;
}

/* "true"; anything but that and "false" is a fault. */
static bool
is_true(struct manifest *m, const struct node *n, const char *key)
{
	const char *value = manifest_text(n);
	bool        on = !strcmp(value, "true");
	struct text shown = TEXT_INIT;

	if (n->type != NODE_SCALAR) {
		manifest_fault(m, n, "annotation %s is no text; write %s: \"true\"", key, key);
	} else if (n->plain && (on || !strcmp(value, "false"))) {
		manifest_fault(m, n, "annotation %s: %s without quotes is no text, and Kubernetes refuses it; write %s: \"%s\"",
			key, value, key, value);
	} else if (!on && strcmp(value, "false") != 0) {
		text_add_quoted(&shown, value);
		manifest_fault(m, n, "annotation %s: %s is neither \"true\" nor \"false\"; write %s: \"true\"", key, text_string(&shown),
			key);
	}
	text_release(&shown);
	return on;
}

/* The first of keys that is there: its name; NULL: none. */
static const char *
key_of(struct manifest *m, struct node *annotations, bool *ret_on)
{
	const char *found = NULL;

	for (size_t i = 0; annotations && i < KEYS && !m->fault; i++) {
		struct node *n = manifest_get(m, annotations, keys[i]);
		bool         on = n && is_true(m, n, keys[i]);

		if (n && !found) {
			found = keys[i];
			*ret_on = on;
		}
	}
	return found;
}

static void
pod_plan(struct plan *p, struct node *object, struct node *template, const char *kind, const char *path)
{
	struct node *annotations = manifest_find(p->m, template, "metadata.annotations"), *spec, *container;
	bool         on = false;
	const char  *key = key_of(p->m, annotations, &on);

	p->pods++;
	if (!key && *path && key_of(p->m, manifest_find(p->m, object, "metadata.annotations"), &on)) {
		manifest_note(p->m, "line %zu: an annotation of the %s itself is none of its pods'; move it to %s.metadata.annotations",
			object->line + 1, kind, path);
		on = false;
	}
	if (!on || p->m->fault)
		return;
	p->asked++;
	spec = manifest_get(p->m, template, "spec");
	if (!spec) {
		manifest_fault(p->m, template, "the pod has no spec; write spec: {containers: [{name: ..., image: ...}]}");
		return;
	}
	container = container_choose(p, spec, annotations);
	wish.beside_dapr = !strcmp(manifest_text(manifest_get(p->m, annotations, "dapr.io/enabled")), "true");
	if (container)
		container_annotate(p->m, spec, container, &wish);
}

static void
object_plan(struct plan *p, struct node *object)
{
	const char *kind;

	if (object->type == NODE_SCALAR && !*object->text)
		return; /* an empty document */
	kind = object->type == NODE_MAPPING ? manifest_text(manifest_get(p->m, object, "kind")) : "";
	if (!*kind && !p->m->fault)
		manifest_fault(p->m, object, "no object of Kubernetes: it has no 'kind'; write the manifest of " KINDS_TO_WRITE);
	if (!strcmp(kind, "List"))
		for (struct node *n = manifest_items(p->m, manifest_get(p->m, object, "items"), "items"); n; n = n->next)
			object_plan(p, n);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && !p->m->fault; i++) {
		struct node *template = strcmp(kind, kinds[i].kind) ? NULL : manifest_find(p->m, object, kinds[i].template);

		if (template)
			pod_plan(p, object, template, kind, kinds[i].template);
		else if (!strcmp(kind, kinds[i].kind))
			manifest_fault(p->m, object, "this %s has no %s; write one", kind, kinds[i].template);
	}
}

static int
plan(struct plan *p)
{
	for (struct node *n = p->m->root ? p->m->root->first : NULL; n && !p->m->fault; n = n->next)
		object_plan(p, n);
	return p->m->fault;
}

/* ---- all of it ---- */

/* Does it read as what was there and what was asked for? */
static int
try_again(const struct manifest *before, const struct text *written, struct component_error *err)
{
	struct manifest m = { .name = NULL };
	struct plan     p = { .m = &m };
	struct text     copy = TEXT_INIT;
	int             r;

	text_add_bytes(&copy, text_string(written), written->size);
	r = copy.failed ? -ENOMEM : manifest_parse(&m, before->name, &copy, err);
	if (!r)
		r = plan(&p);
	if (r != -ENOMEM && (r || m.edit_count || !manifest_is_in(before, &m))) {
		component_error_set(err, "%s: what is to be added does not go with how the container is laid out; "
			"write each of its keys, and each item of args and ports, in a line of its own", before->name);
		r = -EBADMSG;
	}
	text_release(&copy);
	manifest_release(&m);
	return r;
}

static int
annotate(char **operands, struct component_error *err)
{
	struct manifest m = { .name = NULL };
	struct plan     p = { .m = &m };
	struct text     written = TEXT_INIT;
	int             r;

	(void)operands;
	if (!filename || !*filename) {
		component_error_set(err, "no manifest is given; write componentctl annotate -f FILE, or -f - for standard input");
		return -EINVAL;
	}
	r = manifest_read(&m, filename, err);
	if (!r)
		r = plan(&p);
	if (!r && !p.pods) {
		component_error_set(err, "%s: there is no pod in it; write the manifest of " KINDS_TO_WRITE, m.name);
		r = -EBADMSG;
	}
	if (!r)
		r = manifest_write(&m, &written);
	if (!r && m.edit_count)
		r = try_again(&m, &written, err);
	if (!r && !p.asked)
		manifest_note(&m, "no pod in it is annotated with %s: \"true\"; it is written as it was", keys[0]);
	if (!r) {
		fwrite(text_string(&written), 1, written.size, stdout);
		fputs(text_string(&m.notes), stderr);
	}
	text_release(&written);
	manifest_release(&m);
	return r;
}

static const struct component_flag flags[] = {
	COMPONENT_FLAG_STRING("filename", &filename, "The manifest; - is standard input.", .section = "Annotate", .argument = "FILE",
		.letter = 'f'),
	COMPONENT_FLAG_STRING("container", &container_name,
		"Which container of the pod serves profiles; without it that of the annotation " DEFAULT_OF_POD ", else the first.",
		.section = "Annotate", .argument = "NAME"),
	COMPONENT_FLAG_INT("profile-port", &wish.profile_port,
		"The port on 127.0.0.1 of the pod where profiles are served, where the manifest names none.",
		.section = "Annotate", .min = 1, .max = COMPONENT_PORT_MAX),
	COMPONENT_FLAG_INT("health-port", &wish.health_port, "The port that probes ask, where the manifest names none.",
		.section = "Annotate", .min = 1, .max = COMPONENT_PORT_MAX),
	COMPONENT_FLAG_BOOL("probes", &wish.probes, "Give probes to a container that has none.", .section = "Annotate"),
	COMPONENT_FLAG_END
};

const struct command annotate_command = {
	.name = "annotate",
	.summary = "Writes a manifest of Kubernetes with what its annotations about profiling ask for.",
	.flags = flags,
	.run = annotate,
};
