/*
 * test_symbols.c - the parts below symbols.c, and symbols.c in this very program.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "arena.h"
#include "file.h"
#include "table.h"
#include "image.h"
#include "maps.h"
#include "our_fd.h"
#include "program_file.h"
#include "skip.h"
#include "symbols_state.h"
#include "utf8.h"
#include "refused_call.h"

#define LIMIT ((size_t)64 << 20)

__attribute__((noinline, noclone)) int a_function_of_this_test(int n);
int
a_function_of_this_test(int n)
{
	volatile int a = n;

	while (n-- > 0)
		a += n * a;
	return a;
}

static void
a_table_in_an_arena_grows_and_keeps_its_members(void **state)
{
	struct arena_budget budget = { 0, 1 << 20 };
	struct arena        a;
	size_t              room = 0;
	uint32_t           *table = NULL, *more;

	(void)state;
	arena_init(&a, &budget);
	for (uint32_t count = 0; (more = arena_grown(&a, table, &room, count, sizeof(*table))); count++) {
		assert_true(room > count);
		table = more;
		table[count] = count;
	}
	assert_true(room > 10000); /* until the budget is used up, which leaves what there is */
	for (uint32_t i = 0; i < room; i++)
		assert_int_equal(table[i], i);
	arena_release(&a);
	assert_int_equal(budget.used, 0);
}

static void
an_arena_gives_zeroed_memory_and_keeps_its_limit(void **state)
{
	struct arena_budget budget = { 0, 1 << 20 };
	struct arena        a;
	size_t              got = 0;
	unsigned char      *p;

	(void)state;
	arena_init(&a, &budget);
	while ((p = arena_alloc(&a, 1000))) {
		for (size_t i = 0; i < 1000; i++)
			assert_int_equal(p[i], 0);
		memset(p, 255, 1000);
		assert_int_equal((uintptr_t)p % 16, 0);
		got += 1000;
	}
	assert_true(got > budget.limit / 2 && got < budget.limit);
	assert_true(budget.used <= budget.limit);
	assert_null(arena_alloc(&a, SIZE_MAX));
	assert_null(arena_array(&a, SIZE_MAX / 2, 3));
	arena_release(&a);
	assert_int_equal(budget.used, 0);
	assert_non_null(p = arena_alloc(&a, budget.limit / 2));
	assert_null(arena_alloc(&a, budget.limit / 2));
	arena_release(&a);
	assert_int_equal(budget.used, 0);
}

static void
a_map_of_numbers_finds_what_was_put_and_nothing_else(void **state)
{
	struct arena_budget budget = { 0, LIMIT };
	struct table        m;

	(void)state;
	table_init(&m, &budget);
	assert_int_equal(table_get(&m, 1), 0);
	for (uint64_t i = 0; i < 100000; i++)
		assert_int_equal(table_put(&m, i * 4096, i + 1), 0);
	for (uint64_t i = 0; i < 100000; i++) {
		assert_int_equal(table_get(&m, i * 4096), i + 1);
		assert_int_equal(table_get(&m, i * 4096 + 1), 0);
	}
	table_release(&m);
	assert_int_equal(budget.used, 0);
	budget.limit = 1 << 16;
	for (uint64_t i = 0;; i++)
		if (table_put(&m, i, 1) < 0) {
			assert_true(i > 1000);
			break;
		}
	assert_int_equal(table_get(&m, 3), 1);
	table_release(&m);
}

static bool
is_number(const void *what, uint64_t value)
{
	return value == *(const uint64_t *)what;
}

