/*
 * annotate.c - componentctl annotate: what a pod's annotations ask for, as arguments, a port and probes of its container.
 *
 *     metadata.annotations  ──▶  containers[].args            --enable-pprof, --profiling-bind-address, --health-probe-bind-address
 *     "true" of keys[]           containers[].ports           pprof, health
 *                                containers[].livenessProbe, .readinessProbe
 *
 * What a stranger would get wrong:
 * - What the manifest says already is kept, in arguments, variables and ports: so annotated again it is the same,
 *   and that is tried before anything is written, and that all that was there is still there.
 * - An annotation is a text: true without quotes is refused by Kubernetes, and the words 1, yes and on are no
 *   booleans of Dapr's.
 * - A pod gets the annotations of its template, and not those of the Deployment.
 * - kubelet asks from outside the pod, so probes need another address than profiles, which stay on 127.0.0.1.
 *
 * Tests: tests/componentctl/annotate.t.
 */
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <component/ports.h>

#include "address.h"
#include "command.h"
#include "manifest.h"
#include "words.h"

#define PPROF          "pprof" /* names of ports */
#define HEALTH         "health"
#define DEFAULT_OF_POD "kubectl.kubernetes.io/default-container"

static const char *filename, *container_name;
static int64_t     profile_port = COMPONENT_PORT_COMPONENTCTL_PROFILING, health_port = COMPONENT_PORT_COMPONENTCTL_HEALTH;
static bool        with_probes = true;

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

/* A container that is changed, and what it gets. */
struct change {
	struct manifest *m;
	struct node     *spec, *container, *command, *args, *ports;
	const char      *name;
	bool             beside_dapr; /* its injector adds a container to the pod */
	struct lines     words, new_ports;
	struct text     *notes;
};

struct plan {
	struct manifest *m;
	struct text      notes; /* lines, for standard error */
	size_t           pods, asked;
};

/* ---- what is said already ---- */

struct said {
	const struct node *at; /* NULL: nobody says it */
	const char  *value;
};

static const char *
text_of(const struct node *n)
{
	return n && n->type == NODE_SCALAR ? n->text : "";
}

static bool
is_one_of(const char *word, size_t size, const char *names)
{
	const char *name;
	size_t      n;

	while (words_next(&names, &name, &n)) {
		size_t same = 0;

		while (same < n && same < size && (word[same] == name[same] || (word[same] == '_' && name[same] == '-')))
			same++;
		if (same == n && same == size)
			return true;
	}
	return false;
}

/* Does this word begin the option?  What stands behind = is its value, else the next word. */
static void
option_take(const struct node *n, const char *names, bool is_bool, struct said *ret)
{
	const char *word = text_of(n), *next = text_of(n->next), *value = strchr(word, '=');
	bool        negated = is_bool && !strncmp(word, "--no-", 5);

	if (strncmp(word, "--", 2) != 0)
		return;
	word += negated ? 5 : 2;
	if (!is_one_of(word, strcspn(word, "="), names))
		return;
	ret->at = n;
	if (value)
		ret->value = value + 1;
	else if (!is_bool)
		ret->value = next;
	else
		ret->value = negated || !strcmp(next, "false") ? "false" : "true";
}

/* The last one counts. */
static struct said
option_of(const struct change *c, const char *names, bool is_bool)
{
	const struct node *lists[] = { c->command, c->args };
	struct said        s = { NULL, "" };

	for (int i = 0; i < 2; i++)
		for (const struct node *n = lists[i] ? lists[i]->first : NULL; n && strcmp(text_of(n), "--") != 0; n = n->next)
			option_take(n, names, is_bool, &s);
	return s;
}

/* PREFIX_NAME for each component. */
static struct said
variable_of(const struct change *c, const char *name)
{
	struct node *env = manifest_get(c->m, c->container, "env");
	struct said  s = { NULL, "" };

	for (struct node *n = manifest_items(c->m, env, "env"); n; n = n->next) {
		const char *word = text_of(manifest_get(c->m, n, "name"));
		size_t      size = strlen(word), end = strlen(name);

		if (size >= end && !strcmp(word + size - end, name))
			s = (struct said){ n, text_of(manifest_get(c->m, n, "value")) };
	}
	return s;
}

/* 0: none that can be told. */
static int64_t
number_of(const char *text)
{
	char   *end;
	int64_t number = strtoll(text, &end, 10);

	return *text && !*end && number > 0 && number <= COMPONENT_PORT_MAX ? number : 0;
}

/* The entry of ports for a number, or for a name. */
static struct node *
port_find(struct manifest *m, struct node *container, int64_t number, const char *name)
{
	for (struct node *n = manifest_items(m, manifest_get(m, container, "ports"), "ports"); n; n = n->next) {
		const char *protocol = text_of(manifest_get(m, n, "protocol"));

		if (*protocol && strcmp(protocol, "TCP") != 0)
			continue;
		if (name ? !strcmp(text_of(manifest_get(m, n, "name")), name) :
		    number_of(text_of(manifest_get(m, n, "containerPort"))) == number)
			return n;
	}
	return NULL;
}

