/*
 * stop.c - POST stop?window=NAME: windows of that name end now, and are answered with what there is.
 *
 *     curl 'http://HOST/debug/pprof/profile?seconds=60&window=mine' -o cpu.pb.gz &
 *     curl -X POST 'http://HOST/debug/pprof/stop?window=mine'
 *
 * The names are their askers': two windows may have the same, and end together then.
 *
 * Tests: tests/serve/viewer.t.
 */
#include <config.h>

#include <stdio.h>

#include "job.h"
#include "query.h"
#include "reply.h"
#include "routes.h"
#include "serve.h"

void
stop_reply(struct serve *s, struct answer *a)
{
	char   name[JOB_WINDOW_BYTES + 1], text[32];
	size_t n;

	if (!query_get(a->ask.query, "window", name, sizeof(name)) || !*name) {
		reply_error(a, 400, "no window is named; write stop?window=NAME, of a profile that was asked for with &window=NAME");
		return;
	}
	n = job_end_window(s, name);
	if (!n) {
		reply_error(a, 404, "no window of that name is open: it may have ended");
		return;
	}
	reply_text(a, 200, ANSWER_TEXT, text, (size_t)snprintf(text, sizeof(text), "stopped=%zu\n", n));
}
