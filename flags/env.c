/*
 * env.c - options from the environment.
 *
 * For --enable-pprof of backend-controller, the first of these that is not empty:
 *
 *     BACKEND_CONTROLLER_ENABLE_PPROF, COMPONENT_ENABLE_PPROF, ENABLE_PROFILING
 *     own prefix, names then aliases   shared prefix          the row's env member
 *
 * What would surprise: an alias variable may do more than set its row.  The enables
 * member names a bool row that it switches on as well (PPROF_BIND_ADDRESS=:6060 is
 * all that some deployments write), unless that row was given anywhere.  This looks
 * at the config file too, so it runs after it: flags_env_enable().
 *
 * Under AT_SECURE (set-user-ID, file capabilities) the environment belongs to whoever
 * started us, and nothing of it is read; a warning says so if there was anything.
 *
 * Kubernetes puts BACKEND_CONTROLLER_SERVICE_HOST and the like into every pod that
 * sees a service of our name, or of one that begins with it; those are not slips and
 * raise no warning.  One that has the name of an option's, BACKEND_CONTROLLER_PROFILE_PORT=tcp://10.0.0.1:6060
 * for --profile-port, is not taken for it, and a warning says so.
 *
 * Tests: tests/flags/test_env.c.
 */
#include <config.h>

#include "registry.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LABEL_MAX 320 /* bytes of "environment variable NAME" */

struct env_read {
	struct component_flags  *f;
	struct flag_round       *round;
	const struct flag_entry *entry;
	const char              *variable; /* is this one ours? */
	size_t                   size;
	char                     found[LABEL_MAX]; /* the alias variable that enables */
};

/* As it is now: setenv() may move it between a parse and a reload. */
static const char *const *
environment_of(const struct component_flags *f)
{
	return f->environment ? f->environment : (const char *const *)environ;
}

/* "" and unset are one. */
const char *
flags_env_get(const struct component_flags *f, const char *name)
{
	size_t size = strlen(name);

	for (const char *const *e = environment_of(f); e && *e; e++)
		if (strncmp(*e, name, size) == 0 && (*e)[size] == '=')
			return (*e)[size + 1] ? *e + size + 1 : NULL;
	return NULL;
}

static void
take(struct env_read *r, const char *variable, const char *text)
{
	char label[LABEL_MAX], source[LABEL_MAX];

	snprintf(label, sizeof(label), "environment variable %s", variable);
	snprintf(source, sizeof(source), "env:%s", variable);
	flag_round_set(r->f, r->round, r->entry, LEVEL_ENV, text, label, source);
}

static int
is_variable(void *arg, const char *variable, bool own)
{
	struct env_read *r = arg;

	(void)own;
	return strlen(variable) == r->size && memcmp(variable, r->variable, r->size) == 0;
}

static bool
is_known(struct component_flags *f, const char *variable, size_t size)
{
	struct env_read r = { .f = f, .variable = variable, .size = size };

	for (size_t i = 0; i < f->count; i++)
		if (flags_env_each(f, &f->entries[i], is_variable, &r))
			return true;
	return false;
}

/*
 * What Kubernetes tells of a service, ours or one whose name begins with ours:
 * SERVICE_HOST, SERVICE_PORT[_NAME], PORT=tcp://..., PORT_6060_TCP[_ADDR...], each
 * with the rest of the service's name before it.
 */
static bool
is_service(const char *rest, size_t size, const char *value)
{
	for (size_t i = 0; i < size; i++) {
		const char *s = rest + i;
		size_t      left = size - i;

		if (i > 0 && rest[i - 1] != '_')
			continue;
		if (left == strlen("SERVICE_HOST") && memcmp(s, "SERVICE_HOST", left) == 0)
			return true;
		if (left >= strlen("SERVICE_PORT") && memcmp(s, "SERVICE_PORT", strlen("SERVICE_PORT")) == 0 &&
		    (left == strlen("SERVICE_PORT") || s[strlen("SERVICE_PORT")] == '_'))
			return true;
		if (left == strlen("PORT") && memcmp(s, "PORT", left) == 0 && strstr(value, "://"))
			return true;
		if (left > strlen("PORT_") && memcmp(s, "PORT_", strlen("PORT_")) == 0 && isdigit((unsigned char)s[strlen("PORT_")]))
			return true;
	}
	return false;
}

static size_t
prefix_size(const char *name, const char *variable, size_t size)
{
	size_t n = strlen(name);

	if (size <= n + 1 || variable[n] != '_')
		return 0;
	for (size_t i = 0; i < n; i++)
		if (variable[i] != (isalnum((unsigned char)name[i]) ? toupper((unsigned char)name[i]) : '_'))
			return 0;
	return n + 1;
}

/* Of our names. */
static size_t
own_prefix_size(const struct component_flags *f, const char *variable, size_t size)
{
	size_t prefix = prefix_size(f->spec.name, variable, size);

	return prefix ? prefix : prefix_size("component", variable, size);
}

