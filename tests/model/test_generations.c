/*
 * test_generations.c - addresses know whose they are: objects that come, go, come
 * back, and take each other's places, with and without a look in between.
 */
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "generations.h"
#include "maps.h"
#include "stack_table.h"

static void *handle;

/* The address of a plugin's function. */
static uintptr_t
load(const char *name)
{
	char      path[4096];
	uintptr_t at;

	snprintf(path, sizeof(path), "%s/tests/programs/.libs/%s.so", getenv("top_builddir") ? getenv("top_builddir") : ".", name);
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		fail_msg("%s", dlerror());
	at = (uintptr_t)dlsym(handle, "plugin_call");
	assert_true(at != 0);
	return at;
}

static void unload(void);

/* At an address where another was; the loader prefers it, but nobody promises it. */
static void
load_at(const char *name, uintptr_t at)
{
	for (int i = 0; i < 20; i++) {
		if (load(name) == at)
			return;
		unload();
	}
	fail_msg("%s never came to %#lx", name, (unsigned long)at);
}

static void
unload(void)
{
	assert_int_equal(dlclose(handle), 0);
}

/* Interns a stack of one pc; how it comes out. */
static uintptr_t
recorded(uintptr_t pc)
{
	uint32_t  id = stack_table_add(&pc, 1);
	unsigned  count;
	uintptr_t got = stack_table_pcs(id, &count)[0];

	assert_int_equal(count, 1);
	stack_table_unref(id);
	return got;
}

static size_t
known(void)
{
	struct arena_budget budget = { 0, 16 << 20 };
	struct generation  *all = NULL;
	struct arena        arena;
	size_t              count = 0;

	arena_init(&arena, &budget);
	assert_int_equal(generations_copy(&arena, &all, &count), 0);
	arena_release(&arena);
	return count;
}

static bool
belongs_to(uintptr_t tagged, const char *name)
{
	struct arena_budget      budget = { 0, 16 << 20 };
	struct generation       *all = NULL;
	const struct generation *g;
	struct arena             arena;
	size_t                   count = 0;
	bool                     is;

	arena_init(&arena, &budget);
	assert_int_equal(generations_copy(&arena, &all, &count), 0);
	g = generations_find(all, count, tagged);
	is = g ? strstr(g->path, name) != NULL : !name[0];
	arena_release(&arena);
	return is;
}

static int
begin(void **state)
{
	(void)state;
	generations_start();
	return 0;
}

static int
end(void **state)
{
	(void)state;
	generations_stop();
	return 0;
}

static void
without_changes_nothing_is_tagged_and_there_is_nothing_to_copy(void **state)
{
	(void)state;
	assert_true(recorded((uintptr_t)known) == (uintptr_t)known);
	assert_true(recorded(UINTPTR_MAX - 4096) == UINTPTR_MAX - 4096);
	assert_int_equal(generations_look(), 0);
	assert_int_equal(generations_look(), 0);
	assert_int_equal(known(), 0);
}

static int
lacks_build_id(struct dl_phdr_info *info, size_t size, void *arg)
{
	char hex[BUILD_ID_MAX];

	(void)size;
	(void)arg;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_NOTE && build_id_find((const unsigned char *)info->dlpi_addr + p->p_vaddr, p->p_memsz, 4, hex))
			return 0;
	}
	return 1;
}

static void
what_has_moved_is_seen_with_and_without_questions_to_the_kernel(void **state)
{
	uintptr_t at;

	(void)state;
	for (int refused = 0; refused < 2; refused++) {
		maps_query_refuse(refused);
		at = load("unwind_plugin_small");
		generations_look();
		if (!dl_iterate_phdr(lacks_build_id, NULL)) /* of such a one, only questions would tell */
			assert_false(generations_moved());
		unload();
		assert_true(generations_moved());
		load_at("unwind_plugin_large", at);
		assert_true(generations_moved());
		generations_look();
		unload();
		generations_look();
	}
	maps_query_refuse(false);
}

