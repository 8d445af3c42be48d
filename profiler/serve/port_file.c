/*
 * port_file.c - "HOST:PORT\n" in a file once we listen, for scripts that asked for
 * port 0.
 *
 * Written beside its place and renamed, so that a reader finds all of it or
 * nothing; removed at the end only while it still says what we wrote, since a
 * successor may have replaced it.
 *
 * Tests: tests/serve_life.t.
 */
#include <config.h>

#include "own_fd.h"
#include "serve.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MODE 0644 /* an address is no secret */

int
port_file_write(const char *path, const char *address, struct component_error *err)
{
	size_t  size = strlen(address) + 1;
	char   *temporary = NULL, *text = NULL;
	int     fd = -1, r = -ENOMEM;

	if (asprintf(&temporary, "%s.%ld", path, (long)getpid()) < 0)
		temporary = NULL;
	if (asprintf(&text, "%s\n", address) < 0)
		text = NULL;
	if (!temporary || !text)
		goto out;
	fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, MODE);
	if (fd < 0 || write(fd, text, size) != (ssize_t)size) {
		r = errno ? -errno : -EIO;
		goto out;
	}
	if (rename(temporary, path)) {
		r = -errno;
		goto out;
	}
	r = 0;
out:
	if (r) {
		component_error_set(err, "cannot write the port file '%s': %s", path, strerror(-r));
		if (fd >= 0)
			unlink(temporary);
	}
	if (fd >= 0)
		close(fd);
	free(text);
	free(temporary);
	return r;
}

void
port_file_remove(const char *path, const char *address)
{
	char    text[400] = "";
	int     fd = own_fd_open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	ssize_t n;

	if (fd < 0)
		return;
	n = read(fd, text, sizeof(text) - 1);
	own_fd_close(fd);
	if (n > 0 && text[n - 1] == '\n')
		text[n - 1] = '\0';
	if (n > 0 && !strcmp(text, address))
		unlink(path);
}
