/*
 * test_tables.c - the walk by tables against libunwind's cursor.
 *
 * Threads run a mix of what daemons run: qsort callbacks, regular expressions,
 * printf, compression, allocation, name look-ups, a signal handler on an alternate
 * stack, C++ exceptions in flight, TLS and its assembly, code with frame pointers and
 * without in turns (mix.h).  A timer interrupts them; the handler walks by the tables first, then by
 * unw_step from the same registers, and the two lists must be the same as far as
 * libunwind got.  libunwind is safe here because no test thread loads objects.
 */
#define UNW_LOCAL_ONLY
#include <config.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <libunwind.h>
#include <link.h>
#include <math.h>
#include <pthread.h>
#include <regex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "tables.h"
#include "tables_lookup.h"
#include "unwind.h"
#include "mix.h"
#include "verdict.h"
#include "waiting.h"

#define SAMPLES 40000
#define DEPTH   128
#define LISTED  5

static atomic_uint  samples, same, longer, shorter, divergent, through_signals;
static atomic_bool  stop;
static bool         have_tls;
static uintptr_t    bad_ours[LISTED][DEPTH], bad_theirs[LISTED][DEPTH];
static unsigned     bad_n[LISTED], bad_m[LISTED];
static atomic_uint  bad_count;

static void
note_bad(const uintptr_t *ours, unsigned n, const uintptr_t *theirs, unsigned m)
{
	unsigned i = atomic_fetch_add(&bad_count, 1);

	if (i >= LISTED)
		return;
	memcpy(bad_ours[i], ours, n * sizeof(*ours));
	memcpy(bad_theirs[i], theirs, m * sizeof(*theirs));
	bad_n[i] = n;
	bad_m[i] = m;
}

/* Code there is; no thread loads objects. */
static struct {
	uintptr_t begin, end;
} codes[64], libgcc;
static unsigned code_count;

static int
note_code(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	(void)arg;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X &&
		    code_count < sizeof(codes) / sizeof(codes[0])) {
			codes[code_count].begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
			codes[code_count].end = codes[code_count].begin + info->dlpi_phdr[i].p_memsz;
			if (strstr(info->dlpi_name, "libgcc_s"))
				libgcc = codes[code_count];
			code_count++;
		}
	return 0;
}

static bool
is_code(uintptr_t pc)
{
	for (unsigned i = 0; i < code_count; i++)
		if (pc >= codes[i].begin && pc < codes[i].end)
			return true;
	return false;
}

/* Where handlers return to: mov $15, %rax; syscall. */
static unw_word_t restorer;

static bool
is_sigreturn(unw_word_t pc)
{
	return pc - restorer < 9;
}

/* On aarch64 OpenSSL's assembly has no .eh_frame: what is below is everybody's guess.  Nor
 * have a linker's stubs, but these are known by what they are. */
static bool
is_described(uintptr_t pc, bool exact)
{
#if defined(__aarch64__)
	struct tables_reader r;
	const struct tables *t = tables_enter(&r);
	bool                 known = t && tables_code(t, pc) != TABLES_CODE_NONE;

	tables_leave(&r);
	return known || (exact && unwind_verdict(pc) & UNWIND_VERDICT_STUB);
#else
	(void)pc;
	(void)exact;
	return true;
#endif
}

/* On aarch64 libgcc's last instructions before the landing of an exception have the registers
 * of there, and libunwind looks at what stands before the landing where it has just arrived:
 * it finds the same place again, and ends. */
static bool
is_lost_at_landing(const uintptr_t *theirs, unsigned m, const void *ucontext)
{
#if defined(__aarch64__)
	bool landed = theirs[0] == ((const ucontext_t *)ucontext)->uc_mcontext.regs[30];
	bool lands = theirs[0] >= libgcc.begin && theirs[0] < libgcc.end;

	return (m == 2 && landed && theirs[1] == theirs[0] - 1) || (m == 3 && lands && theirs[2] == theirs[1]);
#else
	(void)theirs;
	(void)m;
	(void)ucontext;
	return false;
#endif
}