static void
the_next_one_in_a_place_is_told_apart_without_a_look(void **state)
{
	uintptr_t small, large, old, new;

	(void)state;
	small = load("unwind_plugin_small");
	assert_int_equal(generations_look(), 1);
	old = recorded(small);
	assert_true(old == small); /* the first in its place */
	unload();
	large = small;
	load_at("unwind_plugin_large", large); /* of one size, so in one place */
	new = recorded(large);
	assert_true(new != large);
	assert_true((new & GENERATIONS_PC_MASK) == large);
	assert_int_equal(generations_look(), 1);
	assert_true(recorded(large) == new);
	assert_true(belongs_to(old, "small"));
	assert_true(belongs_to(new, "large"));
	unload();

	/* The first comes back: known at once, and as the same. */
	load_at("unwind_plugin_small", small);
	assert_true(recorded(small) == old);
	generations_look();
	assert_true(recorded(small) == old);
	unload();
}

static void
without_proc_too_the_next_one_in_a_place_has_its_own_path(void **state)
{
	uintptr_t small, old, new;

	(void)state;
	small = load("unwind_plugin_small");
	assert_int_equal(generations_look(), 1);
	old = recorded(small);
	maps_proc_refuse(true); /* as after chroot(2) */
	assert_int_equal(generations_look(), 0);
	unload();
	load_at("unwind_plugin_large", small);
	assert_int_equal(generations_look(), 1);
	new = recorded(small);
	assert_true(belongs_to(old, "small"));
	assert_true(belongs_to(new, "large"));

	/* Neither was known while there was /proc. */
	unload();
	load_at("unwind_plugin_small", small);
	generations_look();
	assert_true(belongs_to(recorded(small), "small"));
	unload();
	maps_proc_refuse(false);
	generations_look();
}

static void
objects_that_come_and_go_for_ever_are_remembered_once(void **state)
{
	uintptr_t at;
	size_t    before;

	(void)state;
	at = load("unwind_plugin_small");
	generations_look();
	unload();
	load_at("unwind_plugin_large", at);
	generations_look();
	unload();
	generations_look();
	before = known();
	for (int i = 0; i < 100; i++) {
		load_at(i & 1 ? "unwind_plugin_large" : "unwind_plugin_small", at);
		assert_true(belongs_to(recorded(at), i & 1 ? "large" : "small"));
		if (i % 3 == 0)
			generations_look();
		unload();
		if (i % 5 == 0)
			generations_look();
	}
	assert_int_equal(known(), before);
	assert_int_equal(generations_forgotten(), 0);
}

static void
one_that_no_look_has_seen_takes_nothing_from_others(void **state)
{
	uintptr_t small, ghost;

	(void)state;
	small = load("unwind_plugin_small");
	generations_look();
	unload();
	load_at("unwind_plugin_large", small);
	ghost = recorded(small);
	unload();
	generations_look();
	assert_true(belongs_to(ghost, ""));
	load_at("unwind_plugin_large", small);
	assert_true(recorded(small) != ghost);
	generations_look();
	assert_true(belongs_to(ghost, ""));
	unload();
}

static void
a_stack_that_comes_late_is_of_the_last_one_there(void **state)
{
	uintptr_t at;

	(void)state;
	at = load("unwind_plugin_small");
	generations_look();
	unload();
	assert_true(recorded(at) == at); /* as a CPU sample that waited */
	generations_look();
	assert_true(belongs_to(recorded(at), "small"));
}

