/*
 * metric.c - the metrics of the process, their series, and the histogram.
 *
 *     metrics:  build_info --> shop_requests_total --> shop_wait_seconds      by name
 *                                     |
 *     series:             code="200" --> code="404"                           by labels
 *                              |
 *     values:          [ 64 bytes of its own ]  <-- the handle
 *
 * Who makes a metric or a series takes the lock; who counts, or writes all of them out,
 * takes none: nothing is ever moved or freed, and what is new is whole before it is linked.
 *
 * What a stranger would get wrong: a handle is never NULL.  Who counts must not have to ask
 * whether it may; so where a series is not to be had there is one that nobody sees, and how
 * often that happened is a metric itself.
 *
 * The memory is of mmap() and stays: a metric is of the process, as in Prometheus' own
 * libraries, and a daemon has some kilobytes of them.
 *
 * Why whole numbers, and no doubles as there: a double has no atomic add, and forgets what is
 * small beside what is large.
 *
 * Tests: tests/metrics/test_metric.c; what it costs: bench/metric.c.
 */
#include <config.h>

#include "metric.h"

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "arena.h"
#include "clock.h"
#include "fork.h"
#include "our_lock.h"
#include "utf8.h"

#define LINE 64 /* bytes of a cache line */

static pthread_mutex_t          lock = PTHREAD_MUTEX_INITIALIZER; /* who makes; a leaf */
static struct arena             memory;
static size_t                   count;
static struct component_metric *_Atomic first;
static const struct component_metric nowhere; /* without a bucket */

static void
fork_prepare(void)
{
	pthread_mutex_lock(&lock);
}

static void
fork_after(void)
{
	pthread_mutex_unlock(&lock);
}

FORK_SLOT(FORK_METRICS, fork_prepare, fork_after, fork_after);

/* ---- memory; all of it under the lock ---- */

/* On cache lines of its own. */
static void *
lines_alloc(size_t size)
{
	char *p = arena_alloc(&memory, (size + 2 * LINE - 1) & ~(size_t)(LINE - 1));

	return p ? p + (LINE - (uintptr_t)p % LINE) % LINE : NULL;
}

static const char *
copied(const char *text)
{
	return arena_strndup(&memory, text, strlen(text));
}

/* ---- what a spec may say ---- */

static const int64_t usual_buckets[] = { /* Prometheus' own, as nanoseconds */
	5000000, 10000000, 25000000, 50000000, 100000000, 250000000, 500000000, 1000000000, 2500000000, 5000000000,
	10000000000,
};

static bool
is_name(const char *name)
{
	size_t n = name ? strlen(name) : 0;

	if (!n || n > METRIC_NAME_MAX || isdigit((unsigned char)*name))
		return false;
	for (; *name; name++)
		if (!strchr("_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", *name))
			return false;
	return true;
}

static bool
ends_in(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);

	return n > m && strcmp(name + n - m, end) == 0;
}

/* The endings by which OpenMetrics tells the lines of one metric apart. */
static bool
is_taken_ending(const char *name)
{
	static const char *const endings[] = { "_total", "_bucket", "_count", "_sum", "_created" };

	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++)
		if (ends_in(name, endings[i]))
			return true;
	return false;
}

static bool
is_power_of_ten(int64_t n)
{
	while (n >= 10 && n % 10 == 0)
		n /= 10;
	return n == 1;
}

static const char *
labels_fault(const struct component_metric_spec *s)
{
	for (size_t i = 0; i < COMPONENT_METRIC_LABELS_MAX && s->labels[i]; i++) {
		if (!is_name(s->labels[i]) || !strncmp(s->labels[i], "__", 2))
			return "a label's name is letters, digits and '_', begins with no digit and not with '__'";
		if (s->type == COMPONENT_METRIC_HISTOGRAM && !strcmp(s->labels[i], "le"))
			return "a histogram makes the label 'le' itself; call yours another name";
		for (size_t j = 0; j < i; j++)
			if (!strcmp(s->labels[i], s->labels[j]))
				return "two labels have one name";
	}
	return NULL;
}