static void
compare(void *ucontext)
{
	uintptr_t          ours[DEPTH], theirs[DEPTH];
	struct unwind_regs regs;
	unw_cursor_t       cursor;
	unw_word_t         pc = 0, before;
	unsigned           n, m = 0, i;
	int                truncated, exact;

	unwind_regs_from_ucontext(&regs, ucontext);
	n = unwind_capture(&regs, ours, DEPTH, &truncated);
	if (unw_init_local2(&cursor, ucontext, UNW_INIT_SIGNAL_FRAME) != 0)
		return;
	do {
		before = pc;
		pc = 0;
		unw_get_reg(&cursor, UNW_REG_IP, &pc);
		if (pc == 0)
			break;
		/* The pc of what was interrupted is exact.  unw_is_signal_frame() says so of that
		 * frame, but once in a million stacks of another one, or of none. */
		exact = m == 0 || is_sigreturn(before);
		/* Just before libgcc goes to where an exception is caught, its frame holds
		 * the registers of there: nobody can walk it, and libunwind is lost. */
		if (!is_code(exact ? pc : pc - 1))
			break;
		theirs[m++] = exact || is_sigreturn(pc) ? pc : pc - 1;
		through_signals += exact && m > 1;
		if (!is_described(theirs[m - 1], exact))
			break;
	} while (m < DEPTH && unw_step(&cursor) > 0);
	if (is_lost_at_landing(theirs, m, ucontext))
		m--;
	for (i = 0; i < n && i < m && ours[i] == theirs[i]; i++) {}
	samples++;
	if (i == n && i == m)
		same++;
	else if (i == m)
		longer++;
	else if (i == n)
		shorter++;
	else
		divergent++;
	if (i < m && (i < n || bad_count < LISTED - 2)) /* some room for those that differ */
		note_bad(ours, n, theirs, m);
}

/* Of the thread. */
static __thread timer_t mine;

static const struct itimerspec after_a_while = { .it_value = { 0, 200000 } };

static void
on_prof(int number, siginfo_t *info, void *ucontext)
{
	int saved = errno;

	(void)number;
	(void)info;
	restorer = (uintptr_t)__builtin_return_address(0);
	compare(ucontext);
	/* Only now, so that a slow machine comes to run what is to be sampled. */
	timer_settime(mine, 0, &after_a_while, NULL);
	errno = saved;
}

static int
by_text(const void *a, const void *b)
{
	char one[32], two[32];

	snprintf(one, sizeof(one), "%08d", *(const int *)a);
	snprintf(two, sizeof(two), "%08d", *(const int *)b);
	return strcoll(one, two);
}

static void
on_user(int number)
{
	volatile double x = number;

	for (int i = 0; i < 300; i++)
		x = sin(x) + cos(x);
}

static void
work_sort(void)
{
	int numbers[200];

	for (int i = 0; i < 200; i++)
		numbers[i] = (i * 7919) % 10007;
	qsort(numbers, 200, sizeof(numbers[0]), by_text);
}

static void
work_regex(void)
{
	regex_t re;

	if (regcomp(&re, "(a|b)*c[0-9]{2,4}(foo|bar)+$", REG_EXTENDED) != 0)
		return;
	regexec(&re, "abababc123foobarfoo", 0, NULL, 0);
	regfree(&re);
}

static void
work_zlib(void)
{
	unsigned char in[4096], out[8192];
	uLongf        size = sizeof(out);

	for (size_t i = 0; i < sizeof(in); i++)
		in[i] = (unsigned char)(i * i >> 3);
	compress2(out, &size, in, sizeof(in), 6);
}

static void
work_misc(void)
{
	char       text[128];
	time_t     now = time(NULL);
	struct tm  tm;
	void      *blocks[50];

	localtime_r(&now, &tm);
	strftime(text, sizeof(text), "%A %F %Z", &tm);
	snprintf(text, sizeof(text), "%f %.20e %s", 3.14159 * (double)now, 1e-300 * (double)now, "x");
	for (int i = 0; i < 50; i++)
		blocks[i] = malloc((size_t)i * 333);
	for (int i = 0; i < 50; i++)
		free(blocks[i]);
	pthread_kill(pthread_self(), SIGUSR1);
}