static int64_t
port_named(const struct change *c, const char *name)
{
	struct node *n = port_find(c->m, c->container, 0, name);

	return n ? number_of(text_of(manifest_get(c->m, n, "containerPort"))) : 0;
}

/* Arguments behind a shell's script are not the program's, and those behind "--" are no options. */
static void
refuse_deaf(struct change *c)
{
	static const char *const shells[] = { "sh", "bash", "dash", "ash", "zsh", "ksh" };
	const struct node       *lists[] = { c->command, c->args };
	bool                     shell = false;

	for (int i = 0; i < 2; i++)
		for (const struct node *n = lists[i] ? lists[i]->first : NULL; n; n = n->next) {
			const char *word = text_of(n), *slash = strrchr(word, '/');

			if (shell && word[0] == '-' && word[1] != '-' && strchr(word, 'c'))
				manifest_fault(c->m, n, "container '%s': a shell runs its program, and hands no further arguments on; "
					"write the program itself as command, and its arguments as args", c->name);
			if (!i && !strcmp(word, "--"))
				manifest_fault(c->m, n, "container '%s': what is behind '--' is no option; write '--' and its operands as args", c->name);
			for (size_t s = 0; s < sizeof(shells) / sizeof(shells[0]); s++)
				shell |= !strcmp(slash ? slash + 1 : word, shells[s]);
		}
}

/* ---- what it gets ---- */

static void
note(struct text *notes, const struct manifest *m, const char *format, ...) COMPONENT_PRINTF(3, 4);

static void
note(struct text *notes, const struct manifest *m, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	text_add_visible(notes, m->name, TEXT_QUOTED_MAX);
	text_add(notes, ": ");
	text_add_va(notes, format, args);
	text_add(notes, "\n");
	va_end(args);
}

/* No other container of the pod may have it: they share one network. */
static void
refuse_taken(const struct change *c, int64_t port, const char *option)
{
	for (struct node *n = manifest_items(c->m, manifest_get(c->m, c->spec, "containers"), "containers"); n; n = n->next) {
		struct node *taken = n == c->container ? NULL : port_find(c->m, n, port, NULL);

		if (taken)
			manifest_fault(c->m, taken, "port %" PRId64 " is that of container '%s'; write another one for '%s': --%s=N", port,
				text_of(manifest_get(c->m, n, "name")), c->name, option);
	}
}

/* Adds the port where it is not there; ret (nullable): as what a probe names it. */
static void
port_want(struct change *c, int64_t port, const char *name, char ret[32])
{
	struct node *there = port_find(c->m, c->container, port, NULL);
	const char  *its_name = there ? text_of(manifest_get(c->m, there, "name")) : name;
	int64_t      other = port_named(c, name);

	if (other && other != port)
		manifest_fault(c->m, c->container, "container '%s': port '%s' is %" PRId64 ", and an address says %" PRId64
			"; write the same in both", c->name, name, other, port);
	if (!there)
		lines_add(&c->new_ports, "{name: %s, containerPort: %" PRId64 "}", name, port);
	if (ret && *its_name)
		snprintf(ret, 32, "%s", its_name);
	else if (ret)
		snprintf(ret, 32, "%" PRId64, port);
}

static bool
is_on(const char *value)
{
	static const char *const words[] = { "true", "t", "1", "yes", "on" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcasecmp(value, words[i]))
			return true;
	return false;
}

/* The port of an address that is said; 0: one that a port's number does not tell. */
static int64_t
port_said(const char *address)
{
	struct address a;

	return address_parse(address, &a, NULL, 0) || a.kind != ADDRESS_TCP ? 0 : a.port;
}

/* Profiles on 127.0.0.1, where kubectl port-forward reaches them. */
static void
profiling_want(struct change *c)
{
	struct said at = option_of(c, "profiling-bind-address", false), number = option_of(c, "profile-port", false);
	int64_t     port = port_named(c, PPROF);

	if (!is_on(option_of(c, "enable-pprof enable-profiling", true).value))
		lines_add(&c->words, "--enable-pprof");
	if (!at.at && !number.at)
		at = variable_of(c, "PROFILING_BIND_ADDRESS");
	if (!at.at && !number.at)
		at = variable_of(c, "PPROF_BIND_ADDRESS");
	if (number.at) {
		port = number_of(number.value);
	} else if (at.at) {
		port = port_said(at.value);
	} else {
		port = port ? port : profile_port;
		refuse_taken(c, port, "profile-port");
		lines_add(&c->words, "--profiling-bind-address=127.0.0.1:%" PRId64, port);
	}
	if (port)
		port_want(c, port, PPROF, NULL);
	if (c->beside_dapr && port == COMPONENT_PORT_COMPONENTCTL_PROFILING)
		note(c->notes, c->m, "dapr.io/enabled is \"true\": where Dapr's own injector is at work, its sidecar takes port %" PRId64
			" of the pod, too; --profile-port=N is another one", port);
}