static void
code_made_at_run_time_where_an_object_was_is_not_its(void **state)
{
	uintptr_t at;
	void     *page;

	(void)state;
	at = load("unwind_plugin_small");
	generations_look();
	unload();
	page = mmap((void *)(at & ~(uintptr_t)4095), 4096, PROT_READ | PROT_EXEC,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	assert_true(page != MAP_FAILED);
	assert_false(belongs_to(recorded(at), "small"));
	generations_look();
	assert_false(belongs_to(recorded(at), "small"));
	munmap(page, 4096);
	generations_look();
	load_at("unwind_plugin_small", at);
	assert_true(belongs_to(recorded(at), "small"));
	unload();
}

static void
code_made_at_run_time_that_comes_and_goes_uses_no_tags_up(void **state)
{
	uintptr_t at, before = 0, now;
	void     *page;

	(void)state;
	at = load("unwind_plugin_small");
	generations_look();
	unload();
	for (int i = 0; i < 5; i++) {
		page = mmap((void *)(at & ~(uintptr_t)4095), 4096, PROT_READ | PROT_EXEC,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		assert_true(page != MAP_FAILED);
		now = recorded(at);
		assert_true(now != at);
		assert_true(!i || now == before);
		before = now;
		generations_look();
		munmap(page, 4096);
		generations_look();
	}
	load_at("unwind_plugin_large", at);
	recorded(at);
	generations_look();
	assert_true(belongs_to(recorded(at), "large"));
	unload();
}

/* Records of what is loaded there. */
static unsigned
loaded_there(uintptr_t pc)
{
	struct arena_budget budget = { 0, 16 << 20 };
	struct generation  *all = NULL;
	struct arena        arena;
	size_t              count = 0;
	unsigned            found = 0;

	arena_init(&arena, &budget);
	assert_int_equal(generations_copy(&arena, &all, &count), 0);
	for (size_t i = 0; i < count; i++)
		found += all[i].loaded && pc >= all[i].start && pc < all[i].limit;
	arena_release(&arena);
	return found;
}

/* The first page of a plugin's file, with its header. */
static void
map_plugin_at(void *at)
{
	Dl_info info;
	int     fd;

	load("unwind_plugin_large");
	assert_true(dladdr(dlsym(handle, "plugin_call"), &info));
	fd = open(info.dli_fname, O_RDONLY | O_CLOEXEC);
	unload();
	assert_true(mmap(at, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED_NOREPLACE, fd, 0) == at);
	close(fd);
}

static void
what_it_leaves_when_it_shrinks_is_free_for_an_object(void **state)
{
	uintptr_t at;
	char     *pages;

	(void)state;
	at = load("unwind_plugin_small") & ~(uintptr_t)4095;
	generations_look();
	unload();
	pages = mmap((void *)(at - 4096), 8192, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	assert_true(pages == (char *)at - 4096);
	generations_look();
	assert_int_equal(loaded_there(at), 1);
	munmap(pages + 4096, 4096);
	generations_look();
	assert_int_equal(loaded_there(at), 0);
	map_plugin_at(pages + 4096);
	generations_look();
	assert_int_equal(loaded_there(at), 1);
	assert_true(belongs_to(recorded(at), "large"));
	munmap(pages, 8192);
	generations_look();
}

static void
stopped_with_stacks_alive_it_remembers_and_without_it_forgets(void **state)
{
	uintptr_t at = load("unwind_plugin_small");
	uint32_t  id;

	(void)state;
	generations_look();
	unload();
	load_at("unwind_plugin_large", at);
	id = stack_table_add(&at, 1);
	generations_look();
	generations_stop();
	assert_true(known() > 0);
	stack_table_unref(id);
	generations_start();
	generations_stop();
	assert_int_equal(known(), 0);
	assert_true(recorded(at) == at);
	unload();
}

static atomic_bool done;

static void *
record_on_and_on(void *arg)
{
	uintptr_t at = *(uintptr_t *)arg;

	while (!done)
		recorded(at);
	return NULL;
}

static void
stacks_are_added_while_objects_come_and_go(void **state)
{
	uintptr_t at = load("unwind_plugin_small");
	pthread_t threads[3];

	(void)state;
	unload();
	done = false;
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, record_on_and_on, &at), 0);
	for (int i = 0; i < 200; i++) {
		int r;

		load(i & 1 ? "unwind_plugin_large" : "unwind_plugin_small");
		r = generations_look();
		assert_true(r >= 0 || r == -EBUSY); /* the others may be faster for long */
		unload();
		generations_look();
	}
	done = true;
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
}

static void *
look_on_and_on(void *arg)
{
	while (!done)
		generations_look();
	return arg;
}

/* The build id that an object has while nobody takes its place. */
static void
build_id_of(const char *name, char id[BUILD_ID_MAX])
{
	struct arena_budget      budget = { 0, 16 << 20 };
	struct generation       *all = NULL;
	struct arena             arena;
	size_t                   count = 0;
	uintptr_t                at = load(name);
	bool                     found = false;

	generations_look();
	unload();
	generations_look(); /* with one that is gone there is something to copy */
	arena_init(&arena, &budget);
	assert_int_equal(generations_copy(&arena, &all, &count), 0);
	for (size_t i = 0; i < count; i++)
		if (strstr(all[i].path, name) && at >= all[i].start && at < all[i].limit) {
			memcpy(id, all[i].build_id, sizeof(all[i].build_id));
			found = true;
		}
	assert_true(found);
	arena_release(&arena);
}

static void
a_build_id_too_short_for_a_mark_is_none(void **state)
{
	char id[BUILD_ID_MAX];

	(void)state;
	build_id_of("unwind_plugin_short_id", id);
	assert_string_equal(id, "");
}

/* The line of maps is the one's, and what is in memory a moment later the other's. */
static void
a_look_while_one_takes_anothers_place_mixes_none_of_the_two(void **state)
{
	static const char *const names[] = { "unwind_plugin_small", "unwind_plugin_large" };
	struct arena_budget      budget = { 0, 16 << 20 };
	struct generation       *all = NULL;
	struct arena             arena;
	size_t                   count = 0, ours = 0;
	pthread_t                looker;
	char                     ids[2][BUILD_ID_MAX] = { "", "" };

	(void)state;
	build_id_of(names[0], ids[0]);
	build_id_of(names[1], ids[1]);
	assert_true(ids[0][0] && ids[1][0]);
	assert_string_not_equal(ids[0], ids[1]);
	generations_stop(); /* forgets both, as no stack is alive: each look may be the first to see them */
	for (int round = 0; round < 300; round++) {
		generations_start();
		done = false;
		assert_int_equal(pthread_create(&looker, NULL, look_on_and_on, NULL), 0);
		for (int i = 0; i < 2; i++) { /* one that comes back at once cannot be told */
			load(names[(round + i) % 2]);
			unload();
		}
		done = true;
		pthread_join(looker, NULL);
		load(names[round % 2]); /* at least one is known */
		generations_look();
		unload();
		generations_look();
		arena_init(&arena, &budget);
		assert_int_equal(generations_copy(&arena, &all, &count), 0);
		for (size_t i = 0; i < count; i++)
			for (int k = 0; k < 2; k++)
				if (strstr(all[i].path, names[k])) {
					ours++;
					if (all[i].build_id[0]) /* "": it was gone before that was read */
						assert_string_equal(all[i].build_id, ids[k]);
				}
		arena_release(&arena);
		generations_stop();
	}
	assert_true(ours > 0);
	generations_start();
}

static void
a_child_of_a_fork_goes_on(void **state)
{
	uintptr_t at = load("unwind_plugin_small");
	int       status = -1;
	pid_t     pid;

	(void)state;
	generations_look();
	unload();
	pid = fork();
	if (pid == 0) {
		generations_forked();
		load_at("unwind_plugin_large", at);
		generations_look();
		_exit(belongs_to(recorded(at), "large") ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

#define UNIT(f) cmocka_unit_test_setup_teardown(f, begin, end)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(without_changes_nothing_is_tagged_and_there_is_nothing_to_copy),
		UNIT(what_has_moved_is_seen_with_and_without_questions_to_the_kernel),
		UNIT(the_next_one_in_a_place_is_told_apart_without_a_look),
		UNIT(without_proc_too_the_next_one_in_a_place_has_its_own_path),
		UNIT(objects_that_come_and_go_for_ever_are_remembered_once),
		UNIT(one_that_no_look_has_seen_takes_nothing_from_others),
		UNIT(a_stack_that_comes_late_is_of_the_last_one_there),
		UNIT(code_made_at_run_time_where_an_object_was_is_not_its),
		UNIT(code_made_at_run_time_that_comes_and_goes_uses_no_tags_up),
		UNIT(what_it_leaves_when_it_shrinks_is_free_for_an_object),
		UNIT(stopped_with_stacks_alive_it_remembers_and_without_it_forgets),
		UNIT(stacks_are_added_while_objects_come_and_go),
		UNIT(a_build_id_too_short_for_a_mark_is_none),
		UNIT(a_look_while_one_takes_anothers_place_mixes_none_of_the_two),
		UNIT(a_child_of_a_fork_goes_on),
	};

	return cmocka_run_group_tests_name("generations", tests, NULL, NULL);
}
