/*
 * test_refresh.c - the tables follow objects that come and go.
 *
 * A plugin is built from the same source twice, with frames of different sizes, and
 * loaded, walked through, unloaded and replaced.  Walks start below its function.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tables.h"
#include "tables_lookup.h"
#include "unwind.h"
#include "wake.h"
#include "want.h"
#include "skip.h"
#include "waiting.h"

typedef int plugin_fn(int (*call)(void *), void *arg);

struct walk {
	uintptr_t pcs[64];
	unsigned  count;
	int       truncated;
};

static int __attribute__((noinline))
walk_here(void *arg)
{
	struct unwind_regs regs = UNWIND_REGS_HERE;
	struct walk       *w = arg;

	w->count = unwind_capture(&regs, w->pcs, 64, &w->truncated);
	return (int)w->count;
}

static bool
until(bool (*holds)(void *), void *arg)
{
	bool held;

	WAIT_FOR_S((held = holds(arg)), 30);
	return held;
}

static plugin_fn *
plugin_load(const char *name, void **ret_handle)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/tests/programs/.libs/%s.so", getenv("top_builddir") ? getenv("top_builddir") : ".", name);
	*ret_handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!*ret_handle)
		fail_msg("%s", dlerror());
	return (plugin_fn *)dlsym(*ret_handle, "plugin_call");
}

static bool
walk_is_whole(void *arg)
{
	plugin_fn  *call = (plugin_fn *)arg;
	struct walk direct, w;

	/* Through the plugin it is one frame more; by its frame pointer alone, which is
	 * ours, a frame would be missing. */
	walk_here(&direct);
	call(walk_here, &w);
	return w.truncated == 0 && w.count == direct.count + 1;
}

static void
a_plugin_that_is_loaded_is_walked_through_soon(void **state)
{
	struct tables_stats before, after;
	plugin_fn          *call;
	void               *handle;

	(void)state;
	assert_int_equal(unwind_start(UNWIND_TABLES), 0);
	tables_stats(&before);
	call = plugin_load("unwind_plugin_small", &handle);
	assert_true(until(walk_is_whole, (void *)call));
	tables_stats(&after);
	assert_int_equal(after.objects, before.objects + 1);
	dlclose(handle);
	unwind_refresh();
	tables_stats(&after);
	assert_int_equal(after.objects, before.objects);
}

static void
another_plugin_in_the_same_place_has_its_own_rules(void **state)
{
	plugin_fn *call;
	void      *handle;

	(void)state;
	/* The thread's own looks come as slowly as it may spend on them: two of them will do. */
	unwind_busy(true);
	for (int i = 0; i < 20; i++) {
		call = plugin_load(i & 1 ? "unwind_plugin_large" : "unwind_plugin_small", &handle);
		if (i >= 2)
			unwind_refresh();
		assert_true(i < 2 ? until(walk_is_whole, (void *)call) : walk_is_whole((void *)call));
		dlclose(handle);
	}
	unwind_busy(false);
}

static void
made_code_leaves_room_for_a_plugin_beside_a_reader_that_never_leaves(void **state)
{
	struct tables_reader reader;
	struct tables_stats  before, after;
	void                *handle, *code;
	int                  err = 0;

	(void)state;
	unwind_stop();
	assert_int_equal(tables_build(), 0);
	tables_stats(&before);
	assert_non_null(tables_enter(&reader));
	for (uintptr_t made = 1 << 20; !err && made < 256 << 20; made += 8192) /* nobody looks there */
		err = tables_add_range(made, made + 4096);
	assert_int_equal(err, -EBUSY);
	/* Nor when it is found by a look at all mappings. */
	code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(code != MAP_FAILED);
	assert_int_equal(tables_build(), -EBUSY);
	plugin_load("unwind_plugin_small", &handle);
	assert_int_equal(tables_build(), 0);
	tables_stats(&after);
	assert_int_equal(after.objects, before.objects + 1);
	assert_true(tables_has_code((uintptr_t)code));
	tables_leave(&reader);
	tables_drop();
	munmap(code, 4096);
	dlclose(handle);
}

static void
what_a_look_has_found_is_wanted_again_when_it_is_gone(void **state)
{
	void     *handle;
	uintptr_t found = (uintptr_t)plugin_load("unwind_plugin_small", &handle);
	uintptr_t nothing = ((found / 4096 + 1) % 8 + 8) * 4096; /* in another slot */

	(void)state;
	unwind_stop(); /* its thread asks as well */
	unwind_want_forget();
	assert_true(unwind_want_note(found));
	assert_true(unwind_want_note(nothing));
	assert_true(unwind_want_settle(-1));
	assert_int_equal(tables_build(), 0);
	unwind_want_looked();
	assert_true(unwind_want_note(found));
	assert_false(unwind_want_note(nothing));
	unwind_want_settle(-1);
	unwind_want_forget();
	tables_drop();
	dlclose(handle);
}

static atomic_bool done;

static void *
walk_on_and_on(void *arg)
{
	struct walk w;

	(void)arg;
	while (!done)
		walk_here(&w);
	return NULL;
}

/* A walk that has no processor for long keeps its tables, and then others must wait. */
static bool
tables_are_built(void *arg)
{
	int r = tables_build();

	(void)arg;
	assert_true(r == 0 || r == -EBUSY);
	return r == 0;
}

static void
walks_go_on_while_tables_are_replaced(void **state)
{
	pthread_t threads[4];
	void     *handle;

	(void)state;
	done = false;
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, walk_on_and_on, NULL), 0);
	for (int i = 0; i < 300; i++) {
		plugin_load(i & 1 ? "unwind_plugin_large" : "unwind_plugin_small", &handle);
		assert_true(until(tables_are_built, NULL));
		dlclose(handle);
		assert_true(until(tables_are_built, NULL));
	}
	done = true;
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

