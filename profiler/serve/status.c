/*
 * status.c - GET status: what the process is, what it takes just now, and what can be asked of it, as JSON.
 *
 * For the page that a browser shows (viewer/), which asks each second while somebody looks at it.  Nothing is
 * collected for it: all of it is read from /proc, from clocks and from what the collectors have counted anyway.
 *
 * What a stranger would get wrong:
 * - The heap's bytes are those of the heap profile, an estimate from its samples, and null where it is off:
 *   mallinfo2(3) takes locks that a thread of the program may hold for long.
 * - The program's build id comes from its own headers in memory, for the loader's list is under a lock.
 * - Whole numbers that a double cannot hold are strings, as in the JSON form of profiles.
 *
 * Tests: tests/serve/viewer.t.
 */
#include <config.h>

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "build_id.h"
#include "clock.h"
#include "collector.h"
#include "our_fd.h"
#include "proc_status.h"
#include "process_start.h"
#include "rates.h"
#include "reply.h"
#include "routes.h"
#include "serve.h"
#include "text.h"

#define FORM_VERSION     1
#define HEAP_RATE_USUAL  (512 << 10) /* bytes */
#define BLOCK_RATE_USUAL 10000       /* ns */

/* ---- the process ---- */

/* "" where it has none. */
static void
build_id(char hex[BUILD_ID_MAX])
{
	const ElfW(Phdr) *headers = (const void *)getauxval(AT_PHDR);
	size_t            count = headers ? getauxval(AT_PHNUM) : 0;
	uintptr_t         base = 0;

	*hex = '\0';
	for (size_t i = 0; i < count; i++)
		if (headers[i].p_type == PT_PHDR)
			base = (uintptr_t)headers - headers[i].p_vaddr;
	for (size_t i = 0; i < count && !*hex; i++)
		if (headers[i].p_type == PT_NOTE)
			build_id_find((const void *)(base + headers[i].p_vaddr), headers[i].p_memsz,
				headers[i].p_align == 8 ? 8 : 4, hex);
}

static void
add_text(struct text *out, const char *name, const char *value)
{
	text_add(out, ", \"%s\": ", name);
	text_add_json(out, value);
}

/* Its words as an array. */
static void
add_command_line(struct text *out, const char *const *redact)
{
	size_t size = 0;
	char  *words = cmdline_text(redact, &size);

	text_add(out, ", \"cmdline\": [");
	for (size_t at = 0; words && at < size; at += strlen(words + at) + 1) {
		text_add(out, at ? ", " : "");
		text_add_json(out, words + at);
	}
	text_add(out, "]");
	free(words);
}

static void
add_who(struct text *out, const struct serve *s)
{
	struct utsname system;
	char           id[BUILD_ID_MAX], user[24];

	build_id(id);
	snprintf(user, sizeof(user), getuid() ? "%u" : "root", (unsigned)getuid());
	text_add(out, "{\"version\": %d, \"program\": ", FORM_VERSION);
	text_add_json(out, program_invocation_short_name);
	add_text(out, "library_version", PACKAGE_VERSION);
	text_add(out, ", \"pid\": %d", (int)getpid());
	add_text(out, "host", uname(&system) ? "" : system.nodename);
	add_text(out, "user", user);
	add_text(out, "build_id", id);
	add_command_line(out, s->options.redact);
}

