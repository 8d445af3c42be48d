/*
 * deep_calls.c - burns CPU time four calls deep, without frame pointers.
 *
 * Its arguments: the address to serve on, and "libunwind" to walk by that.  It prints its
 * URL, and works until standard input ends.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include <component/profiler.h>

#define BURN 20000000U

static volatile unsigned sink;

__attribute__((noinline)) static void
frames_leaf(unsigned n)
{
	char room[64];

	for (unsigned i = 0; i < n; i++) {
		room[i % sizeof(room)] = (char)(i + sink);
		__asm__ volatile("" : : "r"(room) : "memory");
		sink += (unsigned char)room[(i * 7) % sizeof(room)];
	}
}

__attribute__((noinline)) static void
frames_middle(unsigned n)
{
	frames_leaf(n);
	sink++;
}

/* A cold part, which the linker puts in front of it. */
__attribute__((noinline)) static void
frames_outer(unsigned n)
{
	if (__builtin_expect(n == 7, 0))
		perror("seven");
	frames_middle(n);
	sink++;
}

int
main(int argc, char **argv)
{
	struct component_profiler_options options = COMPONENT_PROFILER_OPTIONS_INIT;
	char                              url[256] = "";
	struct pollfd                     in = { 0, POLLIN, 0 };

	options.address = argv[1];
	if (argc > 2 && !strcmp(argv[2], "libunwind"))
		options.unwinder = COMPONENT_UNWINDER_LIBUNWIND;
	if (argc < 2 || component_profiler_start_options(&options, NULL) < 0)
		return 1;
	component_profiler_url(url, sizeof(url));
	puts(url);
	fflush(stdout);
	while (poll(&in, 1, 0) <= 0) /* a dump may end it with EINTR */
		frames_outer(BURN);
	component_profiler_stop();
	return 0;
}
