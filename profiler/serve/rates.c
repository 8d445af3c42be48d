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
 * Tests: tests/serve_rates.t.
 */
#include <config.h>

#include "serve.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heap.h"
#include "waits.h"

#define BODY_MAX 1024 /* bytes */

struct rate {
	const char *name;
	const char *units; /* name and factor, in pairs */
	int64_t     value;
	bool        given;
};

enum { HEAP, MUTEX, BLOCK, RATES };

/* "10", "10us": a number, and perhaps one of the units. */
static int
value_read(const char *text, const char *units, int64_t *ret)
{
	uint64_t value = 0;
	char     name[8];
	int64_t  factor;
	int      used;

	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	for (; isdigit((unsigned char)*text); text++)
		if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value))
			return -ERANGE;
	factor = *text ? 0 : 1;
	for (; *text && sscanf(units, "%7s %lld%n", name, (long long *)&factor, &used) == 2; units += used, factor = 0)
		if (!strcmp(name, text))
			break;
	if (factor == 0)
		return -EINVAL;
	if (__builtin_mul_overflow(value, (uint64_t)factor, &value) || value > INT64_MAX)
		return -ERANGE;
	*ret = (int64_t)value;
	return 0;
}

/* False: answered with what is wrong. */
static bool
rates_read(struct answer *a, struct rate *rates)
{
	char        body[BODY_MAX + 1], value[64], text[256];
	size_t      size = a->ask.body_size;
	bool        any = false;

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
	for (int i = 0; i < RATES; i++) {
		if (!param_get(body, rates[i].name, value, sizeof(value)) &&
			!param_get(a->ask.query, rates[i].name, value, sizeof(value)))
			continue;
		any = rates[i].given = true;
		if (value_read(value, rates[i].units, &rates[i].value) == 0)
			continue;
		snprintf(text, sizeof(text), "\"%s\" is not a rate; write a number from 0 (off) up%s", rates[i].name,
			i == HEAP ? ", in bytes, KiB or MiB" : i == BLOCK ? ", in ns, us, ms or s" : "");
		reply_error(a, 400, text);
		return false;
	}
	if (!any)
		reply_error(a, 400, "no rate is named; write heap-profile-rate=, mutex-profile-fraction= or block-profile-rate=");
	return any;
}

static void
rates_log(struct serve *s, struct answer *a)
{
	char                       heap[24], mutex[24], block[24];
	struct component_log_field fields[] = { { "peer", a->ask.peer }, { "heap", heap }, { "mutex", mutex },
		{ "block", block } };

	snprintf(heap, sizeof(heap), "%llu", (unsigned long long)heap_rate());
	snprintf(mutex, sizeof(mutex), "%lld", (long long)waits_mutex_fraction());
	snprintf(block, sizeof(block), "%lld", (long long)waits_block_rate());
	serve_log(s, COMPONENT_LOG_INFO, "sampling rates changed", fields, sizeof(fields) / sizeof(fields[0]));
}

/* Sets what is given and notes it for a restart after fork; the first error. */
static int
rates_set(struct serve *s, const struct rate *rates, const char **ret_why)
{
	int r = 0;

	if (rates[HEAP].given) {
		r = heap_set_rate((uint64_t)rates[HEAP].value);
		*ret_why = heap_status();
		if (r == 0)
			__atomic_store_n(&s->options.heap_rate_bytes, heap_rate(), __ATOMIC_RELAXED);
	}
	if (r == 0 && rates[MUTEX].given) {
		r = waits_set_mutex_fraction(rates[MUTEX].value);
		*ret_why = waits_status();
		if (r == 0)
			__atomic_store_n(&s->options.mutex_fraction, waits_mutex_fraction(), __ATOMIC_RELAXED);
	}
	if (r == 0 && rates[BLOCK].given) {
		r = waits_set_block_rate(rates[BLOCK].value);
		*ret_why = waits_status();
		if (r == 0)
			__atomic_store_n(&s->options.block_rate_ns, waits_block_rate(), __ATOMIC_RELAXED);
	}
	return r;
}

void
rates_reply(struct serve *s, struct answer *a)
{
	struct rate rates[RATES] = {
		[HEAP] = { .name = "heap-profile-rate", .units = "B 1 KiB 1024 MiB 1048576" },
		[MUTEX] = { .name = "mutex-profile-fraction", .units = "" },
		[BLOCK] = { .name = "block-profile-rate", .units = "ns 1 us 1000 ms 1000000 s 1000000000" },
	};
	const char *why = "";
	char        text[192];
	int         n, error;

	if (a->ask.method == ASK_POST) {
		if (!rates_read(a, rates))
			return;
		error = rates_set(s, rates, &why);
		if (error) {
			reply_error(a, 501, error == -ENOTSUP && *why ? why : strerror(-error));
			return;
		}
		rates_log(s, a);
	}
	n = snprintf(text, sizeof(text), "heap-profile-rate=%llu\nmutex-profile-fraction=%lld\nblock-profile-rate=%lld\n",
		(unsigned long long)heap_rate(), (long long)waits_mutex_fraction(), (long long)waits_block_rate());
	reply_text(a, 200, ANSWER_TEXT, text, (size_t)n);
}
