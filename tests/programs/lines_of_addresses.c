/*
 * lines_of_addresses.c - says which lines addresses of an ELF file have, for tests/symbols/lines.t.
 *
 *     lines_of_addresses [-r DEBUG_ROOT] [-m LIMIT] OBJECT < ADDRESSES
 *
 * Addresses are the ELF's own, in hex, one a line.  Answers "ADDRESS" and below it a
 * line for each frame, innermost first: "<TAB>NAME<TAB>FILE<TAB>LINE<TAB>START_LINE",
 * "?" for what is not known.  On stderr: "status N cpu_us N rss_kb N".
 */
#include <config.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "debug_file.h"
#include "file.h"
#include "resolve.h"

#define STACK ((size_t)256 << 10) /* what the library's own threads have */

static struct object      object;
static struct resolve_pc *pcs;
static size_t             count;
static size_t             limit = (size_t)64 << 20;

static double
now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* The largest it has been; not ru_maxrss, which a process inherits. */
static long
rss_kb(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	char  line[256];
	long  kb = 0;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "VmHWM: %ld", &kb) == 1)
			break;
	if (f)
		fclose(f);
	return kb;
}

static void
print(const struct resolver *v)
{
	for (size_t i = 0; i < count; i++) {
		const struct resolved *r = resolver_find(v, pcs[i].pc);

		printf("%lx\n", (unsigned long)pcs[i].vaddr);
		for (unsigned k = 0; r && k < r->count; k++)
			printf("\t%s\t%s\t%u\t%u\n", r->frames[k].name ? r->frames[k].name : "?",
				r->frames[k].file ? r->frames[k].file : "?", r->frames[k].line, r->frames[k].start_line);
	}
}

static void *
run(void *arg)
{
	struct arena_budget budget = { 0, limit };
	struct arena        arena;
	struct resolver     v;
	long                rss = rss_kb();
	double              start = now_us();
	int                 r;

	arena_init(&arena, &budget);
	resolver_init(&v, &arena);
	r = resolver_read(&v, &object, pcs, count);
	fprintf(stderr, "status %d cpu_us %.0f rss_kb %ld\n", r, now_us() - start, rss_kb() - rss);
	print(&v);
	resolver_release(&v);
	arena_release(&arena);
	if (budget.used)
		fprintf(stderr, "lost %zu bytes\n", budget.used);
	return arg;
}

static int
open_object(const char *path)
{
	struct stat st;

	object.path = realpath(path, NULL);
	object.fd = object.path ? file_open(object.path) : -1;
	if (object.fd < 0 || image_open_file(&object.image, object.fd) < 0 || fstat(object.fd, &st) < 0)
		return -1;
	object.device = st.st_dev;
	object.inode = st.st_ino;
	if (image_build_id(&object.image, object.build_id) < 0)
		object.build_id[0] = '\0';
	return 0;
}

int
main(int argc, char **argv)
{
	pthread_attr_t attr;
	pthread_t      thread;
	unsigned long  address;
	size_t         room = 0;
	int            c;

	while ((c = getopt(argc, argv, "r:m:")) != -1)
		if (c == 'r')
			debug_file_root = optarg;
		else if (c == 'm')
			limit = strtoul(optarg, NULL, 0);
		else
			return 2;
	if (optind + 1 != argc || open_object(argv[optind]) < 0) {
		fprintf(stderr, "lines_of_addresses: cannot read the object\n");
		return 1;
	}
	while (scanf("%lx", &address) == 1) {
		if (count == room) {
			room = room ? room * 2 : 1024;
			pcs = realloc(pcs, room * sizeof(*pcs));
			if (!pcs)
				return 1;
		}
		pcs[count++] = (struct resolve_pc){ .pc = address, .vaddr = address };
	}
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	if (pthread_create(&thread, &attr, run, NULL))
		return 1;
	pthread_join(thread, NULL);
	return 0;
}
