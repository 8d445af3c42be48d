/* one-call.c - an echo daemon as they have always been; one line makes it answer "go tool pprof". */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <component/profiler.h>

int
main(int argc, char **argv) /* one-call PORT [PROFILING-ADDRESS] */
{
	static char data[65536];
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	at.sin_port = htons((uint16_t)(argc > 1 ? atoi(argv[1]) : 7));
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || daemon(0, 0) < 0) {
		perror(argv[0]);
		return 1;
	}
	component_profiler_start(argc > 2 ? argv[2] : NULL); /* this one */
	for (;;) {
		socklen_t size = sizeof(at);
		ssize_t n = recvfrom(fd, data, sizeof(data), 0, (struct sockaddr *)&at, &size);

		if (n >= 0)
			sendto(fd, data, (size_t)n, 0, (struct sockaddr *)&at, size);
	}
}
