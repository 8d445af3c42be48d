/*
 * test_without_proc.c - what takes the place of /proc: memory.c, maps_loader.c, threads_known.c.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "maps.h"
#include "memory.h"
#include "thread_id.h"
#include "threads_known.h"

static void
memory_is_read_up_to_the_first_page_that_is_not_there(void **state)
{
	size_t        page = (size_t)getpagesize(), size = 3 * page;
	char         *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *copy = malloc(size);
	struct memory m;

	(void)state;
	for (size_t i = 0; i < size; i++)
		p[i] = (char)(i * 7 + i / page);
	munmap(p + 2 * page, page);
	for (int refuse = 0; refuse < 2; refuse++) {
		memory_refuse(refuse);
		assert_int_equal(memory_open(&m), 0);
		assert_int_equal(m.to.fd >= 0, refuse);
		memset(copy, 0, size);
		assert_int_equal(memory_read_some(&m, (uintptr_t)p + 100, copy, size - 100), 2 * page - 100);
		assert_memory_equal(copy, p + 100, 2 * page - 100);
		assert_true(memory_read(&m, (uintptr_t)p + 5, copy, 2 * page - 5));
		assert_false(memory_read(&m, (uintptr_t)p + 5, copy, 2 * page));
		assert_false(memory_read(&m, 8, copy, 1));
		memory_close(&m);
	}
	memory_refuse(false);
	munmap(p, 2 * page);
	free(copy);
}

static void
nothing_goes_to_or_comes_from_a_descriptor_that_has_become_somebody_elses(void **state)
{
	struct memory m;
	int           theirs[2];
	char          word[8] = "ours", byte;

	(void)state;
	for (int from = 0; from < 2; from++) {
		memory_refuse(true);
		assert_int_equal(memory_open(&m), 0);
		memory_refuse(false);
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, theirs), 0);
		assert_int_equal(send(theirs[1], "for them", 8, 0), 8);
		assert_true(dup2(theirs[0], from ? m.from.fd : m.to.fd) >= 0);
		assert_false(memory_read(&m, (uintptr_t)word, word, sizeof(word)));
		assert_int_equal(recv(theirs[1], &byte, 1, MSG_DONTWAIT), -1);
		assert_int_equal(errno, EAGAIN);
		assert_int_equal(recv(theirs[0], word, sizeof(word), MSG_DONTWAIT), 8);
		close(from ? m.from.fd : m.to.fd); /* who has it now */
		memory_close(&m);
		close(theirs[0]);
		close(theirs[1]);
	}
}

static void
a_number_that_has_become_somebody_elses_stays_open(void **state)
{
	struct memory m;
	int           mine, numbers[2];

	(void)state;
	for (int both = 0; both < 2; both++) {
		memory_refuse(true);
		assert_int_equal(memory_open(&m), 0);
		memory_refuse(false);
		mine = both ? socket(AF_UNIX, SOCK_STREAM, 0) : open("/dev/null", O_RDONLY);
		assert_true(mine >= 0);
		assert_int_equal(dup2(mine, m.from.fd), m.from.fd);
		if (both)
			assert_int_equal(dup2(mine, m.to.fd), m.to.fd);
		numbers[0] = m.from.fd;
		numbers[1] = m.to.fd;
		memory_close(&m);
		assert_int_equal(close(numbers[0]), 0);
		assert_int_equal(close(numbers[1]), both ? 0 : -1);
		close(mine);
	}
}

static void
the_loaders_list_has_every_piece_of_code_that_maps_have(void **state)
{
	struct arena_budget budget = { 0, (size_t)64 << 20 };
	struct maps         of_kernel, made = { .budget = &budget }, again;
	struct maps_line    l, m;
	unsigned            files = 0;
	char               *text;

	(void)state;
	assert_int_equal(maps_read(&of_kernel, &budget), 0);
	assert_false(maps_without_proc());
	assert_int_equal(maps_of_loader(&made), 0);
	text = strndup(made.text, made.size);
	while (maps_next(&of_kernel, &l)) {
		bool found = false;

		if (!l.executable || (l.path[0] != '/' && strcmp(l.path, "[vdso]") != 0))
			continue;
		files += l.path[0] == '/';
		again = (struct maps){ .text = strdup(text), .size = strlen(text) }; /* lines can be had once */
		while (!found && maps_next(&again, &m))
			found = m.executable && m.start == l.start && m.limit >= l.limit && m.offset == l.offset;
		free(again.text);
		if (!found)
			fail_msg("%s is missing", l.path);
	}
	assert_true(files >= 3); /* the program, the loader, libc */
	maps_release(&of_kernel);
	maps_release(&made);
	free(text);
	assert_int_equal(budget.used, 0);
}

