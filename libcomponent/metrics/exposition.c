/*
 * exposition.c - metrics as Prometheus' text, or as OpenMetrics.
 *
 * The two differ little: in OpenMetrics a counter's metric has no "_total", which its line has;
 * quotes are escaped in help; whole bounds have ".0"; and "# EOF" says that all is there.
 *
 * What a stranger would get wrong:
 * - Numbers are written digit by digit, for printf(3) writes a comma where the program's locale
 *   has one.  Values are exact.  A bucket's bound is a label, and a label's text must be the one that
 *   dashboards ask for: bounds have an exponent where Go's have one, 1e-08 and 1e+06.
 * - A histogram's count is the sum of its buckets as they were read, not a number of its own,
 *   so that the two never contradict each other.
 *
 * Tests: tests/metrics/test_metric.c, tests/components/metrics.t.
 */
#include <config.h>

#include "exposition.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "metric.h"

#define NUMBER_BYTES 48
/* Of the first digit's power of ten: below the one and from the other on there is an exponent. */
#define POINT_MIN    (-4)
#define POINT_MAX    21 /* of a value */
#define BOUND_MAX    6  /* of a bound, as strconv.FormatFloat(x, 'g', -1, 64) has it */

struct component_metric_samples {
	struct text                   *out;
	const struct component_metric *metric;
	enum exposition_format         format;
};

/* digits, of which the first stands for 10 to the power of exponent. */
static void
number_place(char buf[NUMBER_BYTES], const char *digits, int n, int exponent, int most)
{
	if (exponent < POINT_MIN || exponent >= most)
		sprintf(buf, "%c%s%.*se%c%02d", *digits, n > 1 ? "." : "", n - 1, digits + 1, exponent < 0 ? '-' : '+',
			exponent < 0 ? -exponent : exponent);
	else if (exponent < 0)
		sprintf(buf, "0.%.*s%.*s", -exponent - 1, "0000", n, digits);
	else if (n <= exponent + 1)
		sprintf(buf, "%.*s%.*s", n, digits, exponent + 1 - n, "00000000000000000000");
	else
		sprintf(buf, "%.*s.%.*s", exponent + 1, digits, n - exponent - 1, digits + exponent + 1);
}

/* value / per_unit. */
static void
number_text(char buf[NUMBER_BYTES], bool negative, uint64_t value, int64_t per_unit, int most)
{
	char digits[24];
	int  n = sprintf(digits, "%" PRIu64, value), exponent = n - 1;

	for (; per_unit > 1; per_unit /= 10)
		exponent--;
	if (!value) {
		strcpy(buf, "0");
		return;
	}
	while (n > 1 && digits[n - 1] == '0')
		n--;
	if (negative)
		*buf++ = '-';
	number_place(buf, digits, n, exponent, most);
}

static void
signed_text(char buf[NUMBER_BYTES], int64_t value, int64_t per_unit, int most)
{
	number_text(buf, value < 0, value < 0 ? -(uint64_t)value : (uint64_t)value, per_unit, most);
}

static void
line_add(const struct component_metric_samples *to, const char *ending, const char *labels, const char *le,
	const char *number)
{
	const char *braces = *labels || le ? "{}" : "";

	text_add(to->out, "%s%s%.1s%s", to->metric->spec.name, ending, braces, labels);
	if (le)
		text_add(to->out, "%sle=\"%s\"", *labels ? "," : "", le);
	text_add(to->out, "%s %s\n", *braces ? "}" : "", number);
}

static void
histogram_add(const struct component_metric_samples *to, const char *labels, const struct component_histogram *h)
{
	const struct component_metric_spec *s = &to->metric->spec;
	char     bound[NUMBER_BYTES], number[NUMBER_BYTES];
	uint64_t sum = 0;

	for (size_t i = 0; i <= s->bucket_count; i++) {
		sum += __atomic_load_n(&h->counts[i], __ATOMIC_RELAXED);
		if (i == s->bucket_count)
			strcpy(bound, "+Inf");
		else
			signed_text(bound, s->buckets[i], s->per_unit, BOUND_MAX);
		if (to->format == EXPOSITION_OPENMETRICS && i < s->bucket_count && !strpbrk(bound, ".e"))
			strcat(bound, ".0");
		number_text(number, false, sum, 1, POINT_MAX);
		line_add(to, "_bucket", labels, bound, number);
	}
	signed_text(bound, __atomic_load_n(&h->sum, __ATOMIC_RELAXED), s->per_unit, POINT_MAX);
	line_add(to, "_sum", labels, NULL, bound);
	line_add(to, "_count", labels, NULL, number);
}

