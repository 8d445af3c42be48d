/*
 * ready.c - checks, and telling the service manager once all of them pass.
 *
 * Tests: tests/lifecycle/test_config.c, tests/lifecycle/test_notify.c.
 */
#include <config.h>

#include "life.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* How often checks are asked while the service manager waits to be told. */
#define READY_RETRY_NS (100 * 1000000LL)

int
component_check_add(struct component *c, const char *name, component_check_fn *fn, void *arg)
{
	struct check **end = &c->checks;
	struct check  *made;

	if (!name || !*name || !fn)
		return -EINVAL;
	if (!strcmp(name, "running") || !strcmp(name, "loop")) /* /readyz has both before the others */
		return -EEXIST;
	for (; *end; end = &(*end)->next)
		if (!strcmp((*end)->name, name))
			return -EEXIST;
	made = calloc(1, sizeof(*made) + strlen(name) + 1);
	if (!made)
		return -ENOMEM;
	made->fn = fn;
	made->arg = arg;
	strcpy(made->name, name);
	*end = made;
	return 0;
}

size_t
component_checks_run(struct component *c, component_check_visit_fn *visit, void *arg)
{
	enum component_phase phase = component_phase(c);
	int                  running = phase == COMPONENT_PHASE_RUNNING ? 0 : -EAGAIN;
	size_t               failed = running < 0;

	if (visit)
		visit(arg, "running", running, running < 0 ? component_phase_text(phase) : "");
	for (struct check *k = c->checks; k; k = k->next) {
		struct component_error err = COMPONENT_ERROR_INIT;
		int                    status = k->fn(c, k->arg, &err);

		if (status < 0 && !err.text[0])
			component_error_set(&err, "%s", strerror(-status));
		failed += status < 0;
		if (visit)
			visit(arg, k->name, status < 0 ? status : 0, err.text);
	}
	return failed;
}

/* True once told, or when nobody wants to know. */
static bool
tell(struct component *c)
{
	if (component_checks_run(c, NULL, NULL) > 0)
		return false;
	/* A full queue is the manager's; it is told later. */
	c->told_ready = notify_send(&c->notify, "READY=1\nSTATUS=running") != -EAGAIN;
	return c->told_ready;
}

static void
on_retry(struct component *c, void *arg)
{
	(void)arg;
	if (component_phase(c) == COMPONENT_PHASE_RUNNING && !tell(c))
		return;
	component_timer_remove(c->ready_timer);
	c->ready_timer = NULL;
}

void
ready_watch(struct component *c)
{
	if (c->notify.size == 0 || tell(c))
		return;
	component_timer_add(c, READY_RETRY_NS, READY_RETRY_NS, on_retry, NULL, &c->ready_timer);
}

void
ready_free(struct component *c)
{
	while (c->checks) {
		struct check *next = c->checks->next;

		free(c->checks);
		c->checks = next;
	}
}