static bool
is_service_variable(const struct component_flags *f, const char *variable, size_t size, const char *value)
{
	size_t prefix = own_prefix_size(f, variable, size);

	return is_service(variable + prefix, size - prefix, value);
}

/* As Kubernetes writes it: an option's own value may be a URL, too. */
static bool
is_url_of_service(const char *text)
{
	return !strncmp(text, "tcp://", 6) || !strncmp(text, "udp://", 6) || !strncmp(text, "sctp://", 7);
}

static int
take_first(void *arg, const char *variable, bool own)
{
	struct env_read *r = arg;
	const char      *text = flags_env_get(r->f, variable);

	if (!text)
		return 0;
	if (own && is_url_of_service(text) && is_service_variable(r->f, variable, strlen(variable), text)) {
		lines_add(&r->round->warnings, "environment variable %s is ignored: it tells of a service of Kubernetes", variable);
		return 0;
	}
	take(r, variable, text);
	return 1;
}

static void
warn_unknown(struct component_flags *f, struct flag_round *round, const char *variable, size_t size, size_t prefix)
{
	char        name[128] = "", near[128];
	struct text t = TEXT_INIT, quoted = TEXT_INIT;

	for (size_t i = prefix; i < size && i - prefix < sizeof(name) - 1; i++)
		name[i - prefix] = variable[i] == '_' ? '-' : (char)tolower((unsigned char)variable[i]);
	text_add_bytes(&t, variable, size);
	text_add_quoted(&quoted, text_string(&t));
	text_release(&t);
	text_add(&t, "environment variable %s belongs to no option and is ignored", text_string(&quoted));
	if (*flags_nearest(f, PLACE_ENV, name, near, sizeof(near))) {
		for (char *s = near; *s; s++)
			*s = *s == '-' ? '_' : (char)toupper((unsigned char)*s);
		text_add(&t, "; did you mean '%.*s%s'?", (int)prefix, variable, near);
	}
	lines_add(&round->warnings, "%s", text_string(&t));
	text_release(&quoted);
	text_release(&t);
}

static void
look_for_unknown(struct component_flags *f, struct flag_round *round)
{
	for (const char *const *e = environment_of(f); e && *e; e++) {
		size_t size = strcspn(*e, "=");
		size_t prefix = own_prefix_size(f, *e, size);

		if (prefix > 0 && (*e)[size] && (*e)[size + 1] && !is_known(f, *e, size) &&
		    !is_service_variable(f, *e, size, *e + size + 1))
			warn_unknown(f, round, *e, size, prefix);
	}
}

static void
warn_secure(struct component_flags *f, struct flag_round *round)
{
	for (const char *const *e = environment_of(f); e && *e; e++) {
		size_t size = strcspn(*e, "=");

		if ((*e)[size] && (*e)[size + 1] && is_known(f, *e, size)) {
			lines_add(&round->warnings, "environment variables are ignored, %.*s among them: "
				"the program was started with other privileges than its caller's", (int)size, *e);
			return;
		}
	}
}

void
flags_env_read(struct component_flags *f, struct flag_round *round)
{
	struct env_read r = { .f = f, .round = round };

	if (f->secure) {
		warn_secure(f, round);
		return;
	}
	for (size_t i = 0; i < f->count; i++) {
		r.entry = &f->entries[i];
		flags_env_each(f, r.entry, take_first, &r);
	}
	look_for_unknown(f, round);
}

static int
find_enabling(void *arg, const char *variable, bool own)
{
	struct env_read *r = arg;
	const char      *text = own ? NULL : flags_env_get(r->f, variable);

	if (!text || strcmp(text, "0") == 0)
		return 0;
	snprintf(r->found, sizeof(r->found), "%s", variable);
	return 1;
}

/* The strongest level at which somebody gave it, or LEVEL_DEFAULT. */
static enum flag_level
given_level(struct component_flags *f, struct flag_round *round, const struct flag_entry *e)
{
	for (int level = LEVEL_LINE; level >= LEVEL_FILE; level--)
		if (flag_round_at(round, f, e, (enum flag_level)level)->set)
			return (enum flag_level)level;
	return LEVEL_DEFAULT;
}

void
flags_env_enable(struct component_flags *f, struct flag_round *round)
{
	struct env_read r = { .f = f, .round = round };

	for (size_t i = 0; i < f->count && !f->secure; i++) {
		const struct flag_entry *from = &f->entries[i];
		const char              *name = from->row.enables;
		enum flag_level          level;

		if (!name || !flags_env_each(f, from, find_enabling, &r))
			continue;
		r.entry = flags_find(f, name, strlen(name), NULL);
		level = given_level(f, round, r.entry);
		if (level == LEVEL_DEFAULT)
			take(&r, r.found, "true");
		else if (!flag_round_at(round, f, r.entry, level)->value.boolean)
			lines_add(&round->warnings, "environment variable %s has no effect: --%s is switched off by %s",
				r.found, name, level == LEVEL_LINE ? "the command line" : level == LEVEL_ENV ?
				flag_round_at(round, f, r.entry, level)->source + strlen("env:") : "the config file");
	}
}
