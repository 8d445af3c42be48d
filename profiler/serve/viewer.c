/*
 * viewer.c - the page for browsers at /debug/pprof/: a file that is installed beside the libraries.
 *
 *     Accept: text/html, and no Go client, no plain=1, no format= ──▶ viewer.html.gz as it lies there
 *     everything else, and where that file is missing               ──▶ index.c, whose notes say why
 *
 * The file is read for each request, on a job's thread: nothing of it stays in memory, and a package may
 * replace it at any moment.  Its policy (Content-Security-Policy) is in the file itself, with the digests
 * of its own script and style; what only a header can say is said here.
 *
 * What a stranger would get wrong:
 * - A wildcard is not text/html: curl and many a program send one.
 * - A browser takes gzip; who does not gets the same inflated.
 *
 * Tests: tests/serve/viewer.t.
 */
#include <config.h>

#include "viewer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "accept.h"
#include "gzip.h"
#include "html.h"
#include "job.h"
#include "our_fd.h"
#include "query.h"
#include "reply.h"
#include "routes.h"
#include "serve.h"
#include "text.h"

#define HEADERS \
	{ "Content-Type", SERVE_HTML }, { "X-Content-Type-Options", "nosniff" }, { "Cache-Control", "no-store" }, \
		{ "Content-Security-Policy", "frame-ancestors 'none'" }, { "Vary", "Accept, Accept-Encoding, User-Agent" }

static const struct answer_header packed[] = { HEADERS, { "Content-Encoding", "gzip" }, { NULL, NULL } };
static const struct answer_header inflated[] = { HEADERS, { NULL, NULL } };

bool
viewer_wanted(const struct ask *ask)
{
	char        value[8];
	const char *agent = ask->user_agent ? ask->user_agent : "";

	return accept_quality(ask->accept, "text/html") && strncmp(agent, "Go-http-client", 14) && strncmp(agent, "Go ", 3) &&
	       !query_get(ask->query, "format", value, sizeof(value)) &&
	       !(query_get(ask->query, "plain", value, sizeof(value)) && strcmp(value, "0"));
}

const char *
viewer_file(const struct serve *s)
{
	const char *given = s && s->options.viewer_file ? s->options.viewer_file : "";

	return *given ? given : VIEWER_FILE;
}

void
viewer_why(const char *path, int error, char *buf, size_t size)
{
	snprintf(buf, size, "there is no page for browsers: %s: %s; install it (Debian: libcomponent-common), or name it by "
		"--profiling-viewer-file", path, strerror(-error));
}

void
viewer_note(const struct serve *s, char *buf, size_t size)
{
	const char *path = viewer_file(s);
	int         fd = our_fd_open(path, O_RDONLY | O_NONBLOCK, 0);

	*buf = '\0';
	if (fd >= 0)
		our_fd_close(fd);
	else
		viewer_why(path, fd, buf, size);
}

static int
run(struct job *j)
{
	struct text text = TEXT_INIT;
	int         r = html_file_read(j->spec.input, &text);

	if (r) {
		j->spec.headers = index_headers;
		text_release(&text);
		text = (struct text)TEXT_INIT;
		index_write(j->serve, &text);
		r = text.failed ? -ENOMEM : job_write(j, text.data, text.size);
	} else if (j->spec.headers == packed) {
		r = job_write(j, text.data, text.size);
	} else {
		r = gzip_inflate(text.data, text.size, job_write, j);
	}
	text_release(&text);
	return r;
}

void
viewer_reply(struct serve *s, struct answer *a)
{
	const char     *path = viewer_file(s);
	struct job_spec spec = { .run = run, .input = path, .input_size = strlen(path),
		.headers = accept_quality(a->ask.accept_encoding, "gzip") ? packed : inflated };

	job_start(s, a, &spec);
}