static void *
work(void *arg)
{
	char            *alternate = malloc(64 * 1024);
	stack_t          ss = { .ss_sp = alternate, .ss_size = 64 * 1024 };
	struct sigevent  ev = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF };

	(void)arg;
	sigaltstack(&ss, NULL);
	ev._sigev_un._tid = (pid_t)syscall(SYS_gettid);
	assert_int_equal(timer_create(CLOCK_MONOTONIC, &ev, &mine), 0);
	timer_settime(mine, 0, &after_a_while, NULL);
	while (!stop) {
		work_sort();
		work_regex();
		work_zlib();
		work_misc();
		mix_bare(24, (void *)mix_framed);
		mix_throw();
		if (have_tls)
			mix_tls();
	}
	timer_delete(mine);
	ss.ss_flags = SS_DISABLE;
	sigaltstack(&ss, NULL);
	free(alternate);
	return NULL;
}

static void
list_frame(unsigned i, unsigned k)
{
	uintptr_t ours = k < bad_n[i] ? bad_ours[i][k] : 0, theirs = k < bad_m[i] ? bad_theirs[i][k] : 0;
	Dl_info   in = { 0 };

	dladdr((void *)(theirs ? theirs : ours), &in);
	print_message("# %u.%u %#lx %#lx\n", i, k, ours, theirs);
	print_message("#      %s+%#lx %s\n", in.dli_fname ? in.dli_fname : "?",
		      (theirs ? theirs : ours) - (uintptr_t)in.dli_fbase, in.dli_sname ? in.dli_sname : "");
}

static void
stacks_are_those_of_libunwind(void **state)
{
	struct sigaction prof = { .sa_sigaction = on_prof, .sa_flags = SA_SIGINFO | SA_RESTART };
	struct sigaction user = { .sa_handler = on_user, .sa_flags = SA_RESTART | SA_ONSTACK };
	pthread_t        threads[3];
	const char      *wanted = getenv("TEST_STRESS");
	unsigned         target = wanted ? 20 * SAMPLES : SAMPLES;
	const char      *no_tls = mix_tls_open();

	(void)state;
	have_tls = !*no_tls;
	if (!have_tls)
		print_message("# without TLS in the mix: %s\n", no_tls);
	dl_iterate_phdr(note_code, NULL);
	assert_int_equal(unwind_start(UNWIND_TABLES), 0);
	sigfillset(&prof.sa_mask);
	sigaction(SIGPROF, &prof, NULL);
	sigaction(SIGUSR1, &user, NULL);
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, work, NULL), 0);
	WAIT_FOR_S(samples >= target, wanted ? 600 : 20);
	stop = true;
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	print_message("# %u samples: %u the same, %u longer, %u shorter, %u divergent, %u through signal frames\n", samples,
		      same, longer, shorter, divergent, through_signals);
	for (unsigned i = 0; i < bad_count && i < LISTED; i++)
		for (unsigned k = 0; k < bad_n[i] || k < bad_m[i]; k++)
			list_frame(i, k);
	assert_true(samples > 1000);
	assert_true(same > samples / 2);
	assert_int_equal(divergent, 0);
#if defined(__aarch64__)
	/* At the first instruction of glibc's resolver of lazily bound calls its rules leave out
	 * the 16 bytes that the stub has pushed. */
	assert_true((double)(samples - shorter) >= 0.999 * samples);
#else
	assert_true((double)(samples - shorter) >= 0.9999 * samples);
#endif
}

static void
a_child_of_a_handler_in_a_walk_counts_its_readers_right(void **state)
{
	struct tables_reader reader;
	struct tables_stats  stats;

	(void)state;
	assert_int_equal(tables_build(), 0);
	tables_enter(&reader);
	tables_forked(); /* as in the child of a handler that has interrupted the walk */
	tables_leave(&reader);
	for (int i = 0; i < 3; i++)
		assert_int_equal(tables_build(), 0);
	tables_stats(&stats);
	assert_int_equal(stats.limbo, 0);
}

static void
tables_stay_small(void **state)
{
	struct tables_stats stats;

	(void)state;
	tables_stats(&stats);
	print_message("# %zu objects, %zu rows, %zu rules, %zu bad, %zu bytes for %zu bytes of .eh_frame\n",
		      stats.objects, stats.rows, stats.rules, stats.bad, stats.bytes, stats.frames_bytes);
	assert_true(stats.objects >= 3);
	assert_int_equal(stats.bad, 0);
	assert_true(stats.bytes <= 2 * stats.frames_bytes);
}

