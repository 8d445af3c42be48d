/*
 * page.c - a profile as a page for browsers, in one file: what a daemon answers with format=html.
 *
 *     viewer.html.gz ──▶ html_page_read() ──▶ html_open() ... html_write(pprof) ... html_close() ──▶ save_as()
 *
 * Tests: tests/componentctl/profile.t
 */
#include <config.h>

#include "page.h"

#include <errno.h>
#include <string.h>

#include "html.h"
#include "save.h"
#include "text.h"
#include "write.h"

int
page_save(const struct pprof *p, const char *name, const char *viewer, const char *path, struct component_error *err)
{
	struct text page = TEXT_INIT, out = TEXT_INIT;
	struct html h;
	int         r;

	viewer = viewer && *viewer ? viewer : VIEWER_FILE;
	r = html_page_read(viewer, &page);
	if (!r)
		r = html_open(&h, text_string(&page), page.size, name, text_collect, &out);
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
		r = save_as(path, "--html=FILE", out.data, out.size, err);
out:
	text_release(&out);
	text_release(&page);
	return r;
}
