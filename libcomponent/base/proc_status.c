/*
 * proc_status.c - lines of /proc/PID/status.
 *
 * A piece ends anywhere, so the last bytes of one are kept for the next: as many as the longest
 * wanted line has.
 *
 * Tests: tests/base/test_proc_status.c, tests/cpu/test_limits.c, tests/serve/delta.t
 */
#include <config.h>

#include "proc_status.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "our_fd.h"

int
proc_status_open(void)
{
	return our_fd_open("/proc/thread-self/status", O_RDONLY, 0);
}

void
proc_status_read(int fd, struct proc_status_line *lines, unsigned n)
{
	char     buf[1024 + PROC_STATUS_BYTES + 1];
	size_t   kept = 0;
	off_t    at = 0;
	char    *line, *end;
	ssize_t  got;
	unsigned found = 0;

	while (fd >= 0 && found < n && (got = pread(fd, buf + kept, sizeof(buf) - kept - 1, at)) > 0) {
		at += got;
		got += (ssize_t)kept;
		buf[got] = '\0';
		for (unsigned i = 0; i < n; i++) {
			line = lines[i].found ? NULL : strstr(buf, lines[i].key);
			end = line ? strchr(line + 1, '\n') : NULL;
			if (!end)
				continue; /* not there, or not whole yet */
			line += strlen(lines[i].key);
			snprintf(lines[i].value, PROC_STATUS_BYTES, "%.*s", (int)(end - line), line);
			lines[i].found = true;
			found++;
		}
		kept = got > PROC_STATUS_BYTES ? PROC_STATUS_BYTES : (size_t)got;
		memmove(buf, buf + got - kept, kept);
	}
}

bool
proc_status_find(int fd, const char *key, char value[PROC_STATUS_BYTES])
{
	struct proc_status_line line = { .key = key };

	proc_status_read(fd, &line, 1);
	our_fd_close(fd);
	if (line.found)
		memcpy(value, line.value, PROC_STATUS_BYTES);
	return line.found;
}

char
proc_status_state(int fd)
{
	char value[PROC_STATUS_BYTES];

	return proc_status_find(fd, "\nState:", value) ? value[strspn(value, " \t")] : 0;
}