static bool
is_loopback(const char *address)
{
	struct address a;

	return !address_parse(address, &a, NULL, 0) &&
	       (!strncmp(a.host, "127.", 4) || !strcmp(a.host, "::1") || !strcmp(a.host, "localhost"));
}

/* The address that probes ask, and their port's name; false: there is none that kubelet reaches. */
static bool
health_want(struct change *c, char ret_port[32])
{
	struct said at = option_of(c, "health-probe-bind-address", false);
	int64_t     port = port_named(c, HEALTH);

	if (!at.at)
		at = variable_of(c, "HEALTH_PROBE_BIND_ADDRESS");
	if (at.at) {
		port = is_loopback(at.value) ? 0 : port_said(at.value);
	} else {
		port = port ? port : health_port;
		refuse_taken(c, port, "health-port");
		lines_add(&c->words, "--health-probe-bind-address=:%" PRId64, port);
	}
	if (!port) {
		note(c->notes, c->m, "container '%s' gets no probes: kubelet does not reach its --health-probe-bind-address '%s'; "
			"write :%" PRId64 " there", c->name, at.value, health_port);
		return false;
	}
	port_want(c, port, HEALTH, ret_port);
	return true;
}

/* ---- writing it ---- */

/* All words in the list args, before an operand's "--". */
static void
words_put(struct change *c)
{
	struct node *before = c->args ? c->args->first : NULL;
	struct text  list = TEXT_INIT;

	while (before && strcmp(text_of(before), "--") != 0)
		before = before->next;
	for (size_t i = 0; i < c->words.count; i++) {
		struct text word = TEXT_INIT;

		manifest_quote(&word, c->words.items[i]);
		text_add(&list, "%s%s", i ? ", " : "[", text_string(&word));
		if (c->args && c->args->first)
			manifest_insert(c->m, c->args, before, text_string(&word));
		text_release(&word);
	}
	text_add(&list, "]");
	if (c->words.count && !(c->args && c->args->first))
		manifest_set(c->m, c->container, "args", text_string(&list), "command image name");
	if (c->words.count && !c->args && !c->command)
		note(c->notes, c->m, "container '%s' had neither command nor args: what its image names as arguments (CMD) is replaced by these",
			c->name);
	text_release(&list);
}

static void
ports_put(struct change *c)
{
	struct text list = TEXT_INIT;

	for (size_t i = 0; i < c->new_ports.count; i++) {
		text_add(&list, "%s%s", i ? ", " : "[", c->new_ports.items[i]);
		if (c->ports && c->ports->first)
			manifest_insert(c->m, c->ports, NULL, c->new_ports.items[i]);
	}
	text_add(&list, "]");
	if (c->new_ports.count && !(c->ports && c->ports->first))
		manifest_set(c->m, c->container, "ports", text_string(&list), "args command image name");
	text_release(&list);
}

static void
probe_put(struct change *c, const char *key, const char *path, const char *port)
{
	char value[128];

	snprintf(value, sizeof(value), "{httpGet: {path: %s, port: %s}}", path, port);
	manifest_set(c->m, c->container, key, value, "ports args command image name");
}

static struct node *
list_of(struct change *c, const char *name)
{
	struct node *n = manifest_get(c->m, c->container, name);

	manifest_items(c->m, n, name);
	return n;
}

static void
container_change(struct change *c)
{
	char health[32];
	bool probes;

	c->name = text_of(manifest_get(c->m, c->container, "name"));
	c->command = list_of(c, "command");
	c->args = list_of(c, "args");
	c->ports = list_of(c, "ports");
	/* One of its own says that it has its own idea of health. */
	probes = with_probes && !manifest_get(c->m, c->container, "livenessProbe") && !manifest_get(c->m, c->container, "readinessProbe") &&
		!manifest_get(c->m, c->container, "startupProbe");
	refuse_deaf(c);
	profiling_want(c);
	probes = probes && health_want(c, health);
	words_put(c);
	ports_put(c);
	if (probes) {
		probe_put(c, "livenessProbe", "/livez", health);
		probe_put(c, "readinessProbe", "/readyz", health);
	}
	if (c->words.failed || c->new_ports.failed)
		c->m->fault = -ENOMEM;
	lines_release(&c->words);
	lines_release(&c->new_ports);
}

/* ---- which container of which pod ---- */

