/*
 * labels.h - on whose behalf a thread works: labels that its samples carry, as
 * pprof.Do() and pprof.SetGoroutineLabels() give them to goroutines.
 *
 *     component_label_set("tenant", name);            until it is cleared
 *
 *     {
 *             COMPONENT_LABEL_SCOPE("request", path); until the end of this block
 *             ...
 *     }
 *
 * CPU, heap and goroutine profiles tell samples of different labels apart:
 *
 *     go tool pprof -tags http://127.0.0.1:6060/debug/pprof/profile
 *     go tool pprof -tagfocus=tenant=acme http://127.0.0.1:6060/debug/pprof/heap
 *
 * Labels are the thread's own, whether a profiling server runs or not; a thread that it
 * makes begins with the same ones, where the program has the library's hooks.  Those of a
 * heap sample are of who allocated, also when another thread frees.  Equal labels are
 * kept once.
 *
 * A label may have as many values as there are requests: those that no thread and no
 * profile holds any more go again.  But heap profiles are of all that has ever been, so
 * that only so many sites and labels are told apart there; the rest counts without.
 */
#ifndef COMPONENT_LABELS_H
#define COMPONENT_LABELS_H

#include <component/export.h>

COMPONENT_BEGIN

#define COMPONENT_LABEL_KEY_MAX   64  /* bytes */
#define COMPONENT_LABEL_VALUE_MAX 255 /* bytes */
#define COMPONENT_LABELS_MAX      16  /* of one thread, at the same time */
#define COMPONENT_LABELS_BYTES_MAX 1024 /* all keys and values of one thread, a zero after each */
#define COMPONENT_LABEL_SCOPES_MAX 20 /* scopes within scopes that bring the labels of before back */

/*
 * component_label_set - label what the calling thread does from now on
 *
 * Until component_label_clear(), the end of the scope around it, or another value.  A
 * value of NULL or "" takes the label away.  Costs some 400 instructions, and takes no lock,
 * where the thread had the same labels a little while ago.
 *
 *   key      1 to COMPONENT_LABEL_KEY_MAX bytes; in UTF-8, as the value is
 *   value    at most COMPONENT_LABEL_VALUE_MAX bytes
 *
 *   returns  0; or, with the labels as they were (a comment of the profiles counts these),
 *              -EINVAL  the key or the value is too long, or there is no key
 *              -E2BIG   there are COMPONENT_LABELS_MAX, or they are too long together
 *              -ENOMEM  label sets take a quarter of --profiling-memory already, or
 *                       32,768 threads have labels
 *              -EAGAIN  from inside of a call of this header, in a signal handler; or other
 *                       threads kept the table of stacks for two seconds
 *
 *   owns     both are copied
 *   threads  any, for itself; the library's own have no labels: -EPERM
 *   signals  not from a handler
 *   fork     the child's thread keeps its labels
 *   source   profiler/collect/labels/api.c
 */
COMPONENT_API int component_label_set(const char *key, const char *value);

/* component_label_clear - take a label away, or all of them (NULL).  0, also when there
 * was none; the rest as component_label_set(). */
COMPONENT_API int component_label_clear(const char *key);

/*
 * A scope: at its end the thread has the labels back that it had when it began, whatever
 * was set and cleared in between.  Scopes lie in each other; the end of one is that of all
 * within it, so that one which is left by longjmp() ends with the next around it.
 */
struct component_label_scope {
	unsigned depth; /* the library's */
};

/*
 * component_label_scope_begin - begin a scope, and label what is done in it
 *
 * Never fails: where the label cannot be set (see component_label_set()) the scope has the
 * labels of before.  More than COMPONENT_LABEL_SCOPES_MAX within each other are allowed,
 * but those that are deeper bring nothing back at their ends: the last of these does.
 *
 *   key      NULL: the scope alone
 *   threads  a scope is the thread's that began it, and ends there or with it
 *   The rest as component_label_set().
 */
COMPONENT_API struct component_label_scope component_label_scope_begin(const char *key, const char *value);
/* Ends it, and those within it that have not ended. */
COMPONENT_API void component_label_scope_end(const struct component_label_scope *scope);

/*
 * COMPONENT_LABEL_SCOPE - a scope until the end of the block, however that is left
 *
 * By return, goto, break, and in C++ by an exception; pthread_exit() and cancellation end
 * the thread and its labels with it.  For gcc and clang, in C and C++.
 */
#define COMPONENT_LABEL_SCOPE(key, value) COMPONENT_LABEL_SCOPE_AT(key, value, __LINE__)
#define COMPONENT_LABEL_SCOPE_AT(key, value, line) COMPONENT_LABEL_SCOPE_NAMED(key, value, line)
#define COMPONENT_LABEL_SCOPE_NAMED(key, value, line)                                       \
	__attribute__((unused, cleanup(component_label_scope_end)))                         \
	const struct component_label_scope component_label_scope_##line =                   \
		component_label_scope_begin(key, value)

/*
 * Labels for later: work that waits and goes on in another callback or thread takes the
 * labels along that it began with.
 *
 *     task->labels = component_labels_keep();             when it is put aside
 *
 *     COMPONENT_LABEL_SCOPE(NULL, NULL);                  when it goes on
 *     component_labels_use(&task->labels);
 *
 *     component_labels_release(&task->labels);            when it is done
 *
 * All zero is no labels, and needs no release.
 */
struct component_labels {
	unsigned set; /* the library's */
};

/* component_labels_keep - the labels that the calling thread has now.  Threads and signals
 * as component_label_set(); fork: the child has its own. */
COMPONENT_API struct component_labels component_labels_keep(void);

/*
 * component_labels_use - give the calling thread these labels, instead of those it has
 *
 * Until the end of the scope around it, or a change.  Some 120 instructions, no lock.
 *
 *   kept     stays the caller's; NULL or all zero: no labels
 *   threads  any; several may use the same at once
 *   The rest as component_label_set().
 */
COMPONENT_API int component_labels_use(const struct component_labels *kept);

/* component_labels_release - they are not needed any more; *kept becomes all zero.  Any
 * thread, not from a handler. */
COMPONENT_API void component_labels_release(struct component_labels *kept);

COMPONENT_END

#endif
