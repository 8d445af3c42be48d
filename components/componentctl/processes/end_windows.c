/*
 * end_windows.c - has a program answer its open windows before a signal ends it.
 *
 *     POST stop?window=* ──▶ the windows end ──▶ "open=0": what was measured is with the kernel ──▶ the signal
 *
 * A program that handles the signal, ignores it or blocks it goes on, and so do its windows.  One that then calls exit()
 * ends them itself (at_exit.c).
 *
 * What a stranger would get wrong: a program that hangs or is stopped does not answer.  So there is a limit, and the signal
 * comes all the same.
 *
 * Tests: tests/componentctl/ends_meanwhile.t.
 */
#include <config.h>

#include "end_windows.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "proc_status.h"

#define LIMIT_NS CLOCK_NS_PER_S
#define PAUSE_NS (5 * CLOCK_NS_PER_MS)
#define NONE     (-1) /* it does not answer, or has no server */

static const char request[] = "POST /debug/pprof/stop?window=* HTTP/1.0\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n";

/* By its default action, at this moment. */
static bool
does_end(pid_t pid, int signal)
{
	struct proc_status_line sets[] = { { .key = "\nSigBlk:" }, { .key = "\nSigIgn:" }, { .key = "\nSigCgt:" } };
	unsigned long long      set;
	char                    path[32];
	int                     fd;

	switch (signal) {
	case SIGKILL:
		return true;
	case SIGCHLD:
	case SIGCONT:
	case SIGSTOP:
	case SIGTSTP:
	case SIGTTIN:
	case SIGTTOU:
	case SIGURG:
	case SIGWINCH:
		return false;
	default:
		break;
	}
	snprintf(path, sizeof(path), "/proc/%ld/status", (long)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	proc_status_read(fd, sets, 3);
	if (fd >= 0)
		close(fd);
	for (int i = 0; i < 3; i++)
		if (sscanf(sets[i].value, "%llx", &set) != 1 || set >> (signal - 1) & 1)
			return false;
	return true;
}

static int
connected(const char *url)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	const char        *path = strncmp(url, "unix:", strlen("unix:")) ? NULL : url + strlen("unix:");
	unsigned           port = 0;
	int                fd;

	if (path ? strlen(path) >= sizeof(un.sun_path) : sscanf(url, "http://127.0.0.1:%u", &port) != 1)
		return NONE;
	fd = socket(path ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (path)
		strcpy(un.sun_path, path);
	in.sin_port = htons((in_port_t)port);
	if (fd >= 0)
		(void)!connect(fd, path ? (struct sockaddr *)&un : (struct sockaddr *)&in, path ? sizeof(un) : sizeof(in));
	return fd; /* what went wrong the next call tells */
}

static bool
is_ready(int fd, short events, int64_t until)
{
	struct pollfd p = { fd, events, 0 };
	int64_t       left = until - clock_ns(CLOCK_MONOTONIC);

	return left > 0 && poll(&p, 1, (int)(left / CLOCK_NS_PER_MS) + 1) > 0;
}

/* How many requests are not answered; NONE. */
static int
open_now(const char *url, int64_t until)
{
	char    text[1024];
	size_t  size = 0;
	ssize_t n = 0;
	int     fd = connected(url), count = NONE;
	char   *found;

	if (fd < 0)
		return NONE;
	if (is_ready(fd, POLLOUT, until))
		n = send(fd, request, strlen(request), MSG_NOSIGNAL);
	while (n > 0 && size + 1 < sizeof(text) && is_ready(fd, POLLIN, until)) {
		n = read(fd, text + size, sizeof(text) - 1 - size);
		size += n > 0 ? (size_t)n : 0;
	}
	close(fd);
	text[size] = '\0';
	found = strstr(text, "\nopen=");
	if (found && sscanf(found, "\nopen=%d", &count) != 1)
		count = NONE;
	return count;
}

void
end_windows(pid_t pid, const char *url, int signal)
{
	const struct timespec pause = clock_timespec(PAUSE_NS);
	int64_t               until = clock_ns(CLOCK_MONOTONIC) + LIMIT_NS;

	if (!does_end(pid, signal))
		return;
	while (open_now(url, until) > 0 && clock_ns(CLOCK_MONOTONIC) < until)
		nanosleep(&pause, NULL);
}
