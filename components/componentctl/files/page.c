/*
 * page.c - a profile as a page for browsers, in one file: what a daemon answers with format=html.
 *
 *     viewer.html.gz ──▶ gzip_inflate() ──▶ html_open() ... html_write(pprof) ... html_close() ──▶ save_as()
 *
 * Tests: tests/componentctl/profile.t
 */
#include <config.h>

#include "page.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gzip.h"
#include "html.h"
#include "save.h"
#include "text.h"
#include "write.h"

#define VIEWER_MAX ((off_t)4 << 20) /* bytes; ours has less than a tenth of a MiB */

static int
text_write(void *text, const void *data, size_t size)
{
	text_add_bytes(text, data, size);
	return ((struct text *)text)->failed ? -ENOMEM : 0;
}

static int
read_all(const char *path, struct text *ret)
{
	int         fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), r = fd < 0 ? -errno : 0;
	char        piece[4096];
	struct stat st;
	ssize_t     n = 0;

	if (!r && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > VIEWER_MAX))
		r = -EINVAL;
	while (!r && (n = read(fd, piece, sizeof(piece))) != 0)
		r = n > 0 ? text_write(ret, piece, (size_t)n) : -errno;
	if (fd >= 0)
		close(fd);
	return r;
}

static int
read_viewer(const char *path, struct text *ret)
{
	struct text packed = TEXT_INIT;
	int         r = read_all(path, &packed);

	if (!r)
		r = gzip_inflate(text_string(&packed), packed.size, text_write, ret);
	text_release(&packed);
	return r;
}

int
page_save(const struct pprof *p, const char *name, const char *viewer, const char *path, struct component_error *err)
{
	struct text page = TEXT_INIT, out = TEXT_INIT;
	struct html h;
	int         r;

	viewer = viewer && *viewer ? viewer : VIEWER_FILE;
	r = read_viewer(viewer, &page);
	if (!r)
		r = html_open(&h, text_string(&page), page.size, name, text_write, &out);
	if (r < 0) {
		component_error_set(err, "the viewer cannot be read: %s: %s; install it (Debian: libcomponent-common), or name it by "
			"--viewer-file", viewer, strerror(-r));
		r = r == -EINVAL ? -EBADMSG : r; /* no fault of how the command was written */
		goto out;
	}
	r = write_profile(p, html_write, &h);
	if (r >= 0)
		r = html_close(&h);
	if (r >= 0)
		r = save_as(path, out.data, out.size, err);
out:
	text_release(&out);
	text_release(&page);
	return r;
}