static void
a_reader_that_never_leaves_costs_bounded_memory(void **state)
{
	struct tables_reader reader;
	struct tables_stats  stats;
	int                  built = 0, refused = 0, err;

	(void)state;
	assert_non_null(tables_enter(&reader));
	for (int i = 0; i < 40; i++) {
		err = tables_build();
		assert_true(err == 0 || err == -EBUSY);
		built += err == 0;
		refused += err == -EBUSY;
	}
	assert_true(built > 0 && built < 20);
	assert_true(refused > 0);
	tables_stats(&stats);
	assert_true(stats.limbo >= (size_t)built && stats.limbo < 20); /* the thread builds, too */
	tables_leave(&reader);
	assert_int_equal(tables_build(), 0);
	tables_stats(&stats);
	assert_int_equal(stats.limbo, 0);
}

static void
a_child_walks_by_the_tables_of_its_parent(void **state)
{
	struct walk w;
	pid_t       pid;
	int         status = -1;

	(void)state;
	pid = fork();
	if (pid == 0) {
		unwind_forked();
		walk_here(&w);
		_exit(w.truncated == 0 && w.count > 2 && strcmp(unwind_name(), "tables") == 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void
the_first_tables_wait_for_the_first_stack_and_it_is_whole(void **state)
{
	struct walk direct, w;
	plugin_fn  *call;
	void       *handle;

	(void)state;
	unwind_stop();
	call = plugin_load("unwind_plugin_small", &handle);
	/* The thread is owed its look after 50 ms: on a busy machine it may win. */
	for (int i = 0, waited = 0; waited < 3 && i < 100; i++) {
		assert_int_equal(unwind_start(UNWIND_AUTO), 0);
		waited += unwind_first_is_owed();
		call(walk_here, &w);
		assert_false(unwind_first_is_owed());
		walk_here(&direct);
		assert_int_equal(w.truncated, 0);
		assert_int_equal(w.count, direct.count + 1);
		unwind_stop();
	}
	assert_int_equal(unwind_start(UNWIND_AUTO), 0);
	unwind_ready();
	assert_false(unwind_first_is_owed());
	dlclose(handle);
	unwind_stop();
}

#define SPANNED 8192 /* bytes of code, of two instructions at least */

/* What it calls, it calls from another page than the one that it begins on; its frame is known by its first rows alone. */
static __attribute__((noinline)) int
across_pages(int (*call)(void *), void *arg)
{
	volatile int around[50] = { 0 };

	__asm__ volatile(".rept 8192\n\tnop\n\t.endr" ::: "memory");
	around[0] = call(arg);
	return around[0] + 1;
}

/* The rule of that pc. */
static uint32_t
code_at(uintptr_t pc)
{
	struct tables_reader reader;
	const struct tables *t = tables_enter(&reader);
	uint32_t             code = t ? tables_code(t, pc) : TABLES_CODE_NONE;

	tables_leave(&reader);
	return code;
}

static void
text_that_is_split_into_mappings_has_its_rows_on_each(void **state)
{
	uintptr_t   page = (uintptr_t)sysconf(_SC_PAGESIZE), at;
	uint32_t    code;
	struct walk whole, w;

	(void)state;
	if (page > SPANNED)
		SKIP("pages are too large here");
	assert_int_equal(unwind_start(UNWIND_TABLES), 0);
	across_pages(walk_here, &whole);
	assert_int_equal(whole.truncated, 0);
	code = code_at(whole.pcs[1]);
	assert_int_not_equal(code, TABLES_CODE_NONE);
	unwind_stop();
	at = whole.pcs[1] & ~(page - 1);
	assert_true(at > (uintptr_t)across_pages);
	assert_int_equal(madvise((void *)at, page, MADV_SEQUENTIAL), 0);
	assert_int_equal(unwind_start(UNWIND_TABLES), 0);
	across_pages(walk_here, &w);
	assert_int_equal(w.truncated, 0);
	assert_int_equal(w.count, whole.count);
	assert_int_equal(code_at(w.pcs[1]), code);
	unwind_stop();
	assert_int_equal(madvise((void *)at, page, MADV_NORMAL), 0);
}

static void
stopped_it_walks_by_frame_pointers_and_has_no_thread(void **state)
{
	(void)state;
	for (int i = 0; i < 50; i++) {
		assert_int_equal(unwind_start(UNWIND_AUTO), 0);
		assert_string_equal(unwind_name(), "tables");
		unwind_stop();
		assert_string_equal(unwind_name(), "frame-pointer");
	}
	assert_int_equal(unwind_start(UNWIND_FRAME_POINTER), 0);
	assert_string_equal(unwind_name(), "frame-pointer");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_plugin_that_is_loaded_is_walked_through_soon),
		cmocka_unit_test(another_plugin_in_the_same_place_has_its_own_rules),
		cmocka_unit_test(walks_go_on_while_tables_are_replaced),
		cmocka_unit_test(a_reader_that_never_leaves_costs_bounded_memory),
		cmocka_unit_test(a_child_walks_by_the_tables_of_its_parent),
		cmocka_unit_test(the_first_tables_wait_for_the_first_stack_and_it_is_whole),
		cmocka_unit_test(text_that_is_split_into_mappings_has_its_rows_on_each),
		cmocka_unit_test(stopped_it_walks_by_frame_pointers_and_has_no_thread),
		cmocka_unit_test(made_code_leaves_room_for_a_plugin_beside_a_reader_that_never_leaves),
		cmocka_unit_test(what_a_look_has_found_is_wanted_again_when_it_is_gone),
	};

	return cmocka_run_group_tests_name("unwind_refresh", tests, NULL, NULL);
}
