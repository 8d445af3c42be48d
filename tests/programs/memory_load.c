/*
 * memory_load.c - a program that takes memory in every way there is, by lines on its standard
 * input, for tests of the table of resident memory.
 *
 *     memory_load PORT_FILE
 *     leak 30     so many MB, touched, each way a function of its own; see main()
 *
 * Each line is answered by one line.  "block" has a thread stand in malloc with its arena's lock
 * until "unblock": a page that malloc must write to is taken away from it meanwhile.
 *
 * With OWN_ALLOCATOR it is a program that has one linked in, as a name says.
 */
#include <config.h>

#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <component/profiler.h>

#define MB ((size_t)1000000)

#ifdef OWN_ALLOCATOR
/* jemalloc's, by which it is known. */
int mallctl(const char *name, void *old, size_t *old_size, void *new, size_t new_size)
	__attribute__((visibility("default")));

int
mallctl(const char *name, void *old, size_t *old_size, void *new, size_t new_size)
{
	(void)name, (void)old, (void)old_size, (void)new, (void)new_size;
	return 1;
}
#endif

static char  *volatile kept;
static void  *mapped[64];
static size_t mapped_count, mapped_bytes[64];
static sem_t  done, go_on, stopped;

/* Small blocks, which stay. */
__attribute__((noinline)) static void
leak_blocks(size_t bytes)
{
	char **block;

	for (size_t n = 0; n < bytes; n += 1016) {
		block = malloc(1000);
		memset(block, 1, 1000);
		*block = kept;
		kept = (char *)block;
	}
}

/* Small blocks that are freed again, but for a last one that keeps the heap's end where it is. */
__attribute__((noinline)) static void
free_blocks(size_t bytes)
{
	size_t count = bytes / 1016;
	char **blocks = malloc(count * sizeof(*blocks));

	for (size_t i = 0; i < count; i++)
		memset(blocks[i] = malloc(1000), 1, 1000);
	kept = malloc(1000);
	for (size_t i = 0; i < count; i++)
		free(blocks[i]);
	free(blocks);
}

__attribute__((noinline)) static void
large_block(size_t bytes)
{
	memset(kept = malloc(bytes), 1, bytes);
}

__attribute__((noinline)) static void
map_table(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memset(p, 1, bytes);
	mapped[mapped_count] = p;
	mapped_bytes[mapped_count++] = bytes;
}

/* A page below the program, wherever that is. */
static void
map_low(size_t bytes)
{
	(void)bytes;
	if (mmap((void *)0x100000, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != (void *)0x100000)
		abort();
}

/* A thousand pages for each MB, in mappings that the kernel cannot join. */
__attribute__((noinline)) static void
map_pages(size_t bytes)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE;

	for (size_t i = 0; i < bytes / 1000; i++)
		if (mmap(NULL, 4096, i % 2 ? PROT_READ : PROT_READ | PROT_WRITE, flags, -1, 0) == MAP_FAILED)
			abort();
}

/* Of the last mapping so much from its middle, as an allocator gives back what it has too much. */
__attribute__((noinline)) static void
unmap_middle(size_t bytes)
{
	size_t last = mapped_count - 1, at = (mapped_bytes[last] - bytes) / 2 & ~(size_t)4095;

	munmap((char *)mapped[last] + at, bytes);
}

__attribute__((noinline)) static void
grow_table(size_t bytes)
{
	size_t last = mapped_count - 1;

	mapped[last] = mremap(mapped[last], mapped_bytes[last], mapped_bytes[last] + bytes, MREMAP_MAYMOVE);
	memset((char *)mapped[last] + mapped_bytes[last], 1, bytes);
	mapped_bytes[last] += bytes;
}

static void
unmap_tables(size_t bytes)
{
	(void)bytes;
	while (mapped_count > 0) {
		mapped_count--;
		munmap(mapped[mapped_count], mapped_bytes[mapped_count]);
	}
}

/* Of which the last page is touched, and no hook knows. */
static void
map_raw(size_t bytes)
{
	char *p = (char *)syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	p[bytes - 1] = 1;
	printf("%lx ", (unsigned long)p);
}

static void
share(size_t bytes)
{
	memset(mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), 1, bytes);
}

static void
share_named(size_t bytes)
{
	int fd = memfd_create("planted", 0);

	if (ftruncate(fd, (off_t)bytes))
		return;
	memset(mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), 1, bytes);
}

/* A file of so many bytes, in the working directory. */
static void
map_file(size_t bytes)
{
	int            fd = open("planted.data", O_RDWR | O_CREAT | O_TRUNC, 0600);
	char           page[4096];
	volatile char *p;

	memset(page, 1, sizeof(page));
	for (size_t n = 0; n < bytes; n += sizeof(page))
		if (write(fd, page, sizeof(page)) < 0)
			return;
	p = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
	for (size_t n = 0; n < bytes; n += 4096)
		(void)p[n];
}

static void *
use_stack(void *bytes)
{
	volatile char *p = __builtin_alloca((size_t)(uintptr_t)bytes);

	pthread_setname_np(pthread_self(), "planted-stack");
	for (size_t i = 0; i < (size_t)(uintptr_t)bytes; i += 4096)
		p[i] = 1;
	sem_post(&done);
	for (;;)
		pause();
	return NULL;
}