/* What it takes: null where /proc does not say. */
static void
add_now(struct text *out)
{
	struct proc_status_line lines[] = { { .key = "\nThreads:" }, { .key = "\nVmRSS:" } };
	const struct collector *heap = COLLECTOR_WITH(in_use);
	int64_t                 now = clock_ns(CLOCK_REALTIME);
	uint64_t                bytes;
	int                     fd = proc_status_open();

	proc_status_read(fd, lines, 2);
	if (fd >= 0)
		our_fd_close(fd);
	text_add(out, ", \"start_ns\": \"%" PRId64 "\", \"now_ns\": \"%" PRId64 "\", \"cpu_ns\": \"%" PRId64 "\"", process_started_ns(), now,
		clock_ns(CLOCK_PROCESS_CPUTIME_ID));
	text_add(out, ", \"threads\": %s", lines[0].found ? "" : "null");
	if (lines[0].found)
		text_add(out, "%ld", atol(lines[0].value));
	text_add(out, ", \"rss_bytes\": %s", lines[1].found ? "" : "null");
	if (lines[1].found)
		text_add(out, "%llu", strtoull(lines[1].value, NULL, 10) << 10);
	if (heap && heap->rate->get() && !heap->in_use(&bytes))
		text_add(out, ", \"heap_bytes\": %" PRIu64, bytes);
	else
		text_add(out, ", \"heap_bytes\": null");
}

/* ---- what it can be asked for ---- */

static const char *
product_name(const struct collector *c)
{
	return c->products & PRODUCT_TRACE ? "trace" : c->products & PRODUCT_PROFILE ? "profile" :
	       c->products & PRODUCT_DUMP ? "dump" : c->products & PRODUCT_RESIDENCE ? "residence" : "page";
}

/* on: what switches it on, where it is off. */
static void
add_rate(struct text *out, const struct serve *s, const struct collector_rate *rate)
{
	static const char *const units[] = { [COLLECTOR_NUMBER] = "count", [COLLECTOR_BYTES] = "bytes",
		[COLLECTOR_NS] = "nanoseconds" };
	int64_t usual = rates_of_options(&s->options, rate);
	int64_t on = usual ? usual : rate->unit == COLLECTOR_BYTES ? HEAP_RATE_USUAL :
		     rate->unit == COLLECTOR_NS ? BLOCK_RATE_USUAL : 1;

	text_add(out, "{\"name\": \"%s\", \"unit\": \"%s\", \"value\": %" PRId64 ", \"usual\": %" PRId64 ", \"on\": %" PRId64 "}",
		rate->option, units[rate->unit], rate->get(), usual, on);
}

static void
add_kind(struct text *out, const struct serve *s, const struct collector *c)
{
	unsigned n = collector_type_count(c);

	text_add(out, "{\"name\": \"%s\", \"text\": ", c->name);
	text_add_json(out, c->description);
	add_text(out, "why", c->status ? c->status() : "");
	add_text(out, "missing", c->missing ? c->missing() : "");
	text_add(out, ", \"product\": \"%s\", \"windowed\": %s, \"delta\": %s, \"count\": %zu, \"types\": [", product_name(c),
		collector_is_windowed(c) ? "true" : "false", c->snapshot && !c->no_delta ? "true" : "false",
		c->count ? c->count(c) : 0);
	for (unsigned i = 0; i < n; i++)
		text_add(out, "%s[\"%s\", \"%s\"]", i ? ", " : "", c->types[i].type, c->types[i].unit);
	text_add(out, "], \"rate\": ");
	if (c->rate)
		add_rate(out, s, c->rate);
	else
		text_add(out, "null");
	text_add(out, "}");
}

void
status_reply(struct serve *s, struct answer *a)
{
	const struct collector *all[COLLECTORS_ALL_MAX];
	size_t                  n = collector_list(all);
	struct text             out = TEXT_INIT;

	add_who(&out, s);
	add_now(&out);
	text_add(&out, ", \"max_seconds\": %" PRId64 ", \"kinds\": [", __atomic_load_n(&s->options.max_seconds, __ATOMIC_RELAXED));
	for (size_t i = 0; i < n; i++) {
		text_add(&out, i ? ",\n " : "\n ");
		add_kind(&out, s, all[i]);
	}
	text_add(&out, "]}\n");
	if (out.failed)
		reply_error(a, 500, "out of memory");
	else
		reply_text(a, 200, SERVE_JSON, out.data, out.size);
	text_release(&out);
}
