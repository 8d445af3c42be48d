/*
 * sd.c - componentctl sd: what has a record, for Prometheus' file_sd_configs, which Parca and Alloy read, too.
 *
 *     [ {"targets": ["127.0.0.1:46429"], "labels": {"app_id": "redis", "service_name": "redis", "__meta_...": ...}} ]
 *
 * What a stranger would get wrong:
 * - A label makes a series of its own, so what is another in each process begins with __meta_, which a scraper
 *   drops unless it is told otherwise.
 * - A file that is watched is replaced only where it would be another: each replacement is a reload for its readers.
 * - They know no unix sockets.
 *
 * Tests: tests/componentctl/sd.t
 */
#include <config.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "command.h"
#include "records.h"
#include "save.h"
#include "text.h"

#define LOOK_MS 1000 /* a killed process says nothing: one look a second */

static const char *watched;

/* "127.0.0.1:46429" of "http://127.0.0.1:46429/debug/pprof/". */
static void
address_add(struct text *t, const struct record *r)
{
	const char *host = strstr(r->url, "://") + 3;
	char        address[RECORD_URL_MAX];

	snprintf(address, sizeof(address), "%.*s", (int)strcspn(host, "/"), host);
	text_add_json(t, address);
}

/* The program alone: its arguments may hold passwords, and scrapers show what they have found to everybody. */
static void
object_add(struct text *t, const struct record *r, bool is_first)
{
	char program[RECORDS_COMMAND_MAX];

	records_command(r, program);
	program[strcspn(program, " ")] = '\0';
	text_add(t, "%s\n  {\"targets\": [", is_first ? "" : ",");
	address_add(t, r);
	text_add(t, "], \"labels\": {\"app_id\": ");
	text_add_json(t, r->id);
	text_add(t, ", \"service_name\": ");
	text_add_json(t, r->id);
	text_add(t, ", \"__meta_component_pid\": \"%ld\", \"__meta_component_command\": ", (long)r->pid);
	text_add_json(t, program);
	text_add(t, "}}");
}

/* 0 or -ENOMEM; those that have no address are counted. */
static int
make(struct text *t, size_t *ret_left_out)
{
	struct records l;
	bool           is_first = true;
	int            r = records_read(&l);

	*ret_left_out = 0;
	text_add(t, "[");
	for (size_t i = 0; i < l.count && !r; i++) {
		if (!records_port(&l.items[i])) {
			*ret_left_out += records_is_on(&l.items[i]);
			continue;
		}
		object_add(t, &l.items[i], is_first);
		is_first = false;
	}
	text_add(t, "%s]\n", is_first ? "" : "\n");
	records_release(&l);
	return t->failed ? -ENOMEM : r;
}

static int
print(void)
{
	struct text t = TEXT_INIT;
	size_t      left_out;
	int         r = make(&t, &left_out);

	if (!r)
		fputs(t.data, stdout);
	if (left_out)
		fprintf(stderr, "%zu left out: scrapers know no unix socket, and 'componentctl list -o wide' shows which\n", left_out);
	text_release(&t);
	return r;
}

/* Until TERM or INT. */
static int
watch(const char *path, struct component_error *err)
{
	struct text   before = TEXT_INIT;
	struct pollfd signals = { .events = POLLIN };
	sigset_t      ends;
	size_t        left_out;
	int           r = 0;

	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	signals.fd = signalfd(-1, &ends, SFD_CLOEXEC);
	if (signals.fd < 0)
		return -errno;
	do {
		struct text now = TEXT_INIT;

		r = make(&now, &left_out);
		if (!r && (!before.data || strcmp(before.data, now.data)))
			r = save_as(path, "--watch=FILE", now.data, now.size, err);
		text_release(&before);
		before = now;
	} while (!r && poll(&signals, 1, LOOK_MS) <= 0);
	text_release(&before);
	close(signals.fd);
	return r;
}

static int
sd(char **operands, struct component_error *err)
{
	(void)operands;
	return watched && *watched ? watch(watched, err) : print();
}

static const struct component_flag flags[] = {
	COMPONENT_FLAG_STRING("watch", &watched, "Write it to this file, and again whenever it has changed, until TERM or INT.",
		.section = "Service discovery", .argument = "FILE"),
	COMPONENT_FLAG_END
};

const struct command sd_command = {
	.name = "sd",
	.summary = "Writes what list shows for file_sd_configs, which Prometheus, Parca and Alloy read.",
	.flags = flags,
	.run = sd,
};
