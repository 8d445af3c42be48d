/*
 * stop.c - POST stop?window=NAME: windows of that name end now, and are answered with what there is.
 *
 *     curl 'http://HOST/debug/pprof/profile?seconds=60&window=mine' -o cpu.pb.gz &
 *     curl -X POST 'http://HOST/debug/pprof/stop?window=mine'
 *
 * The names are their askers': two windows may have the same, and end together then.
 *
 *     curl -X POST 'http://HOST/debug/pprof/stop?window=*'
 *
 * All end, as the program is about to, and the answer says how many requests are not answered yet.  Who is going to end
 * the program asks until there is none.
 *
 * Tests: tests/serve/viewer.t.
 */
#include <config.h>

#include <stdio.h>
#include <string.h>

#include "job.h"
#include "query.h"
#include "reply.h"
#include "routes.h"
#include "serve.h"

void
stop_reply(struct serve *s, struct answer *a)
{
	char   name[JOB_WINDOW_BYTES + 1], text[64];
	size_t n, owed;

	if (!query_get(a->ask.query, "window", name, sizeof(name)) || !*name) {
		reply_error(a, 400, "no window is named; write stop?window=NAME, of a profile that was asked for with &window=NAME");
		return;
	}
	if (!strcmp(name, "*")) {
		n = job_end_all(s, false, SERVE_ENDED);
		owed = httpd_owed(s->httpd);
		reply_text(a, 200, ANSWER_TEXT, text, (size_t)snprintf(text, sizeof(text), "stopped=%zu\nopen=%zu\n", n,
			owed > n ? owed - 1 : n)); /* one is this */
		return;
	}
	n = job_end_window(s, name);
	if (!n) {
		reply_error(a, 404, "no window of that name is open: it may have ended");
		return;
	}
	reply_text(a, 200, ANSWER_TEXT, text, (size_t)snprintf(text, sizeof(text), "stopped=%zu\n", n));
}
