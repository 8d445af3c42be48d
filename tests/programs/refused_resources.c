/*
 * refused_resources.c - a program whose profiler is refused one thing, once: tests/whole/refused_resources.t.
 *
 *     faults [KIND NUMBER]
 *
 * The NUMBERth call of a KIND (block, map, descriptor, thread, timer) that libcomponent,
 * or a library that only it uses here, makes from now on fails.  Obeys lines: "start",
 * "stop", "report"; answers each with one line.  Prints "failed NAME OBJECT+OFFSET" to stderr
 * when it has come to that.
 *
 * How: the slots of those objects through which they call libc are turned to functions of
 * ours, which count; nobody else's calls are touched.  What a stranger would get wrong: a
 * wrapper takes seven words and hands them on, which suits any function that has at most
 * seven arguments (syscall() has), none of them floating, variadic or not.
 */
#include <component/profiler.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum kind { BLOCK, MAP, DESCRIPTOR, THREAD, TIMER, KINDS };

static const char *const kinds[KINDS] = { "block", "map", "descriptor", "thread", "timer" };
static atomic_ulong      counts[KINDS];
static enum kind         chosen = KINDS;
static unsigned long     chosen_number;
static atomic_ulong      failed;

/* ---- what is out: blocks by address, mappings by length ---- */

#define OUT_MAX (1u << 17)

static _Atomic(void *) out[OUT_MAX];
static atomic_long     blocks_out, bytes_mapped;

static void
out_add(void *p)
{
	void    *empty;
	uint32_t i = (uint32_t)(((uintptr_t)p >> 4) * 2654435761u) % OUT_MAX;

	for (; p; i = (i + 1) % OUT_MAX) {
		empty = NULL;
		if (atomic_load(&out[i]) == (void *)1)
			empty = (void *)1;
		if (atomic_compare_exchange_strong(&out[i], &empty, p))
			break;
	}
	if (p)
		blocks_out++;
}

static bool
out_remove(void *p)
{
	uint32_t i = (uint32_t)(((uintptr_t)p >> 4) * 2654435761u) % OUT_MAX;
	void    *at;

	for (; p && (at = atomic_load(&out[i])); i = (i + 1) % OUT_MAX)
		if (at == p) {
			atomic_store(&out[i], (void *)1);
			blocks_out--;
			return true;
		}
	return false;
}

/* ---- the wrappers ---- */

static bool
fails(enum kind kind, const char *name, void *caller)
{
	Dl_info info = { .dli_fname = "?" };
	char    line[256];
	int     n;

	if (++counts[kind] != chosen_number || kind != chosen)
		return false;
	dladdr(caller, &info);
	n = snprintf(line, sizeof(line), "failed %s %s+%#lx\n", name, info.dli_fname,
		(unsigned long)((char *)caller - (char *)info.dli_fbase - 1));
	failed++;
	return write(STDERR_FILENO, line, (size_t)n) >= 0;
}

typedef long function(long, long, long, long, long, long, long);