static void
a_map_of_numbers_tells_equal_keys_apart_and_forgets_one_alone(void **state)
{
	struct table m = { 0 };
	uint64_t     number;

	(void)state;
	for (number = 1; number <= 3; number++)
		assert_int_equal(table_put(&m, 7, number), 0);
	for (number = 1; number <= 3; number++)
		assert_int_equal(table_find(&m, 7, is_number, &number), number);
	assert_int_equal(table_find(&m, 7, is_number, &number), 0);
	for (uint64_t i = 1000; i < 40000; i++)
		assert_int_equal(table_put(&m, i, i), 0);
	for (uint64_t i = 1000; i < 40000; i += 3)
		assert_int_equal(table_remove(&m, i), i);
	assert_int_equal(table_remove(&m, 1000), 0);
	for (uint64_t i = 1000; i < 40000; i++)
		assert_int_equal(table_get(&m, i), (i - 1000) % 3 ? i : 0);
	table_release(&m);
	assert_int_equal(table_remove(&m, 7), 0);
}

static void
bytes_that_are_not_text_become_question_marks(void **state)
{
	static const struct {
		const char *from, *to;
	} cases[] = {
		{ "", "" },
		{ "main", "main" },
		{ "gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f" },
		{ "\xe2\x82\xac\xf0\x9f\x98\x80", "\xe2\x82\xac\xf0\x9f\x98\x80" },
		{ "a\nb\tc\x7f", "a?b?c?" },
		{ "\xff\xfe", "??" },
		{ "\xc3", "?" },
		{ "\xc0\xaf", "??" },                 /* a slash, too long */
		{ "\xed\xa0\x80", "???" },            /* half of a pair */
		{ "\xf4\x90\x80\x80", "????" },       /* past the end */
		{ "\xc2\x85x", "??x" },               /* a line break of its own kind */
		{ "\xe2\x82", "??" },
	};
	struct arena_budget budget = { 0, LIMIT };
	struct arena        a;

	(void)state;
	arena_init(&a, &budget);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const char *clean = utf8_clean(&a, cases[i].from, strlen(cases[i].from));

		assert_string_equal(clean, cases[i].to);
		assert_int_equal(utf8_is_clean(cases[i].from, strlen(cases[i].from)),
			!strcmp(cases[i].from, cases[i].to));
		assert_true(utf8_is_clean(clean, strlen(clean)));
	}
	arena_release(&a);
}

static void
lines_of_maps_are_cut_into_their_parts(void **state)
{
	static char text[] =
		"55d0c8a00000-55d0c8a02000 r-xp 00001000 fe:01 1311                       /usr/sbin/a daemon\n"
		"7f0000000000-7f0000001000 rw-p 00000000 00:00 0 \n"
		"7f0000001000-7f0000002000 r-xp 00002000 00:1f 99                         /tmp/odd\\012name (deleted)\n"
		"garbage\n"
		"7f0000003000-7f0000002000 r-xp 00000000 00:00 0 backwards\n"
		"\n"
		"7ffc00000000-7ffc00001000 r-xp 00000000 00:00 0                          [vdso]\n"
		"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]";
	struct maps_line l;
	struct maps      m = { .text = text, .size = sizeof(text) - 1 };

	(void)state;
	assert_true(maps_next(&m, &l));
	assert_true(l.start == 0x55d0c8a00000 && l.limit == 0x55d0c8a02000 && l.offset == 0x1000);
	assert_true(l.executable && !l.deleted && l.inode == 1311 && l.device == makedev(0xfe, 1));
	assert_string_equal(l.path, "/usr/sbin/a daemon");
	assert_true(maps_next(&m, &l));
	assert_true(!l.executable);
	assert_string_equal(l.path, "");
	assert_true(maps_next(&m, &l));
	assert_true(l.deleted);
	assert_string_equal(l.path, "/tmp/odd\nname");
	assert_true(maps_next(&m, &l));
	assert_string_equal(l.path, "[vdso]");
	assert_true(maps_next(&m, &l));
	assert_string_equal(l.path, "[vsyscall]");
	assert_true(l.start == 0xffffffffff600000 && l.executable);
	assert_false(maps_next(&m, &l));
}

