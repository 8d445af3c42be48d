/*
 * heap_sizes.c - a program whose call sites allocate blocks of ever other sizes.  For each line on
 * standard input it does so for a while and answers with a line.  Argument: where to serve.
 */
#include <component/labels.h>
#include <component/profiler.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void    *kept[4000];
static uint32_t seed = 2463534242u;

static uint32_t
draw(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 17;
	seed ^= seed << 5;
	return seed;
}

__attribute__((noinline)) static void
keep(size_t size)
{
	void **place = &kept[draw() % 4000];

	free(*place);
	*place = malloc(size);
}

__attribute__((noinline)) static void
grow(void)
{
	char *p = NULL;

	for (size_t size = draw() % 64 + 1; size < 20000; size += size / (draw() % 8 + 2) + 1)
		p = realloc(p, size);
	free(p);
}

int
main(int argc, char **argv)
{
	struct component_profiler_options options = COMPONENT_PROFILER_OPTIONS_INIT;
	char                              line[16], url[256];
	int                               round = 0;

	options.address = argc > 1 ? argv[1] : "";
	options.heap_rate_bytes = 1000;
	if (component_profiler_start_options(&options, NULL) < 0)
		return 1;
	component_profiler_url(url, sizeof(url));
	printf("%s\n", url);
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		round++;
		for (int i = 0; i < 300; i++) {
			keep(draw() % (16u << draw() % 10) + 1); /* any size */
			keep(100 + (size_t)round);               /* another one each time */
			keep(5000);                              /* always the same */
			if (i % 30 == 0)
				grow();
		}
		puts("done");
		fflush(stdout);
	}
	return 0;
}