#define SEVEN     long a, long b, long c, long d, long e, long f, long g
#define HAND_ON   a, b, c, d, e, f, g
/* X(name, kind, errno, returned, what else is done with the result r) */
#define WRAPPED(X)                                                                      \
	X(malloc, BLOCK, ENOMEM, 0, out_add((void *)r))                                 \
	X(calloc, BLOCK, ENOMEM, 0, out_add((void *)r))                                 \
	X(realloc, BLOCK, ENOMEM, 0, (r || !b) && out_remove((void *)a); out_add((void *)r)) \
	X(reallocarray, BLOCK, ENOMEM, 0, r && out_remove((void *)a); out_add((void *)r)) \
	X(aligned_alloc, BLOCK, ENOMEM, 0, out_add((void *)r))                          \
	X(posix_memalign, BLOCK, ENOMEM, ENOMEM, r == 0 ? out_add(*(void **)a) : (void)0) \
	X(strdup, BLOCK, ENOMEM, 0, out_add((void *)r))                                 \
	X(open_memstream, BLOCK, ENOMEM, 0, )                                           \
	X(mmap, MAP, ENOMEM, (long)MAP_FAILED, bytes_mapped += r == -1 || d & MAP_FIXED ? 0 : b) \
	X(mremap, MAP, ENOMEM, (long)MAP_FAILED, bytes_mapped += r == -1 ? 0 : c - b)   \
	X(mprotect, MAP, ENOMEM, -1, )                                                  \
	X(open, DESCRIPTOR, EMFILE, -1, )                                               \
	X(openat, DESCRIPTOR, EMFILE, -1, )                                             \
	X(opendir, DESCRIPTOR, EMFILE, 0, )                                             \
	X(fdopendir, DESCRIPTOR, ENOMEM, 0, )                                           \
	X(fdopen, DESCRIPTOR, ENOMEM, 0, )                                              \
	X(socket, DESCRIPTOR, EMFILE, -1, )                                             \
	X(socketpair, DESCRIPTOR, EMFILE, -1, )                                         \
	X(accept4, DESCRIPTOR, EMFILE, -1, )                                            \
	X(epoll_create1, DESCRIPTOR, EMFILE, -1, )                                      \
	X(eventfd, DESCRIPTOR, EMFILE, -1, )                                            \
	X(timerfd_create, DESCRIPTOR, EMFILE, -1, )                                     \
	X(inotify_init1, DESCRIPTOR, EMFILE, -1, )                                      \
	X(epoll_ctl, DESCRIPTOR, ENOSPC, -1, )                                          \
	X(pthread_create, THREAD, EAGAIN, EAGAIN, )                                     \
	X(timer_create, TIMER, EAGAIN, -1, )

#define WRAPPER(name, kind, error, value, then)                                         \
	static function *real_##name;                                                   \
	static long faulty_##name(SEVEN)                                                  \
	{                                                                               \
		long r;                                                                 \
		if (fails(kind, #name, __builtin_return_address(0))) {                  \
			errno = error;                                                  \
			return value;                                                   \
		}                                                                       \
		r = real_##name(HAND_ON);                                               \
		then;                                                                   \
		return r;                                                               \
	}
WRAPPED(WRAPPER)

static function *real_free, *real_munmap, *real_syscall, *real_fcntl;

static long
faulty_free(SEVEN)
{
	out_remove((void *)a);
	return real_free(HAND_ON);
}

static long
faulty_munmap(SEVEN)
{
	bytes_mapped -= b;
	return real_munmap(HAND_ON);
}

static long
faulty_fcntl(SEVEN)
{
	if ((b == F_DUPFD_CLOEXEC || b == F_DUPFD) && fails(DESCRIPTOR, "fcntl", __builtin_return_address(0))) {
		errno = EMFILE;
		return -1;
	}
	return real_fcntl(HAND_ON);
}

static long
faulty_syscall(SEVEN)
{
	if ((a == SYS_timer_create && fails(TIMER, "timer_create", __builtin_return_address(0))) ||
		(a == SYS_perf_event_open && fails(DESCRIPTOR, "perf_event_open", __builtin_return_address(0)))) {
		errno = EAGAIN;
		return -1;
	}
	return real_syscall(HAND_ON);
}

static const struct wrapped {
	const char *name;
	function   *faulty, **real;
} wrapped[] = {
#define ROW(name, kind, error, value, then) { #name, faulty_##name, &real_##name },
	WRAPPED(ROW)
	{ "free", faulty_free, &real_free },
	{ "munmap", faulty_munmap, &real_munmap },
	{ "fcntl", faulty_fcntl, &real_fcntl },
	{ "syscall", faulty_syscall, &real_syscall },
};

/* ---- turning slots ---- */

static void
turn(void **slot, const char *name)
{
	uintptr_t page = (uintptr_t)slot & ~(uintptr_t)(getpagesize() - 1);

	for (size_t i = 0; i < sizeof(wrapped) / sizeof(wrapped[0]); i++)
		if (strcmp(wrapped[i].name, name) == 0) {
			if (!*wrapped[i].real)
				*wrapped[i].real = (function *)dlsym(RTLD_DEFAULT, name);
			if (mprotect((void *)page, (size_t)getpagesize(), PROT_READ | PROT_WRITE) < 0)
				abort();
			*slot = (void *)wrapped[i].faulty;
		}
}

static int
turn_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	static const char *const ours[] = { "libcomponent.so", "libevent_core", "libprotobuf-c", "libz.so" };
	const ElfW(Dyn) *dyn = NULL;
	const ElfW(Sym) *symbols = NULL;
	const char      *strings = NULL;
	struct {
		const ElfW(Rela) *rows;
		size_t            bytes;
	} tables[2] = { 0 };
	bool is_ours = false;

	(void)size;
	(void)arg;
	for (int i = 0; i < 4; i++)
		is_ours |= strstr(info->dlpi_name, ours[i]) != NULL;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			dyn = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	for (; is_ours && dyn && dyn->d_tag != DT_NULL; dyn++) {
		switch (dyn->d_tag) {
		case DT_SYMTAB: symbols = (const ElfW(Sym) *)dyn->d_un.d_ptr; break;
		case DT_STRTAB: strings = (const char *)dyn->d_un.d_ptr; break;
		case DT_JMPREL: tables[0].rows = (const ElfW(Rela) *)dyn->d_un.d_ptr; break;
		case DT_PLTRELSZ: tables[0].bytes = dyn->d_un.d_val; break;
		case DT_RELA: tables[1].rows = (const ElfW(Rela) *)dyn->d_un.d_ptr; break;
		case DT_RELASZ: tables[1].bytes = dyn->d_un.d_val; break;
		}
	}
	for (int t = 0; t < 2 && symbols; t++)
		for (size_t i = 0; i < tables[t].bytes / sizeof(ElfW(Rela)); i++) {
			const ElfW(Rela) *r = &tables[t].rows[i];
			unsigned          type = (unsigned)ELF64_R_TYPE(r->r_info);

			if (type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT || type == R_AARCH64_JUMP_SLOT ||
				type == R_AARCH64_GLOB_DAT)
				turn((void **)(info->dlpi_addr + r->r_offset),
					strings + symbols[ELF64_R_SYM(r->r_info)].st_name);
		}
	return 0;
}

