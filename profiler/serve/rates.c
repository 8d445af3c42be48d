/*
 * rates.c - /debug/pprof/rates: what is sampled how often, and changing it.
 *
 *     curl http://HOST/debug/pprof/rates
 *     heap-profile-rate=524288
 *     mutex-profile-fraction=0
 *     block-profile-rate=0
 *     curl -d mutex-profile-fraction=1 -d block-profile-rate=10us http://HOST/debug/pprof/rates
 *
 * A POST names one or more of them, in its body or its query, and is answered like a
 * GET; its body may be what a GET said.  All values are read before the first is set.
 *
 * What a stranger would get wrong: component_profiler_set_*() would wait for the lock
 * that component_profiler_stop() holds while it waits for this very thread.  So the
 * collectors are told directly; the server is stopped before they are switched off.
 *
 * Tests: tests/serve/rates.t.
 */
#include <config.h>

#include "rates.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "query.h"
#include "reply.h"
#include "separator.h"
#include "serve.h"

#define BODY_MAX 1024 /* bytes */
#define TEXT_MAX (COLLECTORS_MAX * 64)

/* What a POST asks for, by place in the table of collectors. */
struct rates {
	int64_t value[COLLECTORS_MAX];
	bool    given[COLLECTORS_MAX];
};

/* What may stand behind the number: names and factors in pairs, and the same to read. */
static const struct {
	const char *units, *text;
} units_of[] = {
	[COLLECTOR_NUMBER] = { "", "" },
	[COLLECTOR_BYTES] = { "B 1 KiB 1024 MiB 1048576", ", in bytes, KiB or MiB" },
	[COLLECTOR_NS] = { "ns 1 us 1000 ms 1000000 s 1000000000", ", in ns, us, ms or s" },
};

/* "10", "10us": a number, and perhaps one of the units. */
static int
value_read(const char *text, const char *units, int64_t *ret)
{
	unsigned long long value;
	char               name[8], *end;
	int64_t            factor;
	int                used;

	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	errno = 0;
	value = strtoull(text, &end, 10);
	text = end;
	factor = *text ? 0 : 1;
	for (; *text && sscanf(units, "%7s %lld%n", name, (long long *)&factor, &used) == 2; units += used, factor = 0)
		if (!strcmp(name, text))
			break;
	if (factor == 0)
		return -EINVAL;
	if (errno == ERANGE || __builtin_mul_overflow(value, (uint64_t)factor, &value) || value > INT64_MAX)
		return -ERANGE;
	*ret = (int64_t)value;
	return 0;
}

/* "write a=, b= or c=" */
static void
advice_make(char *buf, size_t size)
{
	size_t n = (size_t)snprintf(buf, size, "write "), count = 0, done = 0;

	for (size_t i = 0; i < collector_count; i++)
		count += collectors[i]->rate != NULL;
	for (size_t i = 0; i < collector_count && n < size; i++)
		if (collectors[i]->rate)
			n += (size_t)snprintf(buf + n, size - n, "%s%s=", separator(done++, count, " or "),
				collectors[i]->rate->option);
}

/* False: answered with what is wrong. */
static bool
rates_read(struct answer *a, struct rates *rates)
{
	char        body[BODY_MAX + 1], value[64], text[TEXT_MAX + 64];
	size_t      size = a->ask.body_size;
	bool        any = false;
	int         n;

	if (size > BODY_MAX) {
		reply_error(a, 413, "the body is longer than any rates");
		return false;
	}
	if (size > 0)
		memcpy(body, a->ask.body, size);
	body[size] = '\0';
	for (size_t i = 0; i < size; i++) /* the lines of a GET are as good */
		if (body[i] == '\n' || body[i] == '\r')
			body[i] = '&';
	for (size_t i = 0; i < collector_count; i++) {
		const struct collector_rate *rate = collectors[i]->rate;

		if (!rate || (!query_get(body, rate->option, value, sizeof(value)) &&
				 !query_get(a->ask.query, rate->option, value, sizeof(value))))
			continue;
		any = rates->given[i] = true;
		if (value_read(value, units_of[rate->unit].units, &rates->value[i]) == 0)
			continue;
		snprintf(text, sizeof(text), "\"%s\" is not a rate; write a number from 0 (off) up%s", rate->option,
			units_of[rate->unit].text);
		reply_error(a, 400, text);
		return false;
	}
	if (!any) {
		n = snprintf(text, sizeof(text), "no rate is named; ");
		advice_make(text + n, sizeof(text) - (size_t)n);
		reply_error(a, 400, text);
	}
	return any;
}

static void
rates_log(struct serve *s, struct answer *a)
{
	char                       value[COLLECTORS_MAX][24];
	struct component_log_field fields[COLLECTORS_MAX + 1] = { { "peer", a->ask.peer } };
	size_t                     n = 1;

	for (size_t i = 0; i < collector_count; i++) {
		if (!collectors[i]->rate)
			continue;
		snprintf(value[i], sizeof(value[i]), "%lld", (long long)collectors[i]->rate->get());
		fields[n++] = (struct component_log_field){ collectors[i]->name, value[i] };
	}
	serve_log(s, COMPONENT_LOG_INFO, "sampling rates changed", fields, n);
}

int
rates_set(struct serve *s, const struct collector *c, int64_t rate)
{
	int r = c->rate->set(rate);

	for (size_t i = 0; i < collector_count && !r && s; i++)
		if (collectors[i] == c)
			__atomic_store_n(&s->rates[i], c->rate->get(), __ATOMIC_RELAXED);
	return r;
}

int64_t
rates_of_options(const struct component_profiler_options *o, const struct collector_rate *rate)
{
	int64_t ret = rate->usual;

	if (rate->option_at)
		memcpy(&ret, (const char *)o + rate->option_at, sizeof(ret));
	return ret;
}

void
rates_reply(struct serve *s, struct answer *a)
{
	struct rates rates = { .given = { false } };
	char         text[TEXT_MAX];
	size_t       n = 0;
	int          error = 0;

	if (a->ask.method == ASK_POST) {
		if (!rates_read(a, &rates))
			return;
		for (size_t i = 0; i < collector_count; i++) {
			const struct collector *c = collectors[i];
			const char             *why;

			if (rates.given[i])
				error = rates_set(s, c, rates.value[i]);
			if (error == 0)
				continue;
			why = error == -ENOTSUP && c->status ? c->status() : "";
			reply_error(a, 501, *why ? why : strerror(-error));
			return;
		}
		rates_log(s, a);
	}
	for (size_t i = 0; i < collector_count; i++)
		if (collectors[i]->rate)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%s=%lld\n", collectors[i]->rate->option,
				(long long)collectors[i]->rate->get());
	reply_text(a, 200, ANSWER_TEXT, text, n);
}