static void
series_add(const struct component_metric_samples *to, const struct metric_series *s)
{
	const struct component_metric *m = to->metric;
	char number[NUMBER_BYTES];

	if (m->spec.type == COMPONENT_METRIC_HISTOGRAM) {
		histogram_add(to, s->labels, s->value);
		return;
	}
	if (m->spec.type == COMPONENT_METRIC_COUNTER)
		number_text(number, false, __atomic_load_n(&((struct component_counter *)s->value)->value, __ATOMIC_RELAXED),
			m->spec.per_unit, POINT_MAX);
	else
		signed_text(number, __atomic_load_n(&((struct component_gauge *)s->value)->value, __ATOMIC_RELAXED),
			m->spec.per_unit, POINT_MAX);
	line_add(to, "", s->labels, NULL, number);
}

void
component_metric_sample(struct component_metric_samples *to, int64_t value, ...)
{
	char    labels[METRIC_LABELS_BYTES], number[NUMBER_BYTES];
	va_list values;

	va_start(values, value);
	if (metric_labels(to->metric, values, labels)) {
		signed_text(number, value, to->metric->spec.per_unit, POINT_MAX);
		line_add(to, "", labels, NULL, number);
	}
	va_end(values);
}

static void
escaped_add(struct text *out, const char *text, bool quotes)
{
	for (; *text; text++) {
		if (*text == '\\' || *text == '\n' || (quotes && *text == '"'))
			text_add_bytes(out, "\\", 1);
		text_add_bytes(out, *text == '\n' ? "n" : text, 1);
	}
}

static void
head_add(struct text *out, const char *name, const char *help, enum component_metric_type type,
	enum exposition_format format)
{
	static const char *const types[] = { "counter", "gauge", "histogram" };
	int n = (int)strlen(name);

	if (type == COMPONENT_METRIC_COUNTER && format == EXPOSITION_OPENMETRICS)
		n -= (int)strlen("_total");
	text_add(out, "# HELP %.*s ", n, name);
	escaped_add(out, help, format == EXPOSITION_OPENMETRICS);
	text_add(out, "\n# TYPE %.*s %s\n", n, name, types[type]);
}

static void
metric_add(struct text *out, const struct component_metric *m, enum exposition_format format)
{
	struct component_metric_samples to = { out, m, format };
	size_t before = out->size, head;

	head_add(out, m->spec.name, m->spec.help, m->spec.type, format);
	head = out->size;
	if (m->spec.collect)
		m->spec.collect(&to, m->spec.arg);
	for (const struct metric_series *s = m->series; s; s = s->next)
		series_add(&to, s);
	if (out->size == head && !out->failed) /* nothing of it yet: not shown, as in Go */
		out->data[out->size = before] = '\0';
}

/* Made here, since it tells of the others.  Its head is shown without a line, too. */
static void
dropped_add(struct text *out, enum exposition_format format)
{
	static const char name[] = "component_metrics_dropped_series_total";
	uint64_t n;

	head_add(out, name, "How often a series was asked for that could not be had: what is counted there is not shown.",
		COMPONENT_METRIC_COUNTER, format);
	for (const struct component_metric *m = metric_first(); m; m = m->next) {
		n = __atomic_load_n(&m->dropped.value, __ATOMIC_RELAXED);
		if (n)
			text_add(out, "%s{metric=\"%s\"} %" PRIu64 "\n", name, m->spec.name, n);
	}
}

void
exposition_write(struct text *out, enum exposition_format format)
{
	for (const struct component_metric *m = metric_first(); m; m = m->next)
		metric_add(out, m, format);
	dropped_add(out, format);
	if (format == EXPOSITION_OPENMETRICS)
		text_add(out, "# EOF\n");
}
