/*
 * names_of_addresses.c - a program that loads objects and says how addresses in it are
 * called, for tests/symbols/names.t.  Commands on standard input, a line each:
 *
 *     load PATH      dlopen; answers "base 0x..."
 *     open [LIMIT]   a fresh view with LIMIT bytes
 *     at 0x...       "NAME<TAB>SYSTEM_NAME<TAB>OFFSET<TAB>OBJECT", or "nothing"
 *     maps           the mappings, "START-LIMIT OFFSET BUILDID PATH" each, then "end"
 *     unread         how many objects could not be read
 *     debug DIR      where files of symbols that were split off lie
 *     close          "bytes N": what the view had taken
 *     time FROM TO N N addresses spread over a range; "build_us N lookup_ns N"
 */
#include <config.h>

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "debug_file.h"
#include "debugdata.h"
#include "symbols_state.h"

#define LIMIT ((size_t)64 << 20)
#define STACK ((size_t)256 << 10) /* what the library's own threads have */

static struct symbols *view;

static double
now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void
load(const char *path)
{
	void            *h = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	struct link_map *map;

	if (h && !dlinfo(h, RTLD_DI_LINKMAP, &map))
		printf("base 0x%lx\n", (unsigned long)map->l_addr);
	else
		printf("error %s\n", dlerror());
}

static void
at(uintptr_t pc)
{
	struct symbol_frame f[SYMBOLS_FRAMES_MAX];

	if (symbols_frames(view, pc, f, SYMBOLS_FRAMES_MAX))
		printf("%s\t%s\t%llu\t%s\n", f[0].name, f[0].system_name, (unsigned long long)f[0].offset, f[0].object);
	else
		printf("nothing\n");
}

static void
maps(void)
{
	for (size_t i = 0; i < symbols_mapping_count(view); i++) {
		const struct symbol_mapping *m = symbols_mapping(view, i);

		printf("%lx-%lx %llx %s %s\n", (unsigned long)m->start, (unsigned long)m->limit,
			(unsigned long long)m->offset, *m->build_id ? m->build_id : "-", m->path);
	}
	printf("end\n");
}

static void
measure(uintptr_t from, uintptr_t to, unsigned long n)
{
	struct symbol_frame f[SYMBOLS_FRAMES_MAX];
	double              start = now_us(), built;

	symbols_frames(view, from, f, SYMBOLS_FRAMES_MAX);
	built = now_us();
	for (unsigned long i = 0; i < n; i++)
		symbols_frames(view, from + (i * 7919 % n) * (to - from) / n, f, SYMBOLS_FRAMES_MAX);
	printf("build_us %.0f first_ns %.0f", built - start, (now_us() - built) * 1e3 / (double)n);
	built = now_us();
	for (unsigned long i = 0; i < n; i++)
		symbols_frames(view, from + (i * 7919 % n) * (to - from) / n, f, SYMBOLS_FRAMES_MAX);
	printf(" lookup_ns %.0f bytes %zu\n", (now_us() - built) * 1e3 / (double)n, view->budget.used);
}

static void
command(char *line)
{
	char         *save, *word = strtok_r(line, " \n", &save), *arg = strtok_r(NULL, " \n", &save);
	unsigned long from, to;

	if (!word)
		return;
	if (!strcmp(word, "load")) {
		load(arg);
	} else if (!strcmp(word, "open")) {
		printf("open %d\n", symbols_open(arg ? strtoul(arg, NULL, 0) : LIMIT, &view));
	} else if (!strcmp(word, "prepare")) {
		debugdata_prepare();
		printf("prepared\n");
	} else if (!strcmp(word, "at")) {
		at(strtoul(arg, NULL, 0));
	} else if (!strcmp(word, "maps")) {
		maps();
	} else if (!strcmp(word, "unread")) {
		printf("unread %u\n", symbols_unread(view));
	} else if (!strcmp(word, "debug")) {
		debug_file_root = strdup(arg);
		printf("debug %s\n", arg);
	} else if (!strcmp(word, "time")) {
		from = strtoul(arg, NULL, 0);
		to = strtoul(strtok_r(NULL, " \n", &save), NULL, 0);
		measure(from, to, strtoul(strtok_r(NULL, " \n", &save), NULL, 0));
	} else if (!strcmp(word, "close")) {
		printf("bytes %zu\n", view->budget.used);
		symbols_close(view);
		view = NULL;
	}
	fflush(stdout);
}

static void *
run(void *arg)
{
	char line[4096];

	while (fgets(line, sizeof(line), stdin))
		command(line);
	return arg;
}

int
main(void)
{
	pthread_attr_t attr;
	pthread_t      thread;

	/* On the stack that a request has, so that all of the tests prove that it does. */
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	if (pthread_create(&thread, &attr, run, NULL))
		return 1;
	pthread_join(thread, NULL);
	_exit(0); /* the loader would run code of files that a test has cut short */
}