/* That of --container, else that of kubectl's annotation, else the first; not Dapr's sidecar, which is no daemon of ours. */
static struct node *
container_choose(struct plan *p, struct node *spec, struct node *annotations)
{
	struct node *list = manifest_get(p->m, spec, "containers"), *first = NULL;
	const char  *wanted = container_name && *container_name ? container_name :
		text_of(manifest_get(p->m, annotations, DEFAULT_OF_POD));
	size_t       others = 0;

	for (struct node *n = manifest_items(p->m, list, "containers"); n; n = n->next) {
		const char *name = text_of(manifest_get(p->m, n, "name"));

		if (*wanted ? !strcmp(name, wanted) : !first && strcmp(name, "daprd") != 0)
			first = n;
		else if (strcmp(name, "daprd") != 0)
			others++;
	}
	if (!first && *wanted)
		manifest_fault(p->m, list ? list : spec, "the pod has no container '%s'; write the name of one of its containers", wanted);
	else if (!first)
		manifest_fault(p->m, list ? list : spec, "the pod has no container that could serve profiles; write containers: [{name: ..., image: ...}]");
	else if (others && !*wanted)
		note(&p->notes, p->m, "line %zu: of several containers '%s' is changed; --container=NAME changes another one", first->line + 1,
			text_of(manifest_get(p->m, first, "name")));
	return p->m->fault ? NULL : first;
}

/* "true"; anything but that and "false" is a fault. */
static bool
is_true(struct manifest *m, const struct node *n, const char *key)
{
	const char *value = text_of(n);
	bool        on = !strcmp(value, "true");
	struct text shown = TEXT_INIT;

	if (n->type != NODE_SCALAR) {
		manifest_fault(m, n, "annotation %s is no text; write %s: \"true\"", key, key);
	} else if (n->plain && (on || !strcmp(value, "false"))) {
		manifest_fault(m, n, "annotation %s: %s without quotes is no text, and Kubernetes refuses it; write %s: \"%s\"", key, value, key, value);
	} else if (!on && strcmp(value, "false") != 0) {
		text_add_quoted(&shown, value);
		manifest_fault(m, n, "annotation %s: %s is neither \"true\" nor \"false\"; write %s: \"true\"", key, text_string(&shown), key);
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
		note(&p->notes, p->m, "line %zu: an annotation of the %s itself is none of its pods'; move it to %s.metadata.annotations",
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
	if (container)
		container_change(&(struct change){ .m = p->m, .spec = spec, .container = container, .notes = &p->notes,
			.beside_dapr = !strcmp(text_of(manifest_get(p->m, annotations, "dapr.io/enabled")), "true") });
}

static void
object_plan(struct plan *p, struct node *object)
{
	const char *kind;

	if (object->type == NODE_SCALAR && !*object->text)
		return; /* an empty document */
	kind = object->type == NODE_MAPPING ? text_of(manifest_get(p->m, object, "kind")) : "";
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
	struct plan     p = { .m = &m, .notes = TEXT_INIT };
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
	text_release(&p.notes);
	manifest_release(&m);
	return r;
}

static int
annotate(char **operands, struct component_error *err)
{
	struct manifest m = { .name = NULL };
	struct plan     p = { .m = &m, .notes = TEXT_INIT };
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
		note(&p.notes, &m, "no pod in it is annotated with %s: \"true\"; it is written as it was", keys[0]);
	if (!r) {
		fwrite(text_string(&written), 1, written.size, stdout);
		fputs(text_string(&p.notes), stderr);
	}
	text_release(&written);
	text_release(&p.notes);
	manifest_release(&m);
	return r;
}

static const struct component_flag flags[] = {
	COMPONENT_FLAG_STRING("filename", &filename, "The manifest; - is standard input.", .section = "Annotate", .argument = "FILE",
		.letter = 'f'),
	COMPONENT_FLAG_STRING("container", &container_name, "Which container of the pod serves profiles; without it that of the annotation "
		DEFAULT_OF_POD ", else the first.", .section = "Annotate", .argument = "NAME"),
	COMPONENT_FLAG_INT("profile-port", &profile_port, "The port on 127.0.0.1 of the pod where profiles are served, where the manifest names none.",
		.section = "Annotate", .min = 1, .max = COMPONENT_PORT_MAX),
	COMPONENT_FLAG_INT("health-port", &health_port, "The port that probes ask, where the manifest names none.",
		.section = "Annotate", .min = 1, .max = COMPONENT_PORT_MAX),
	COMPONENT_FLAG_BOOL("probes", &with_probes, "Give probes to a container that has none.", .section = "Annotate"),
	COMPONENT_FLAG_END
};

const struct command annotate_command = {
	.name = "annotate",
	.summary = "Writes a manifest of Kubernetes with what its annotations about profiling ask for.",
	.flags = flags,
	.run = annotate,
};
