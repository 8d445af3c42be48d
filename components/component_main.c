/*
 * component_main.c - a whole main(): the parts, the options, the loop, the status.
 *
 *     new -> use(health, metrics, profiling, yours) -> parse -> signals -> start -> loop
 *
 * The one place of the library that prints: what --help and the like want goes to
 * standard output, faults go to standard error, once, and the process is left by
 * returning from main(), never by exit() or a fork.
 *
 * What a stranger would get wrong: the signals are ours before anything starts, so
 * that a TERM during a slow start is honoured; and output that could not be written
 * ("--help >/dev/full") is a failure, since a script that reads it must notice.
 *
 * Tests: tests/components/entry_points.t; signals: tests/lifecycle/signals.t.
 */
#include <config.h>

#include <component/component.h>
#include <component/profiler.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "listen.h"
#include "profiling.h"
#include "profiling_rows.h"
#include "thread_dump.h"

#define STATUS_FAILED     1
#define INHERITED_FIRST   3   /* sd_listen_fds(3) */
#define INHERITED_NAME_MAX 256 /* bytes with NUL; systemd allows 255 */

/* Nothing of a fault may get lost: who has set no text has an errno. */
static void
print_fault(const char *name, int error, const struct component_error *err)
{
	const char *text = *err->text ? err->text : strerror(-error);
	const char *end;

	for (; *text; text = *end ? end + 1 : end) {
		end = text + strcspn(text, "\n");
		/* Lines of the options' own start with the name already. */
		if (strncmp(text, name, strlen(name)) == 0 && text[strlen(name)] == ':')
			fprintf(stderr, "%.*s\n", (int)(end - text), text);
		else if (strncmp(text, "Try '", 5) == 0)
			fprintf(stderr, "%.*s\n", (int)(end - text), text);
		else
			fprintf(stderr, "%s: %.*s\n", name, (int)(end - text), text);
	}
}

static int
print_output(const char *name, const char *text)
{
	if (fputs(text, stdout) >= 0 && fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	fprintf(stderr, "%s: cannot write to standard output: %s\n", name, strerror(errno));
	return STATUS_FAILED;
}

static int
use_parts(struct component *c, const struct component_spec *spec, struct component_error *err)
{
	int r = component_use(c, component_health(), err); /* these two listen for profiling, too, if they share an address */

	if (r == 0)
		r = component_use(c, component_metrics(), err);
	if (r == 0)
		r = component_use(c, component_profiling(), err);
	for (size_t i = 0; r == 0 && spec->parts && spec->parts[i]; i++)
		r = component_use(c, spec->parts[i](), err);
	return r;
}

/*
 * Sockets handed over that no option asked for: most often a name is misspelt, and
 * clients wait in a queue that nobody empties.  A warning and no more, since the
 * daemon may take them itself.
 */
static void
warn_unclaimed(struct component *c)
{
	struct address profiles = { 0 }, one;
	char           text[PROFILING_ADDRESS_MAX];
	int            count = listen_inherited();

	if (count > 0 && profiling_address(c, text, sizeof(text)))
		address_parse(text, &profiles, NULL, 0);
	for (int fd = INHERITED_FIRST; fd < INHERITED_FIRST + count; fd++) {
		char name[INHERITED_NAME_MAX], address[INHERITED_NAME_MAX + 8];

		if (listen_claimed(fd, name, sizeof(name)))
			continue;
		snprintf(address, sizeof(address), "fd:%d", fd);
		/* Profiling that is off has not asked for its own yet. */
		if (address_parse(address, &one, NULL, 0) == 0 && listen_fd_overlaps(&one, &profiles))
			continue;
		component_log(c, COMPONENT_LOG_WARNING, "an inherited socket is named by no option", "address", address,
			"name", name, NULL);
	}
}

static int
loop(struct component *c)
{
	struct pollfd ready = { .fd = component_fd(c), .events = POLLIN };
	int           status, r;

	while (!component_finished(c, &status)) {
		if (poll(&ready, 1, -1) < 0 && errno != EINTR)
			return -errno;
		r = component_dispatch(c);
		if (r < 0)
			return r;
	}
	return status;
}

int
component_main(const struct component_spec *spec, int argc, char **argv)
{
	struct component_error err = COMPONENT_ERROR_INIT;
	struct component      *c = NULL;
	int                    status = STATUS_FAILED, r;

	r = component_new(spec, &c, &err);
	if (r == 0)
		r = use_parts(c, spec, &err);
	if (r == 0)
		r = component_parse(c, argc, argv, &err);
	if (r > 0) {
		status = print_output(spec->name, component_flags_output(component_flags(c)));
		goto out;
	}
	thread_dump_set(component_dump_threads);
	if (r == 0)
		r = component_signals_install(c, &err);
	if (r == 0)
		r = component_start(c, &err);
	if (r == 0) {
		warn_unclaimed(c);
		r = status = loop(c);
	}
	if (r < 0) {
		print_fault(spec && spec->name ? spec->name : "component_main", r, &err);
		status = STATUS_FAILED;
		component_finished(c, &status);
	}
out:
	component_free(c);
	return status;
}