static const char *
buckets_fault(const struct component_metric_spec *s)
{
	if (s->type != COMPONENT_METRIC_HISTOGRAM)
		return s->buckets ? "only a histogram has buckets" : NULL;
	if (s->collect)
		return "a histogram is observed, and has no collect()";
	if (!s->buckets)
		return s->per_unit == CLOCK_NS_PER_S ? NULL :
			"the usual buckets are for nanoseconds shown as seconds; say yours, or per_unit 1000000000";
	if (!s->bucket_count || s->bucket_count > COMPONENT_METRIC_BUCKETS_MAX)
		return "a histogram has 1 to 64 buckets";
	for (size_t i = 1; i < s->bucket_count; i++)
		if (s->buckets[i] <= s->buckets[i - 1])
			return "each bucket's bound is above the one before";
	return NULL;
}

/* NULL: none. */
static const char *
spec_fault(const struct component_metric_spec *s)
{
	const char *fault;

	if (s->size < sizeof(*s))
		return "size is not set; write it with COMPONENT_METRIC_SPEC";
	if (!is_name(s->name))
		return "a name is letters, digits and '_', and begins with no digit";
	if (!s->help || !*s->help)
		return "help is missing: one sentence on what it counts";
	if (s->type > COMPONENT_METRIC_HISTOGRAM)
		return "there is no such type";
	if (s->type == COMPONENT_METRIC_COUNTER && !ends_in(s->name, "_total"))
		return "a counter's name ends in '_total'";
	if (s->type != COMPONENT_METRIC_COUNTER && is_taken_ending(s->name))
		return "this ending belongs to lines of counters and histograms; choose another name";
	if (s->per_unit && !is_power_of_ten(s->per_unit))
		return "per_unit is 1, 10, 100 and so on";
	fault = labels_fault(s);
	return fault ? fault : buckets_fault(s);
}

/* ---- metrics ---- */

static size_t
label_count(const struct component_metric_spec *s)
{
	size_t n = 0;

	while (n < COMPONENT_METRIC_LABELS_MAX && s->labels[n])
		n++;
	return n;
}

static void
spec_complete(struct component_metric_spec *s)
{
	if (!s->per_unit)
		s->per_unit = 1;
	if (!s->series_max)
		s->series_max = COMPONENT_METRIC_SERIES;
	if (s->type == COMPONENT_METRIC_HISTOGRAM && !s->buckets) {
		s->buckets = usual_buckets;
		s->bucket_count = sizeof(usual_buckets) / sizeof(usual_buckets[0]);
	}
	if (s->type != COMPONENT_METRIC_HISTOGRAM)
		s->bucket_count = 0;
}

static bool
is_same(const struct component_metric_spec *a, const struct component_metric_spec *b)
{
	size_t n = label_count(a);

	if (strcmp(a->help, b->help) || a->type != b->type || a->per_unit != b->per_unit || label_count(b) != n ||
	    a->bucket_count != b->bucket_count || a->collect != b->collect || a->arg != b->arg)
		return false;
	for (size_t i = 0; i < n; i++)
		if (strcmp(a->labels[i], b->labels[i]))
			return false;
	return !a->bucket_count || !memcmp(a->buckets, b->buckets, a->bucket_count * sizeof(a->buckets[0]));
}

/* false: no memory. */
static bool
value_make(struct component_metric *m, struct metric_series *s)
{
	size_t buckets = m->spec.bucket_count ? m->spec.bucket_count + 1 : 0;
	size_t size = buckets ? sizeof(struct component_histogram) + buckets * sizeof(uint64_t) :
		      sizeof(struct component_counter);

	s->value = lines_alloc(size);
	if (s->value && buckets)
		*(struct component_histogram *)s->value = (struct component_histogram){ .metric = m,
			.counts = (uint64_t *)((struct component_histogram *)s->value + 1) };
	return s->value != NULL;
}