/* ---- descriptions that overlap ---- */

#define TAIL_BYTES ((size_t)256 << 10)
#define HEADS_MAX  1000
#define HEAD_BYTES 22 /* of a description, up to where the tail is leapt to */
#define CIE_BYTES  20
#define MADE_AT    ((size_t)1 << 20) /* in a file; code is before it */

/* .eh_frame_hdr and .eh_frame: a CIE, the heads of many descriptions, and the program that is the end of each. */
static struct {
	struct {
		uint8_t  form[4];
		int32_t  frames;
		uint32_t count;
		struct { int32_t pc, description; } entries[HEADS_MAX];
	} header;
	uint8_t frames[CIE_BYTES + HEADS_MAX * HEAD_BYTES + TAIL_BYTES];
} made;

static void
put(uint8_t **at, uint32_t value, unsigned bytes)
{
	memcpy(*at, &value, bytes);
	*at += bytes;
}

/* A record from at to the end of .eh_frame, of this CIE; NULL: it is one. */
static uint8_t *
put_record(uint8_t *at, const uint8_t *cie)
{
	put(&at, (uint32_t)(made.frames + sizeof(made.frames) - at - 4), 4);
	put(&at, cie ? (uint32_t)(at - cie) : 0, 4);
	return at;
}

static void
put_cie_head(uint8_t **at)
{
	static const uint8_t head[] = { 1, 'z', 'R', 0, 1, 0x78, CFI_REG_RA, 1, 0x1b };

	memcpy(*at, head, sizeof(head));
	*at += sizeof(head);
}

/* Over what lies before the tail: the expression of a register that nobody follows. */
static void
put_leap(uint8_t *at)
{
	uint32_t over = (uint32_t)(made.frames + sizeof(made.frames) - TAIL_BYTES - at - 5);

	put(&at, 0x16, 1);
	put(&at, 40, 1);
	put(&at, 0x8080 | (over & 0x7f) | (over >> 7 & 0x7f) << 8 | over >> 14 << 16, 3);
}

/* Functions at begin, begin + apart, ..., with a tail of these two bytes again and again. */
static void
overlap(unsigned count, uintptr_t header, uintptr_t frames, uintptr_t begin, uint32_t apart, const uint8_t *tail, size_t tail_bytes)
{
	uint8_t *at = made.frames;

	put(&at, CIE_BYTES - 4, 4);
	put(&at, 0, 4);
	put_cie_head(&at);
	put(&at, CFI_REG_SP << 8 | 0x0c, 2);
	put(&at, 8, 1);
	memcpy(made.header.form, "\x01\x1b\x03\x3b", 4);
	made.header.frames = (int32_t)(frames - header - 4);
	made.header.count = count;
	for (unsigned i = 0; i < count; i++) {
		uint8_t *head = made.frames + CIE_BYTES + i * HEAD_BYTES;
		uintptr_t pc = begin + i * apart, here = frames + (uintptr_t)(head - made.frames);

		made.header.entries[i].pc = (int32_t)(pc - header);
		made.header.entries[i].description = (int32_t)(here - header);
		at = put_record(head, made.frames);
		put(&at, (uint32_t)(pc - here - 8), 4);
		put(&at, apart, 4);
		put(&at, 0, 1);
		put_leap(at);
	}
	for (size_t i = 0; i < TAIL_BYTES; i++)
		made.frames[sizeof(made.frames) - TAIL_BYTES + i] = tail[i % tail_bytes];
}

#define ROWS_SANE (8 * sizeof(made.frames))

static int
count_row(void *arg, uintptr_t pc, const struct cfi_row *row)
{
	(void)pc;
	(void)row;
	return ++*(size_t *)arg > ROWS_SANE ? -ENOSPC : 0;
}

static void
descriptions_that_overlap_cost_no_more_than_the_bytes_there_are(void **state)
{
	static const uint8_t advance = 0x41;
	struct cfi_section   header = { (uint8_t *)&made.header, sizeof(made.header), 0x100000 };
	struct cfi_section   frames = { made.frames, sizeof(made.frames), 0x200000 };
	size_t               rows = 0, bad = 0, extent;

	(void)state;
	overlap(HEADS_MAX, header.address, frames.address, 0x10000000, 1 << 20, &advance, 1);
	assert_int_equal(cfi_parse(&header, &frames, count_row, &rows, &bad, &extent), 0);
	assert_true(rows > TAIL_BYTES); /* the first ones are whole */
	assert_true(bad > HEADS_MAX / 2);
}

