/*
 * port_file.c - "HOST:PORT\n" in a file once we listen, for scripts that asked for
 * port 0.
 *
 * Written beside its place and renamed, so that a reader finds all of it or
 * nothing; removed at the end only while it still says what we wrote, since a
 * successor may have replaced it.
 *
 * Tests: tests/serve/start_stop.t.
 */
#include <config.h>

#include "port_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "replacement.h"
#include "our_fd.h"

#define MODE 0644 /* an address is no secret */

int
port_file_write(const char *path, const char *address, struct component_error *err)
{
	char   *temporary = NULL, text[400];
	int     size = snprintf(text, sizeof(text), "%s\n", address);
	int     fd = replacement_create(path, MODE, &temporary), r = fd < 0 ? fd : 0;
	ssize_t wrote;

	if (fd >= 0) {
		wrote = write(fd, text, (size_t)size);
		if (wrote != size)
			r = wrote < 0 ? -errno : -ENOSPC;
		else if (rename(temporary, path))
			r = -errno;
		if (r)
			unlink(temporary);
		our_fd_close(fd);
	}
	if (r)
		component_error_set(err, "cannot write the port file '%s': %s", path, strerror(-r));
	free(temporary);
	return r;
}

void
port_file_remove(const char *path, const char *address)
{
	char    text[400] = "";
	int     fd = our_fd_open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	ssize_t n;

	if (fd < 0)
		return;
	n = read(fd, text, sizeof(text) - 1);
	our_fd_close(fd);
	if (n > 0 && text[n - 1] == '\n')
		text[n - 1] = '\0';
	if (n > 0 && !strcmp(text, address))
		unlink(path);
}
