/*
 * held_work.c - work in progress, by name, which a graceful stop waits for.
 *
 * A name is kept once with a count, as long as it is held.  Once a stop has seen all of them released it
 * closes the list, so that nothing can begin behind its back; until then work that
 * ends may begin more.  It opens it once more for the parts that are last to stop, to
 * its own thread alone.
 *
 * Tests: tests/lifecycle/test_order.c.
 */
#include <config.h>

#include "life.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "our_lock.h"

/* What points at it, or at the end. */
static struct hold **
hold_find(struct component *c, const char *name)
{
	struct hold **at = &c->holds;

	while (*at && strcmp((*at)->name, name))
		at = &(*at)->next;
	return at;
}

int
component_hold(struct component *c, const char *name)
{
	sigset_t     mask;
	struct hold *made = NULL, *h;
	int          result = 0;

	if (!name || !*name)
		return -EINVAL;
	/* Allocated before it may be needed: nothing but memory under the lock. */
	made = calloc(1, sizeof(*made) + strlen(name) + 1);
	if (!made)
		return -ENOMEM;
	strcpy(made->name, name);
	our_lock_take(&c->hold_lock, &mask);
	if (c->holds_closed && !(c->has_opener && pthread_equal(c->opener, pthread_self()))) {
		result = -ESHUTDOWN;
		goto out;
	}
	h = *hold_find(c, name);
	if (!h) {
		h = made;
		made = NULL; /* the list has it now */
		h->next = c->holds;
		c->holds = h;
	}
	h->count++;
	c->hold_count++;
out:
	our_lock_release(&c->hold_lock, &mask);
	free(made);
	return result;
}

void
component_release(struct component *c, const char *name)
{
	sigset_t      mask;
	struct hold **at, *gone = NULL;
	bool          known = false;

	our_lock_take(&c->hold_lock, &mask);
	at = name ? hold_find(c, name) : NULL;
	if (at && *at) {
		known = true;
		if (--(*at)->count == 0) {
			gone = *at;
			*at = gone->next;
		}
		/* Within the lock: whoever finds all released may free the component once it has been taken. */
		if (--c->hold_count == 0)
			phase_request(c, REQUEST_RELEASED);
	}
	our_lock_release(&c->hold_lock, &mask);
	free(gone);
	if (!known)
		component_log(c, COMPONENT_LOG_WARNING, "released what was not held", "hold",
			name ? name : "", NULL);
}

bool
held_work_text(struct component *c, char *buf, size_t size)
{
	sigset_t mask;
	size_t   used = 0;

	buf[0] = '\0';
	our_lock_take(&c->hold_lock, &mask);
	for (const struct hold *h = c->holds; h; h = h->next) {
		int wrote = snprintf(buf + used, size - used, h->count > 1 ? "%s%s (%u)" : "%s%s",
			used ? ", " : "", h->name, h->count);

		if (wrote < 0 || (size_t)wrote >= size - used)
			break; /* the list is cut, which its reader sees */
		used += (size_t)wrote;
	}
	our_lock_release(&c->hold_lock, &mask);
	return used > 0;
}

bool
held_work_any(struct component *c)
{
	sigset_t mask;
	bool     any;

	our_lock_take(&c->hold_lock, &mask);
	any = c->hold_count != 0;
	our_lock_release(&c->hold_lock, &mask);
	return any;
}

bool
held_work_close(struct component *c, bool by_force)
{
	sigset_t mask;
	bool     closed;

	our_lock_take(&c->hold_lock, &mask);
	closed = c->holds_closed = by_force || c->hold_count == 0;
	c->has_opener = false;
	our_lock_release(&c->hold_lock, &mask);
	return closed;
}

void
held_work_open(struct component *c)
{
	sigset_t mask;

	our_lock_take(&c->hold_lock, &mask);
	c->has_opener = true;
	c->opener = pthread_self();
	our_lock_release(&c->hold_lock, &mask);
}

void
held_work_free(struct component *c)
{
	while (c->holds) {
		struct hold *next = c->holds->next;

		free(c->holds);
		c->holds = next;
	}
	pthread_mutex_destroy(&c->hold_lock);
}
