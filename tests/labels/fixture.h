/*
 * fixture.h - what tests of labels share: reading one's own, and a thread that has some.
 */
#ifndef TESTS_LABELS_FIXTURE_H
#define TESTS_LABELS_FIXTURE_H

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include <component/labels.h>

#include "labels/thread.h"
#include "waiting.h"

/* What the calling thread has, as text. */
static inline const char *
mine(void)
{
	static _Thread_local char text[LABELS_TEXT_MAX];
	uint32_t                  set = labels_here();

	labels_text(set, text, sizeof(text));
	labels_unref(set);
	return text;
}

/* Nobody holds any set any more, not even for later. */
static inline int
nothing_is_left(void **state)
{
	(void)state;
	labels_thread_ending();
	return stack_table_labels_bytes() == 0 ? 0 : -1;
}

static inline void *
say_mine(void *arg)
{
	strcpy(arg, mine());
	component_label_set("own", "of the child");
	return NULL;
}

struct other {
	_Atomic int tid, go;
};

static inline void *
label_and_wait(void *arg)
{
	struct other *o = arg;

	component_label_set("tenant", "first");
	atomic_store(&o->tid, (int)syscall(SYS_gettid));
	WAIT_FOR(atomic_load(&o->go));
	component_label_clear("tenant");
	atomic_store(&o->tid, -1);
	WAIT_FOR(atomic_load(&o->go) >= 2);
	return NULL;
}

#endif