static void
what_was_known_of_a_place_is_said_again_while_its_mark_is_there(void **state)
{
	struct arena_budget budget = { 0, (size_t)64 << 20 };
	struct maps         maps;
	struct maps_line    l, first = { .path = NULL };
	char                path[] = "/a/path that\nnobody has";
	uint32_t            mark = 0x1234567;
	bool                found;

	(void)state;
	maps = (struct maps){ .budget = &budget };
	assert_int_equal(maps_of_loader(&maps), 0);
	while (!first.path && maps_next(&maps, &l))
		if (l.executable)
			first = l;
	maps_release(&maps);
	first.path = path;
	first.device = 0x801;
	first.inode = 4711;
	first.deleted = true;
	assert_int_equal(maps_keep_begin(1, sizeof(path)), 0);
	maps_keep(&first, (uintptr_t)&mark, mark);
	for (int other = 0; other < 2; other++) {
		mark += (uint32_t)other;
		maps = (struct maps){ .budget = &budget };
		assert_int_equal(maps_of_loader(&maps), 0);
		found = false;
		while (!found && maps_next(&maps, &l))
			found = l.start == first.start && !strcmp(l.path, path) && l.inode == 4711 && l.device == 0x801 &&
				l.deleted;
		assert_int_equal(found, !other);
		maps_release(&maps);
	}
	maps_keep_begin(0, 0);
	assert_int_equal(budget.used, 0);
}

/* ---- threads ---- */

static pthread_barrier_t barrier;

static void *
stand(void *arg)
{
	*(pid_t *)arg = thread_id_self();
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	return NULL;
}

static void *
stand_known(void *arg)
{
	threads_known_begin();
	stand(arg);
	threads_known_end();
	return NULL;
}

struct seen {
	pid_t    want[3], asker;
	unsigned count[3], all;
};

static void
on_thread(void *arg, pid_t tid)
{
	struct seen *s = arg;

	s->all++;
	for (int i = 0; i < 3; i++)
		s->count[i] += s->want[i] == tid;
}

static void *
ask(void *arg)
{
	((struct seen *)arg)->asker = thread_id_self();
	threads_known_each(on_thread, arg);
	return NULL;
}

/* pthread_join() comes back while the kernel still has the thread. */
static void
join_and_wait(pthread_t thread, const pid_t *tid)
{
	pthread_join(thread, NULL);
	while (syscall(SYS_tgkill, getpid(), *tid, 0) == 0)
		sched_yield();
}

static void
threads_are_known_by_hooks_or_by_their_numbers_and_each_once(void **state)
{
	struct seen s = { .want = { getpid() } }, after;
	pthread_t   t[2], asker;

	(void)state;
	pthread_barrier_init(&barrier, NULL, 3);
	pthread_create(&t[0], NULL, stand, &s.want[1]);
	pthread_create(&t[1], NULL, stand_known, &s.want[2]);
	pthread_barrier_wait(&barrier);
	after = s;
	/* By the youngest, as a job of ours is. */
	pthread_create(&asker, NULL, ask, &s);
	join_and_wait(asker, &s.asker);
	for (int i = 0; i < 3; i++)
		assert_int_equal(s.count[i], 1);
	pthread_barrier_wait(&barrier);
	join_and_wait(t[0], &s.want[1]); /* without a word */
	join_and_wait(t[1], &s.want[2]);
	pthread_create(&asker, NULL, ask, &after);
	pthread_join(asker, NULL);
	assert_int_equal(after.count[0], 1);
	assert_int_equal(after.count[2], 0);
	assert_true(after.all < s.all);
	pthread_barrier_destroy(&barrier);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_is_read_up_to_the_first_page_that_is_not_there),
		cmocka_unit_test(nothing_goes_to_or_comes_from_a_descriptor_that_has_become_somebody_elses),
		cmocka_unit_test(a_number_that_has_become_somebody_elses_stays_open),
		cmocka_unit_test(the_loaders_list_has_every_piece_of_code_that_maps_have),
		cmocka_unit_test(what_was_known_of_a_place_is_said_again_while_its_mark_is_there),
		cmocka_unit_test(threads_are_known_by_hooks_or_by_their_numbers_and_each_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
