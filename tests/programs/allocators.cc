/*
 * allocators.cc - a program whose blocks are known, for tests/hooks/allocators.t.
 *
 * The blocks come from malloc's family and from C++'s operators, and go through the extra
 * functions of whichever allocator is there (jemalloc's mallocx(), mimalloc's mi_free(),
 * tcmalloc's tc_malloc()), which know nothing of us.  Prints "started", keeps BLOCKS blocks
 * of each site after a line on standard input, prints "ready" and waits for the next one.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <new>

#ifdef LINKED
#include <component/profiler.h>
#endif

#define BLOCKS 6000
#define BYTES 1280
#define SITE __attribute__((noinline, noclone)) static void

struct alignas(64) Line { char bytes[BYTES]; };

static void *kept[7][BLOCKS];

SITE site_malloc(void **to, int i) { to[i] = malloc(BYTES); }
SITE site_calloc(void **to, int i) { to[i] = calloc(BYTES / 10, 10); }
SITE site_realloc(void **to, int i) { to[i] = realloc(NULL, BYTES); }
SITE site_aligned(void **to, int i) { to[i] = aligned_alloc(64, BYTES); }
SITE site_new(void **to, int i) { to[i] = ::operator new(BYTES); }
SITE site_new_array(void **to, int i) { to[i] = new char[BYTES]; }
SITE site_new_aligned(void **to, int i) { to[i] = new Line; }

typedef void site_fn(void **to, int i);
static site_fn *const sites[] = { site_malloc, site_calloc, site_realloc, site_aligned, site_new, site_new_array, site_new_aligned };

/* The first sample of a thread is due by the rate that held when its gap was drawn, and stands for as
 * many bytes: half a mebibyte here, which would be 7 % of a site.  It falls in these. */
SITE
use_up_old_gap()
{
	for (int i = 0; i < 256; i++) {
		void *volatile p = malloc(65536);

		free(p);
	}
}

/* What the allocator has beside the family. */
struct extra {
	const char *take, *give, *size;
	bool flags;  /* jemalloc's: each takes an argument more */
};

static const struct extra extras[] = {
	{ "mallocx", "dallocx", "sallocx", true },
	{ "mi_malloc", "mi_free", "mi_usable_size", false },
	{ "tc_malloc", "tc_free", "tc_malloc_size", false },
};

static void *(*take)(size_t, int);
static void (*give)(void *, int);
static size_t (*size_of)(void *, int);
static size_t (*nallocx)(size_t, int);
static void (*sdallocx)(void *, size_t, int);

static void
find_extras()
{
	for (const struct extra &e : extras) {
		if (!dlsym(RTLD_DEFAULT, e.give))
			continue;
		take = (void *(*)(size_t, int))dlsym(RTLD_DEFAULT, e.take);
		give = (void (*)(void *, int))dlsym(RTLD_DEFAULT, e.give);
		size_of = (size_t (*)(void *, int))dlsym(RTLD_DEFAULT, e.size);
	}
	nallocx = (size_t (*)(size_t, int))dlsym(RTLD_DEFAULT, "nallocx");
	sdallocx = (void (*)(void *, size_t, int))dlsym(RTLD_DEFAULT, "sdallocx");
}

/* Blocks of ours that go by the allocator's own door, and the other way round. */
__attribute__((noinline, noclone)) static void
site_cross(int i)
{
	size_t bytes = BYTES + i % 100;
	char  *p = (char *)malloc(bytes), *q = (char *)take(bytes, 0), *r = (char *)malloc(bytes);

	memset(p, 1, bytes);
	memset(q, 2, bytes);
	memset(r, 3, bytes);
	if (size_of && size_of(p, 0) < bytes)
		abort();
	if (nallocx && nallocx(bytes, 0) < bytes)
		abort();
	give(p, 0);
	q = (char *)realloc(q, 2 * bytes);
	if (!q || q[0] != 2 || q[bytes - 1] != 2)
		abort();
	free(q);
	if (sdallocx)
		sdallocx(r, bytes, 0);
	else
		give(r, 0);
	p = strdup("of the C library's, which calls malloc()");
	give(p, 0);
	give(::operator new(bytes), 0);
}

static void
give_back(int site, void *p)
{
	switch (site) {
	case 4:
		::operator delete(p);
		break;
	case 5:
		delete[] (char *)p;
		break;
	case 6:
		delete (Line *)p;
		break;
	default:
		free(p);
	}
}

int
main(int argc, char **argv)
{
	char line[100];

#ifdef LINKED
	if (argc > 1 && component_profiler_start(argv[1]) < 0)
		return 1;
#endif
	(void)argc;
	(void)argv;
	find_extras();
	puts("started");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 2;
	use_up_old_gap();
	for (int i = 0; i < BLOCKS; i++)
		for (size_t s = 0; s < sizeof(sites) / sizeof(sites[0]); s++)
			sites[s](kept[s], i);
	for (int i = 0; give && i < 2 * BLOCKS; i++)
		site_cross(i);
	printf("ready %s\n", give ? "crossed" : "");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 3;
	for (int i = 0; i < BLOCKS; i++)
		for (size_t s = 0; s < sizeof(sites) / sizeof(sites[0]); s++)
			give && i % 2 && s < 3 ? give(kept[s][i], 0) : give_back((int)s, kept[s][i]);
	for (int i = 0; give && i < BLOCKS; i++)
		site_cross(i);
	puts("fine");
	return 0;
}