/* Under the lock.  NULL: no memory. */
static struct component_metric *
metric_make(const struct component_metric_spec *spec)
{
	struct component_metric *m = lines_alloc(sizeof(*m));
	int64_t                 *buckets = NULL;
	bool                     ok;

	if (!m)
		return NULL;
	m->spec = *spec;
	m->label_count = (unsigned)label_count(spec);
	m->spec.name = copied(spec->name);
	m->spec.help = copied(spec->help);
	ok = m->spec.name && m->spec.help;
	for (unsigned i = 0; i < m->label_count; i++)
		ok = (m->spec.labels[i] = copied(spec->labels[i])) && ok;
	if (spec->bucket_count) {
		buckets = arena_array(&memory, spec->bucket_count, sizeof(*buckets));
		ok = ok && buckets;
	}
	if (!ok || !value_make(m, &m->unseen))
		return NULL;
	if (buckets)
		memcpy(buckets, spec->buckets, spec->bucket_count * sizeof(*buckets));
	m->spec.buckets = buckets;
	return m;
}

/* Where it is to be linked, or is. */
static struct component_metric *_Atomic *
metric_place(const char *name, bool *ret_is_there)
{
	struct component_metric *_Atomic *at = &first;
	int order = 1;

	for (; *at && (order = strcmp((*at)->spec.name, name)) < 0; at = &(*at)->next)
		;
	*ret_is_there = *at && order == 0;
	return at;
}

/* Under the lock.  The samples of a counter "x_total" and those of a gauge "x" would be one metric in OpenMetrics. */
static bool
meets_another(const struct component_metric_spec *spec)
{
	char other[METRIC_NAME_MAX + sizeof("_total")];
	bool is_there;

	if (spec->type == COMPONENT_METRIC_COUNTER)
		snprintf(other, sizeof(other), "%.*s", (int)(strlen(spec->name) - strlen("_total")), spec->name);
	else
		snprintf(other, sizeof(other), "%s_total", spec->name);
	metric_place(other, &is_there);
	return is_there;
}

static int
metric_get(const struct component_metric_spec *spec, struct component_metric **ret, const char **ret_fault)
{
	bool is_there;
	struct component_metric *_Atomic *at = metric_place(spec->name, &is_there);
	struct component_metric *m;

	if (is_there ? !is_same(&(*at)->spec, spec) : meets_another(spec)) {
		*ret_fault = "there is another one of that name";
		return -EEXIST;
	}
	if (is_there) {
		*ret = *at;
		return 0;
	}
	if (count >= COMPONENT_METRICS_MAX) {
		*ret_fault = "there are 1000 already; a thing that varies is a label";
		return -ENOSPC;
	}
	m = metric_make(spec);
	if (!m) {
		*ret_fault = "out of memory";
		return -ENOMEM;
	}
	m->next = *at;
	count++;
	*at = m;
	*ret = m;
	return 0;
}

int
component_metric_new(const struct component_metric_spec *spec, struct component_metric **ret,
	struct component_error *err)
{
	const char                  *fault = spec_fault(spec);
	struct component_metric_spec whole;
	sigset_t                     mask;
	int                          r = -EINVAL;

	*ret = NULL;
	if (!fault) {
		whole = *spec;
		spec_complete(&whole);
		our_lock_take(&lock, &mask);
		r = metric_get(&whole, ret, &fault);
		our_lock_release(&lock, &mask);
	}
	if (r < 0)
		component_error_set(err, "metric '%s': %s", spec->size >= sizeof(*spec) && spec->name ? spec->name : "",
			fault);
	return r;
}

const struct component_metric *
metric_first(void)
{
	return first;
}

/* ---- series ---- */

/* A value as it stands between quotes; what is no UTF-8 becomes '?'. */
static char *
value_add(char *at, const char *value)
{
	size_t   n = strlen(value), bytes;
	uint32_t c;

	if (n > COMPONENT_METRIC_VALUE_MAX)
		n = utf8_cut(value, COMPONENT_METRIC_VALUE_MAX);
	for (; n; n -= bytes, value += bytes) {
		bytes = utf8_character(value, n, &c);
		if (!bytes || !c) {
			bytes = 1;
			*at++ = '?';
		} else if (*value == '\\' || *value == '"' || *value == '\n') {
			*at++ = '\\';
			*at++ = *value == '\n' ? 'n' : *value;
		} else {
			memcpy(at, value, bytes);
			at += bytes;
		}
	}
	return at;
}