static void
count_function(void *arg, uintptr_t pc, size_t offset)
{
	(void)pc;
	(void)offset;
	++*(unsigned *)arg;
}

/* Many more than are remembered, in turns: each is run again for each function. */
static void
so_do_cies_that_overlap(void **state)
{
	struct cfi_section frames = { made.frames, sizeof(made.frames), 0x200000 };
	uint8_t           *at = made.frames, *cies[6];
	unsigned           found = 0;

	(void)state;
	memset(&made, 0, sizeof(made));
	put(&at, 4 + 6 * (8 + CIE_BYTES), 4);
	put(&at, 0, 4);
	for (unsigned i = 0; i < 6; i++) {
		uint8_t *to;

		cies[i] = at;
		to = put_record(at, NULL);
		put_cie_head(&to);
		put_leap(to);
		at += 8 + CIE_BYTES;
	}
	for (unsigned i = 0; i < HEADS_MAX / 2; i++) {
		put(&at, 12, 4);
		put(&at, (uint32_t)(at - cies[i % 6]), 4);
		put(&at, i, 4);
		put(&at, 1, 4);
	}
	assert_int_equal(cfi_functions(&frames, count_function, &found), 0);
	assert_true(found > 0 && found < 6);
}

/* A file that is nothing but a program header of what was made, which is at its end. */
static void *
map_made(size_t *ret_size)
{
	struct {
		Elf64_Ehdr eh;
		Elf64_Phdr ph[2];
	} head;
	size_t size = MADE_AT + sizeof(made);
	int    fd = memfd_create("overlapping", MFD_CLOEXEC), self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	void  *p;

	assert_true(read(self, &head.eh, sizeof(head.eh)) == sizeof(head.eh));
	close(self);
	head.eh.e_phoff = offsetof(__typeof__(head), ph);
	head.eh.e_phnum = 2;
	head.eh.e_shnum = 0;
	head.ph[0] = (Elf64_Phdr){ .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = size, .p_memsz = size };
	head.ph[1] = (Elf64_Phdr){ .p_type = PT_GNU_EH_FRAME, .p_vaddr = MADE_AT, .p_memsz = sizeof(made.header) };
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	assert_true(pwrite(fd, &head, sizeof(head), 0) == sizeof(head));
	assert_true(pwrite(fd, &made, sizeof(made), MADE_AT) == sizeof(made));
	p = mmap(NULL, size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	close(fd);
	assert_true(p != MAP_FAILED);
	*ret_size = size;
	return p;
}

static void
rows_of_an_object_are_no_more_than_its_descriptions_have_bytes_for(void **state)
{
	static const uint8_t tail[] = { 0x41, 0x0e, 16, 0x41, 0x0e, 24 };
	struct tables_stats  before, with;
	size_t               size;
	void                *p;

	(void)state;
	assert_int_equal(tables_build(), 0);
	tables_stats(&before);
	memset(&made, 0, sizeof(made));
	overlap(6, MADE_AT, MADE_AT + offsetof(__typeof__(made), frames), 4096, TAIL_BYTES / 2, tail, sizeof(tail));
	p = map_made(&size);
	assert_int_equal(tables_build(), 0);
	tables_stats(&with);
	munmap(p, size);
	assert_int_equal(tables_build(), 0);
	assert_true(with.rows <= before.rows + sizeof(made.frames) / 2);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stacks_are_those_of_libunwind),
		cmocka_unit_test(a_child_of_a_handler_in_a_walk_counts_its_readers_right),
		cmocka_unit_test(tables_stay_small),
		cmocka_unit_test(descriptions_that_overlap_cost_no_more_than_the_bytes_there_are),
		cmocka_unit_test(so_do_cies_that_overlap),
		cmocka_unit_test(rows_of_an_object_are_no_more_than_its_descriptions_have_bytes_for),
	};

	return cmocka_run_group_tests_name("unwind_tables", tests, NULL, NULL);
}
