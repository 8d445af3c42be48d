/*
 * source.h - tells which files below a directory may have changed.
 *
 * Knows nothing of components or queues: it has one descriptor to watch and says
 * keys, which are paths relative to the directory.  One thread at a time.
 */
#ifndef CONTROLLERS_SOURCE_H
#define CONTROLLERS_SOURCE_H

#include <stddef.h>
#include <stdint.h>

#include <component/error.h>

struct source;

struct source_events {
	/* The file may have changed, come or gone.  settle_ns: look no sooner than
	 * that, its writer has just begun or it may come back; 0 is the rule. */
	void (*changed)(const char *key, int64_t settle_ns, void *arg);
	/* Something cannot be watched; a sentence for the log. */
	void (*trouble)(const char *text, void *arg);
	void *arg;
};

/* Watches from now on; says nothing before source_rescan() or source_read(). */
int  source_new(const char *directory, const struct source_events *events, struct source **ret, struct component_error *err);
/* Non-blocking; readable when source_read() has work.  The same for the source's life. */
int  source_fd(const struct source *s);
/* Reads what is there, at most SOURCE_READ_MAX bytes of it, so that a loop gets on. */
void source_read(struct source *s);
/* Looks at everything: says every file there is, and every one known that has gone. */
void source_rescan(struct source *s);
/* Is a part of the tree unwatched (limits, root gone or, on a local file system, another one), or was there
 * a link to a directory just after a look at everything?  Ask now and then, and rescan. */
int  source_is_blind(struct source *s);
size_t source_file_count(const struct source *s);
void source_free(struct source *s);

#endif