static void
a_file_is_never_a_standard_descriptor(void **state)
{
	int saved = dup(0), fd;

	(void)state;
	assert_true(saved > 2);
	close(0);
	fd = file_open("/proc/self/maps");
	dup2(saved, 0);
	close(saved);
	assert_true(fd > 2);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	close(fd);
	assert_int_equal(file_open("/nonexistent/file"), -ENOENT);
}

static void
a_function_of_this_program_has_its_name(void **state)
{
	struct symbol_frame f[SYMBOLS_FRAMES_MAX];
	struct symbols     *s;

	(void)state;
	assert_int_equal(symbols_open(LIMIT, &s), 0);
	assert_int_equal(symbols_frames(s, (uintptr_t)a_function_of_this_test + 3, f, SYMBOLS_FRAMES_MAX), 1);
	assert_string_equal(f[0].name, "a_function_of_this_test");
	assert_int_equal(f[0].offset, 3);
	assert_ptr_equal(f[0].object, symbols_mapping(s, 0)->path);
	assert_int_equal(symbols_mapping_find(s, (uintptr_t)a_function_of_this_test), 0);
	assert_int_equal(symbols_frames(s, (uintptr_t)f, f, 1), 0);
	assert_int_equal(symbols_mapping_find(s, (uintptr_t)f), -1);
	assert_null(symbols_mapping(s, symbols_mapping_count(s)));
	symbols_close(s);
	symbols_close(NULL);
}

#if defined(__x86_64__)
#define CALLS_A_STUB "call getppid@PLT\n\tret\n"
#elif defined(__aarch64__)
#define CALLS_A_STUB "bl getppid\n\tret\n"
#endif

#ifdef CALLS_A_STUB
/* Never called: its first instruction leads to a stub. */
extern const unsigned char calls_a_stub[];
__asm__(".text\n"
	".type calls_a_stub,%function\n"
	".balign 4\n"
	"calls_a_stub:\n"
	"	" CALLS_A_STUB
	".size calls_a_stub,.-calls_a_stub\n");

static uintptr_t
stub_address(void)
{
	int32_t distance;

#if defined(__x86_64__)
	assert_int_equal(calls_a_stub[0], 0xe8);
	memcpy(&distance, calls_a_stub + 1, sizeof(distance));
	return (uintptr_t)calls_a_stub + 5 + (uintptr_t)(intptr_t)distance;
#else
	memcpy(&distance, calls_a_stub, sizeof(distance));
	assert_int_equal((uint32_t)distance >> 26, 0x25);
	return (uintptr_t)calls_a_stub + (uintptr_t)(intptr_t)((int32_t)((uint32_t)distance << 6) >> 4);
#endif
}

static void
a_stub_has_the_name_of_what_it_calls_up_to_its_end(void **state)
{
	uintptr_t           stub = stub_address();
	struct symbol_frame f;
	struct symbols     *s;
	unsigned            bytes = 0;

	(void)state;
	assert_int_equal(symbols_open(LIMIT, &s), 0);
	while (symbols_frames(s, stub + bytes, &f, 1) == 1 && !strcmp(f.name, "getppid@plt"))
		bytes++;
	assert_in_range(bytes, 8, 24);
	assert_int_equal(bytes % 8, 0);
	assert_int_equal(symbols_frames(s, stub - 1, &f, 1), 1);
	assert_string_not_equal(f.name, "getppid@plt");
	symbols_close(s);
}
#endif

static void
a_name_is_made_once_and_keeps_its_address(void **state)
{
	struct symbol_frame f[1], g[1];
	struct symbols     *s;

	(void)state;
	assert_int_equal(symbols_open(LIMIT, &s), 0);
	for (uintptr_t i = 0; i < 64; i++) {
		uintptr_t pc = symbols_mapping(s, 0)->start + i;

		assert_int_equal(symbols_frames(s, pc, f, 1), 1);
		assert_int_equal(symbols_frames(s, pc, g, 1), 1);
		assert_ptr_equal(f[0].name, g[0].name);
		assert_true(*f[0].name != '\0');
	}
	symbols_close(s);
}