/* Of which the thread touches half. */
static void
stack(size_t bytes)
{
	pthread_attr_t attr;
	pthread_t      t;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 2 * bytes);
	if (!pthread_create(&t, &attr, use_stack, (void *)(uintptr_t)bytes))
		while (sem_wait(&done))
			;
}

/* ---- threads with arenas, and one that stands in one ---- */

static void *
use_arena(void *bytes)
{
	leak_blocks((size_t)(uintptr_t)bytes);
	sem_post(&done);
	for (;;)
		pause();
	return NULL;
}

static void
arena(size_t bytes)
{
	pthread_t t;

	if (!pthread_create(&t, NULL, use_arena, (void *)(uintptr_t)bytes))
		while (sem_wait(&done))
			;
}

/* Eight at once, each with an arena of its own; they end, and their arenas stay. */
static pthread_barrier_t all_here;

static void *
use_and_end(void *bytes)
{
	pthread_barrier_wait(&all_here);
	free_blocks((size_t)(uintptr_t)bytes);
	pthread_barrier_wait(&all_here);
	return NULL;
}

static void
ended(size_t bytes)
{
	pthread_t t[8];

	pthread_barrier_init(&all_here, NULL, 8);
	for (int i = 0; i < 8; i++)
		if (pthread_create(&t[i], NULL, use_and_end, (void *)(uintptr_t)(bytes / 8)))
			abort();
	for (int i = 0; i < 8; i++)
		pthread_join(t[i], NULL);
}

static char *taken;

static void
on_segv(int sig)
{
	(void)sig;
	sem_post(&stopped);
	while (sem_wait(&go_on))
		;
	mprotect(taken, 4096, PROT_READ | PROT_WRITE);
}

static void *
stand_in_malloc(void *arg)
{
	char *p = malloc(60000);

	memset(p, 1, 60000);
	taken = (char *)((uintptr_t)(p + malloc_usable_size(p)) & ~(uintptr_t)4095);
	signal(SIGSEGV, on_segv);
	mprotect(taken, 4096, PROT_NONE);
	kept = malloc(20000);
	sem_post(&done);
	for (;;)
		pause();
	return arg;
}

static void
block(size_t bytes)
{
	pthread_t t;

	(void)bytes;
	if (!pthread_create(&t, NULL, stand_in_malloc, NULL))
		while (sem_wait(&stopped))
			;
}

static void
unblock(size_t bytes)
{
	(void)bytes;
	sem_post(&go_on);
	while (sem_wait(&done))
		;
}

static void
trim(size_t bytes)
{
	(void)bytes;
	malloc_trim(0);
}

/* A child goes on in its parent's place, with its own server; the parent waits for it. */
static void
fork_on(size_t bytes)
{
	pid_t child = fork();

	(void)bytes;
	if (child > 0) {
		waitpid(child, NULL, 0);
		_exit(0);
	}
	component_after_fork();
}

static void obey(void);

static void *
use_stack_and_fork_on(void *bytes)
{
	volatile char *p = __builtin_alloca((size_t)(uintptr_t)bytes);

	pthread_setname_np(pthread_self(), "planted-fork");
	for (size_t i = 0; i < (size_t)(uintptr_t)bytes; i += 4096)
		p[i] = 1;
	fork_on(0);
	printf("ok\n");
	obey();
	component_profiler_stop();
	exit(0);
	return NULL;
}

/* The child of a thread with a stack as all have it. */
static void
fork_thread(size_t bytes)
{
	pthread_t t;

	if (pthread_create(&t, NULL, use_stack_and_fork_on, (void *)(uintptr_t)bytes))
		abort();
	pthread_join(t, NULL);
}

static const struct {
	const char *name;
	void      (*take)(size_t bytes);
} ways[] = {
	{ "leak", leak_blocks }, { "free", free_blocks }, { "large", large_block }, { "map", map_table },
	{ "middle", unmap_middle }, { "grow", grow_table }, { "unmap", unmap_tables }, { "share", share },
	{ "named", share_named }, { "file", map_file }, { "stack", stack }, { "arena", arena }, { "ended", ended },
	{ "block", block }, { "unblock", unblock }, { "trim", trim }, { "fork", fork_on }, { "raw", map_raw },
	{ "pages", map_pages }, { "low", map_low }, { "thread-fork", fork_thread },
};

/* "figures": mallinfo2()'s, to be held against the table's. */
static void
figures(void)
{
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
	struct mallinfo2 m = mallinfo2();

	printf("%zu %zu %zu\n", m.uordblks + m.hblkhd, m.fordblks, m.hblkhd);
#else
	printf("none\n");
#endif
}

static void
command(char *line)
{
	size_t n = strcspn(line, " ");
	size_t mb = (size_t)atoi(line + n);

	line[n] = '\0';
	if (!strcmp(line, "figures")) {
		figures();
		return;
	}
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		if (!strcmp(line, ways[i].name))
			ways[i].take(mb * MB);
	printf("ok\n");
}

static void
obey(void)
{
	char line[64];

	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		command(line);
	}
}

int
main(int argc, char **argv)
{
	struct component_profiler_options o = COMPONENT_PROFILER_OPTIONS_INIT;
	struct component_error            err = COMPONENT_ERROR_INIT;

	if (argc != 2)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	sem_init(&done, 0, 0);
	sem_init(&go_on, 0, 0);
	sem_init(&stopped, 0, 0);
	o.address = "127.0.0.1:0";
	o.port_file = argv[1];
	if (component_profiler_start_options(&o, &err)) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	obey();
	component_profiler_stop();
	return 0;
}
