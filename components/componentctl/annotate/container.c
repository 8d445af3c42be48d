/*
 * container.c - a container that serves profiles: arguments, ports and probes that it lacks for that.
 *
 *     command, args, env, ports ── what is said already ──▶ the rest of
 *         args            --enable-pprof, --profiling-bind-address, --health-probe-bind-address
 *         ports           pprof, health
 *         livenessProbe, readinessProbe
 *
 * What a stranger would get wrong:
 * - Of an option that is there twice the last one counts.
 * - kubelet asks from outside the pod, so probes need another address than profiles, which stay on 127.0.0.1.
 * - What a shell's script is called with, and what is behind "--", is no option of the program.
 *
 * Tests: tests/componentctl/annotate.t.
 */
#include <config.h>

#include "container.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <component/ports.h>

#include "address.h"
#include "words.h"

#define PPROF  "pprof" /* names of ports */
#define HEALTH "health"

/* A container that is changed, and what it gets. */
struct change {
	struct manifest *m;
	struct node     *spec, *container, *command, *args, *ports;
	const char      *name;
	struct lines     words, new_ports;
	const struct container_wish *wish;
	int64_t             profiling_port; /* 0: not known */
};

/* ---- what is said already ---- */

struct said {
	const struct node *at; /* NULL: nobody says it */
	const char        *value;
};

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
	const char *word = manifest_text(n), *next = manifest_text(n->next), *value = strchr(word, '=');
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
		for (const struct node *n = lists[i] ? lists[i]->first : NULL; n && strcmp(manifest_text(n), "--") != 0; n = n->next)
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
		const char *word = manifest_text(manifest_get(c->m, n, "name"));
		size_t      size = strlen(word), end = strlen(name);

		if (size >= end && !strcmp(word + size - end, name))
			s = (struct said){ n, manifest_text(manifest_get(c->m, n, "value")) };
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
		const char *protocol = manifest_text(manifest_get(m, n, "protocol"));

		if (*protocol && strcmp(protocol, "TCP") != 0)
			continue;
		if (name ? !strcmp(manifest_text(manifest_get(m, n, "name")), name) :
		    number_of(manifest_text(manifest_get(m, n, "containerPort"))) == number)
			return n;
	}
	return NULL;
}

static int64_t
port_named(const struct change *c, const char *name)
{
	struct node *n = port_find(c->m, c->container, 0, name);

	return n ? number_of(manifest_text(manifest_get(c->m, n, "containerPort"))) : 0;
}

/* Arguments behind a shell's script are not the program's, and those behind "--" are no options. */
static void
refuse_deaf(struct change *c)
{
	const struct node *lists[] = { c->command, c->args }, *program = NULL;
	const char        *before = "";
	bool               shell = false, init = false; /* init: it still reads its own options */

	for (int i = 0; i < 2; i++)
		for (const struct node *n = lists[i] ? lists[i]->first : NULL; n; n = n->next) {
			const char *word = manifest_text(n), *slash = strrchr(word, '/'), *base = slash ? slash + 1 : word;
			bool        ends = !strcmp(word, "--");

			init &= word[0] == '-' || is_one_of(before, strlen(before), "-e -p -r"); /* the value of one of its options */
			if (shell && word[0] == '-' && word[1] != '-' && strchr(word, 'c'))
				manifest_fault(c->m, n, "container '%s': a shell runs its program, and hands no further arguments on; "
					"write the program itself as command, and its arguments as args", c->name);
			if (ends && init)
				manifest_fault(c->m, n, "container '%s': an init takes the options before '--' for its own; leave '--' out", c->name);
			if (ends && !program)
				manifest_fault(c->m, n, "container '%s': the image alone says whose options are before '--'; write its program as command", c->name);
			if (ends && !i)
				manifest_fault(c->m, n, "container '%s': what is behind '--' is no option; write '--' and its operands as args", c->name);
			program = program ? program : n;
			init |= n == program && (is_one_of(base, strlen(base), "tini docker-init dumb-init catatonit") ||
				strncmp(base, "tini-", strlen("tini-")) == 0); /* tini-static, tini-amd64 */
			shell |= is_one_of(base, strlen(base), "sh bash dash ash zsh ksh");
			before = word;
		}
}

