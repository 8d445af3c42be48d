/*
 * threads.c - goroutine and threads: a dump of now, in one of its forms.
 *
 *     binary, debug=1   equal stacks as one sample        ?own=0 leaves out
 *     debug=2           each thread, as Go's panics are   the library's threads
 *
 * "threads" is the same under its honest name: a route, not a kind.
 *
 * What a stranger would get wrong: text of Go has no room for a remark, so how many
 * threads were read quietly and how many had to be signalled is a header of the
 * answer, X-Component-Threads, beside the comment in the binary form.
 *
 * Tests: tests/serve_threads.t.
 */
#include <config.h>

#include "serve.h"

#include <stdio.h>
#include <string.h>

#include "encode.h"
#include "threads.h"

static const struct kind alias = { "threads", "", threads_snapshot, threads_count, false };

const struct kind *
threads_kind(const char *name)
{
	return strcmp(name, alias.name) == 0 ? &alias : NULL;
}

bool
threads_is_kind(const struct kind *kind)
{
	return kind->snapshot == threads_snapshot;
}

static int
panic_write(struct job *j, const struct dump *d)
{
	struct symbols *symbols = NULL;
	int             r = symbols_open(job_serve(j)->options.symbol_memory_bytes, &symbols);

	if (r)
		return r;
	r = encode_panic(d, symbols, job_write, j);
	symbols_close(symbols);
	return r;
}

int
threads_run(struct job *j)
{
	const struct job_spec *spec = job_spec(j);
	struct dump            d;
	struct profile         p;
	char                   note[JOB_NOTE_BYTES];
	int                    n, r = threads_dump_of(&d, THREADS_KEEP | THREADS_REMOTE | (spec->without_own ? 0 : THREADS_OWN) |
							(spec->format == JOB_PANIC ? THREADS_NAMES : 0));

	if (r) {
		snprintf(note, sizeof(note), "threads cannot be listed: %s", strerror(-r));
		job_fail(j, 500, note);
		return r;
	}
	n = snprintf(note, sizeof(note), "%zu; quiet=%u; signalled=%u; silent=%u", d.count, d.quiet, d.signalled, d.silent);
	if (d.filtered)
		snprintf(note + n, sizeof(note) - (size_t)n, "; filtered=%u", d.filtered);
	job_note(j, note);
	if (spec->format == JOB_PANIC) {
		threads_dump_tag(&d);
		r = panic_write(j, &d);
	} else {
		r = threads_profile(&d, "goroutine", &p);
		if (!r) {
			r = job_profile_write(j, &p);
			profile_release(&p);
		}
	}
	threads_dump_release(&d);
	return r;
}