static void
code_that_mprotect_has_cut_in_pieces_is_one_mapping(void **state)
{
	struct symbols *s;
	size_t          before;
	uintptr_t       page = (uintptr_t)sysconf(_SC_PAGESIZE), middle;

	(void)state;
	assert_int_equal(symbols_open(LIMIT, &s), 0);
	before = symbols_mapping_count(s);
	/* A page of the C library, which has many, changes its protection and stays code. */
	middle = (uintptr_t)&strtoul & ~(page - 1);
	for (int i = symbols_mapping_find(s, (uintptr_t)&strtoul); i >= 0; i = -1)
		middle = symbols_mapping(s, (size_t)i)->start + 4 * page;
	symbols_close(s);
	if (mprotect((void *)middle, page, PROT_READ | PROT_WRITE | PROT_EXEC) < 0)
		SKIP("this system refuses memory that is writable and executable");
	assert_int_equal(symbols_open(LIMIT, &s), 0);
	assert_int_equal(symbols_mapping_count(s), before);
	symbols_close(s);
	mprotect((void *)middle, page, PROT_READ | PROT_EXEC);
}

static void
without_memory_opening_fails_and_nothing_is_kept(void **state)
{
	struct symbols *s = NULL;

	(void)state;
	for (size_t limit = 0; limit < 256 << 10; limit += 4096) {
		int r = symbols_open(limit, &s);

		if (r < 0) {
			assert_int_equal(r, -ENOMEM);
			assert_null(s);
			continue;
		}
		assert_true(s->budget.used <= limit);
		symbols_close(s);
		s = NULL;
	}
}

/* More often than our_fd.c has places; each is needed by a pair of sockets. */
static void
the_programs_file_is_held_again_when_its_descriptor_was_lost(void **state)
{
	int  theirs = open("/dev/null", O_RDONLY | O_CLOEXEC), fd, pair[2];
	bool certain;

	(void)state;
	for (int i = 0; i < 300; i++) {
		fd = dup(theirs); /* the number that is next */
		close(fd);
		program_file_hold();
		assert_true(program_file_is_held());
		assert_int_equal(dup3(theirs, fd, O_CLOEXEC), fd);
		assert_false(program_file_is_held());
		assert_int_equal(program_file_open(&certain), -ENOENT);
		program_file_hold();
		assert_true(program_file_is_held());
		program_file_release();
		assert_int_equal(close(fd), 0);
	}
	assert_int_equal(our_fd_socketpair(pair), 0);
	our_fd_close(pair[0]);
	our_fd_close(pair[1]);
	close(theirs);
}

/* In a child: has it the program's file?  Its number, if it has. */
static bool
a_child_has_it(int fd)
{
	int   status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(program_file_is_held() * 2 + (fcntl(fd, F_GETFD) >= 0));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(status == 0 || WEXITSTATUS(status) == 3);
	return status != 0;
}

static void
a_child_has_the_programs_file_before_a_server_starts_and_no_more_then(void **state)
{
	bool certain;
	int  fd = open("/dev/null", O_RDONLY | O_CLOEXEC), other;

	(void)state;
	close(fd); /* the number that is next */
	program_file_hold_early();
	assert_true(a_child_has_it(fd));
	other = program_file_open(&certain);
	assert_true(other >= 0);
	assert_true(a_child_has_it(fd));
	our_fd_close(other);
	program_file_hold();
	assert_false(a_child_has_it(fd));
	program_file_release();
	assert_false(a_child_has_it(fd));
}

static unsigned calls;

/* libc's, counted. */
ssize_t
process_vm_readv(pid_t pid, const struct iovec *here, unsigned long here_count, const struct iovec *there,
		 unsigned long there_count, unsigned long flags)
{
	calls++;
	return syscall(SYS_process_vm_readv, pid, here, here_count, there, there_count, flags);
}

