/*
 * scrape.c - the CPU time of answering a request for the heap profile.
 *
 *     scrape ours
 *
 * The program holds blocks of 16,384 call sites' stacks, all sampled; its profile is
 * asked for over HTTP once, so that names are known, and then again and again.  The
 * client's own time is not counted.
 */
#include <component/profiler.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench.h"

#define LEVELS   14 /* 2 ways each */
#define REQUESTS 5

typedef void walk_fn(unsigned bits, int level);

static void *volatile block;
static walk_fn *const ways[2]; /* given below */

#define WAY(name, size)                                               \
	__attribute__((noinline)) static void name(unsigned bits, int level) \
	{                                                             \
		if (level == LEVELS)                                  \
			for (int i = 0; i < 4; i++)                   \
				block = malloc(size);                 \
		else                                                  \
			ways[bits >> level & 1](bits, level + 1);     \
		__asm__ volatile("");                                 \
	}
WAY(left, 48)
WAY(right, 80)
static walk_fn *const ways[2] = { left, right };

/* Bytes of the answer's body and head. */
static size_t
get(unsigned port, const char *path)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	char               text[65536];
	size_t             sum = 0;
	ssize_t            n;
	int                fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nConnection: close\r\n\r\n", path, port);
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) != 0 || write(fd, text, strlen(text)) < 0)
		bench_die("no connection");
	while ((n = read(fd, text, sizeof(text))) > 0) {
		if (sum == 0 && strncmp(text, "HTTP/1.1 200", 12) != 0)
			bench_die("the answer is not 200");
		sum += (size_t)n;
	}
	close(fd);
	return sum;
}

int
main(void)
{
	struct component_profiler_options options = COMPONENT_PROFILER_OPTIONS_INIT;
	struct component_error            err;
	double                            taken[REQUESTS];
	char                              url[600];
	int64_t                           all, own;
	unsigned                          port;
	size_t                            size = 0;

	options.address = "127.0.0.1:0";
	options.heap_rate_bytes = 1; /* every block */
	if (component_profiler_start_options(&options, &err) != 0)
		bench_die(err.text);
	component_profiler_url(url, sizeof(url));
	if (sscanf(url, "http://127.0.0.1:%u/", &port) != 1)
		bench_die(url);
	for (unsigned i = 0; i < 1u << LEVELS; i++)
		ways[i & 1](i, 0);
	get(port, "/debug/pprof/heap");
	for (int i = 0; i < REQUESTS; i++) {
		all = bench_ns(CLOCK_PROCESS_CPUTIME_ID);
		own = bench_ns(CLOCK_THREAD_CPUTIME_ID);
		size = get(port, "/debug/pprof/heap");
		own = bench_ns(CLOCK_THREAD_CPUTIME_ID) - own;
		taken[i] = (double)(bench_ns(CLOCK_PROCESS_CPUTIME_ID) - all - own) / 1e6;
	}
	if (size < 30000)
		bench_die("those are not 16,000 stacks");
	bench_print("scrape_16k_ms", bench_median(taken, REQUESTS), "ms");
	printf("# an answer has %zu KiB\n", size / 1024);
	return 0;
}