bool
metric_labels(const struct component_metric *m, va_list values, char buf[METRIC_LABELS_BYTES])
{
	char       *at = buf;
	const char *value;

	for (unsigned i = 0; i < m->label_count; i++) {
		value = va_arg(values, const char *);
		if (!value)
			return false;
		at += sprintf(at, "%s%s=\"", i ? "," : "", m->spec.labels[i]);
		at = value_add(at, value);
		*at++ = '"';
	}
	*at = '\0';
	return va_arg(values, const char *) == NULL;
}

/* Under the lock.  NULL: there is no more room for one. */
static void *
series_get(struct component_metric *m, const char *labels)
{
	struct metric_series *_Atomic *at = &m->series;
	struct metric_series *s;
	int order = 1;

	for (; *at && (order = strcmp((*at)->labels, labels)) < 0; at = &(*at)->next)
		;
	if (*at && order == 0)
		return (*at)->value;
	if (m->series_count >= m->spec.series_max)
		return NULL;
	s = arena_alloc(&memory, sizeof(*s));
	if (!s || !(s->labels = copied(labels)) || !value_make(m, s))
		return NULL;
	s->next = *at;
	*at = s;
	m->series_count++;
	return s->value;
}

/* What is counted with if there is no metric of that type. */
static struct {
	uint64_t                   number __attribute__((aligned(LINE))); /* a counter's or a gauge's */
	uint64_t                   inf __attribute__((aligned(LINE))); /* the histogram's only bucket */
	struct component_histogram histogram;
} nobody = { .histogram = { .metric = &nowhere, .counts = &nobody.inf } };

static void *
nobody_of(enum component_metric_type type)
{
	return type == COMPONENT_METRIC_HISTOGRAM ? (void *)&nobody.histogram : (void *)&nobody.number;
}

static void *
value_of(struct component_metric *m, enum component_metric_type type, va_list values)
{
	sigset_t mask;
	char     labels[METRIC_LABELS_BYTES];
	void    *value = NULL;

	if (!m)
		return nobody_of(type);
	if (m->spec.type != type) {
		component_counter_add(&m->dropped, 1);
		return nobody_of(type);
	}
	if (metric_labels(m, values, labels)) {
		our_lock_take(&lock, &mask);
		value = series_get(m, labels);
		our_lock_release(&lock, &mask);
	}
	if (value)
		return value;
	component_counter_add(&m->dropped, 1);
	return m->unseen.value;
}

#define VALUE_OF(m, type, after) ({                    \
	va_list values_;                               \
	void   *value_;                                \
	va_start(values_, after);                      \
	value_ = value_of(m, type, values_);           \
	va_end(values_);                               \
	value_;                                        \
})

struct component_counter *
component_counter_of(struct component_metric *m, ...)
{
	return VALUE_OF(m, COMPONENT_METRIC_COUNTER, m);
}

struct component_gauge *
component_gauge_of(struct component_metric *m, ...)
{
	return VALUE_OF(m, COMPONENT_METRIC_GAUGE, m);
}

struct component_histogram *
component_histogram_of(struct component_metric *m, ...)
{
	return VALUE_OF(m, COMPONENT_METRIC_HISTOGRAM, m);
}

void
component_histogram_observe(struct component_histogram *h, int64_t n)
{
	const int64_t *bounds = h->metric->spec.buckets;
	size_t         low = 0, high = h->metric->spec.bucket_count, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (n <= bounds[middle])
			high = middle;
		else
			low = middle + 1;
	}
	__atomic_fetch_add(&h->counts[low], 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&h->sum, n, __ATOMIC_RELAXED);
}