/* libz has the newer of the two hash tables alone. */
static int
on_libz(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	if (!strstr(info->dlpi_name, "/libz.so"))
		return 0;
	*(struct dl_phdr_info *)arg = *info;
	return 1;
}

/* As where its file cannot be opened any more. */
static void
a_library_that_is_only_mapped_has_all_of_its_symbols_after_few_calls(void **state)
{
	struct dl_phdr_info info;
	struct image        of_memory, of_file;
	ElfW(Shdr)          mapped, section;
	int                 fd;

	(void)state;
	if (!dl_iterate_phdr(on_libz, &info))
		SKIP("libz is no object of its own");
	fd = open(info.dlpi_name, O_RDONLY | O_CLOEXEC);
	assert_int_equal(image_open_file(&of_file, fd), 0);
	assert_int_equal(image_section_find(&of_file, ".dynsym", &section), 0);
	calls = 0;
	assert_int_equal(image_open_mapped(&of_memory, info.dlpi_addr, 4096), 0);
	assert_int_equal(image_section(&of_memory, 1, &mapped), 0);
	assert_int_equal(mapped.sh_size, section.sh_size);
	assert_true(calls < section.sh_size / sizeof(ElfW(Sym)));
	close(fd);
}

/* In a child of the test: nothing else is to live under such rules. */
static int
forbid_process_vm_readv(void)
{
	char         byte = 0;
	struct iovec v = { &byte, 1 };

	if (refuse_call(SYS_process_vm_readv) < 0)
		return -1;
	return process_vm_readv(getpid(), &v, 1, &v, 1, 0) < 0 && errno == EPERM ? 0 : -1;
}

static void
build_ids_are_found_where_process_vm_readv_is_forbidden(void **state)
{
	struct symbols *s;
	char            id[256];
	int             status;
	pid_t           child;

	(void)state;
	assert_int_equal(symbols_open(LIMIT, &s), 0);
	assert_true(snprintf(id, sizeof(id), "%s", symbols_mapping(s, 0)->build_id) >= 32);
	symbols_close(s);
	fflush(NULL);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		if (forbid_process_vm_readv() < 0)
			_exit(77);
		if (symbols_open(LIMIT, &s) < 0)
			_exit(1);
		_exit(strcmp(id, symbols_mapping(s, 0)->build_id) ? 2 : 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		SKIP("this kernel has no seccomp");
	assert_int_equal(WEXITSTATUS(status), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_arena_gives_zeroed_memory_and_keeps_its_limit),
		cmocka_unit_test(a_table_in_an_arena_grows_and_keeps_its_members),
		cmocka_unit_test(a_map_of_numbers_finds_what_was_put_and_nothing_else),
		cmocka_unit_test(a_map_of_numbers_tells_equal_keys_apart_and_forgets_one_alone),
		cmocka_unit_test(bytes_that_are_not_text_become_question_marks),
		cmocka_unit_test(lines_of_maps_are_cut_into_their_parts),
		cmocka_unit_test(a_file_is_never_a_standard_descriptor),
		cmocka_unit_test(a_function_of_this_program_has_its_name),
#ifdef CALLS_A_STUB
		cmocka_unit_test(a_stub_has_the_name_of_what_it_calls_up_to_its_end),
#endif
		cmocka_unit_test(a_name_is_made_once_and_keeps_its_address),
		cmocka_unit_test(code_that_mprotect_has_cut_in_pieces_is_one_mapping),
		cmocka_unit_test(the_programs_file_is_held_again_when_its_descriptor_was_lost),
		cmocka_unit_test(a_child_has_the_programs_file_before_a_server_starts_and_no_more_then),
		cmocka_unit_test(a_library_that_is_only_mapped_has_all_of_its_symbols_after_few_calls),
		cmocka_unit_test(build_ids_are_found_where_process_vm_readv_is_forbidden),
		cmocka_unit_test(without_memory_opening_fails_and_nothing_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