/* ---- what it gets ---- */

/* No other container of the pod may have it: they share one network.  Nor may another port of this one. */
static void
refuse_taken(const struct change *c, int64_t port, const char *option)
{
	struct node *own = port_find(c->m, c->container, port, NULL);
	const char  *name = own ? manifest_text(manifest_get(c->m, own, "name")) : "";

	if (*name && strcmp(name, PPROF) != 0 && strcmp(name, HEALTH) != 0)
		manifest_fault(c->m, own, "port %" PRId64 " of container '%s' is '%s'; write another one: --%s=N", port, c->name, name, option);
	for (struct node *n = manifest_items(c->m, manifest_get(c->m, c->spec, "containers"), "containers"); n; n = n->next) {
		struct node *taken = n == c->container ? NULL : port_find(c->m, n, port, NULL);

		if (taken)
			manifest_fault(c->m, taken, "port %" PRId64 " is that of container '%s'; write another one for '%s': --%s=N", port,
				manifest_text(manifest_get(c->m, n, "name")), c->name, option);
	}
}

/* Adds the port where it is not there; ret (nullable): as what a probe names it. */
static void
port_want(struct change *c, int64_t port, const char *name, char ret[32])
{
	struct node *there = port_find(c->m, c->container, port, NULL);
	const char  *its_name = there ? manifest_text(manifest_get(c->m, there, "name")) : name;
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
		port = port ? port : c->wish->profile_port;
		refuse_taken(c, port, "profile-port");
		lines_add(&c->words, "--profiling-bind-address=127.0.0.1:%" PRId64, port);
	}
	c->profiling_port = port;
	if (port)
		port_want(c, port, PPROF, NULL);
	if (c->wish->beside_dapr && port == COMPONENT_PORT_COMPONENTCTL_PROFILING)
		manifest_note(c->m, "dapr.io/enabled is \"true\": where Dapr's own injector is at work, its sidecar takes port %" PRId64
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
		port = port ? port : c->wish->health_port;
		refuse_taken(c, port, "health-port");
		lines_add(&c->words, "--health-probe-bind-address=:%" PRId64, port);
	}
	if (port && port == c->profiling_port && !at.at)
		manifest_fault(c->m, c->container, "container '%s': profiles and probes have the same port %" PRId64 "; write another one: "
			"--health-port=N or --profile-port=N", c->name, port);
	if (!port) {
		manifest_note(c->m, "container '%s' gets no probes: kubelet does not reach its --health-probe-bind-address '%s'; "
			"write :%" PRId64 " there", c->name, at.value, c->wish->health_port);
		return false;
	}
	/* Both may be said to be one listener; its port is there by now. */
	if (port != c->profiling_port || port_find(c->m, c->container, port, NULL))
		port_want(c, port, HEALTH, ret_port);
	else
		snprintf(ret_port, 32, "%s", PPROF);
	return true;
}

/* ---- writing it ---- */

/* All words in the list args, before an operand's "--". */
static void
words_put(struct change *c)
{
	struct node *before = c->args ? c->args->first : NULL;
	struct text  list = TEXT_INIT;

	while (before && strcmp(manifest_text(before), "--") != 0)
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
		manifest_note(c->m, "container '%s' had neither command nor args: what its image names as arguments (CMD) is replaced by these",
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

void
container_annotate(struct manifest *m, struct node *spec, struct node *container, const struct container_wish *wish)
{
	struct change change = { .m = m, .spec = spec, .container = container, .wish = wish }, *c = &change;
	char health[32];
	bool probes;

	c->name = manifest_text(manifest_get(c->m, c->container, "name"));
	if (container->anchored)
		manifest_fault(m, container, "container '%s' has an anchor (&name), by which others would change, too; write the values out", c->name);
	c->command = list_of(c, "command");
	c->args = list_of(c, "args");
	c->ports = list_of(c, "ports");
	/* One of its own says that it has its own idea of health. */
	probes = c->wish->probes && !manifest_get(c->m, c->container, "livenessProbe") &&
		!manifest_get(c->m, c->container, "readinessProbe") && !manifest_get(c->m, c->container, "startupProbe");
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