/* ---- the daemon ---- */

static pthread_mutex_t   lock = PTHREAD_MUTEX_INITIALIZER;
static volatile unsigned sink;
static atomic_bool       over;

__attribute__((noinline)) static void
keeps_busy(void)
{
	char *block = malloc(3000);

	for (unsigned i = 0; i < 100000; i++)
		sink += i;
	pthread_mutex_lock(&lock); /* which the other one waits for */
	nanosleep(&(struct timespec) { 0, 1000000 }, NULL);
	pthread_mutex_unlock(&lock);
	block[0] = 1;
	free(block);
}

static void *
work(void *arg)
{
	while (!over)
		keeps_busy();
	return arg;
}

static void
start(void)
{
	struct component_profiler_options options = COMPONENT_PROFILER_OPTIONS_INIT;
	struct component_error            err = COMPONENT_ERROR_INIT;
	char                              url[200] = "";

	options.address = "127.0.0.1:0";
	options.heap_rate_bytes = 1024;
	options.mutex_fraction = 1;
	options.block_rate_ns = 1;
	if (component_profiler_start_options(&options, &err) < 0) {
		printf("refused: %s\n", err.text);
		return;
	}
	component_profiler_url(url, sizeof(url));
	printf("serves %s\n", url);
}

int
main(int argc, char **argv)
{
	pthread_t t[2];
	char      line[64];

	if (argc == 3)
		for (int k = 0; k < KINDS; k++)
			if (strcmp(kinds[k], argv[1]) == 0)
				chosen = (enum kind)k, chosen_number = strtoul(argv[2], NULL, 10);
	dl_iterate_phdr(turn_object, NULL);
	for (int i = 0; i < 2; i++)
		if (pthread_create(&t[i], NULL, work, NULL))
			return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("ready\n");
	while (fgets(line, sizeof(line), stdin)) {
		if (strcmp(line, "start\n") == 0) {
			start();
		} else if (strcmp(line, "stop\n") == 0) {
			printf("stopped %d\n", component_profiler_stop());
		} else {
			printf("blocks %ld bytes %ld failed %lu", blocks_out, bytes_mapped, failed);
			for (int k = 0; k < KINDS; k++)
				printf(" %s %lu", kinds[k], counts[k]);
			printf("\n");
		}
	}
	over = true;
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	return 0;
}
