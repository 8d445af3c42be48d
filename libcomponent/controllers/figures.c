/*
 * figures.c - the metrics of the controller kit: their names, their buckets.
 *
 * What a stranger would get wrong: the names are not ours to choose.  They are those of client-go's
 * work queue and of controller-runtime, with their labels and buckets.  A terminal failure counts
 * as an error too, as it does there.
 *
 * Tests: tests/controllers/test_figures.c, tests/components/metrics.t.
 */
#include <config.h>

#include "figures.h"

#include "clock.h"

#define COUNT(items) (sizeof(items) / sizeof((items)[0]))
#define MS           INT64_C(1000000)

static struct component_metric *
metric(const struct component_metric_spec *spec)
{
	struct component_metric *m;

	component_metric_new(spec, &m, NULL);
	return m;
}

/* From 10 ns to 1000 s. */
static const int64_t queue_buckets[] = { 10, 100, 1000, 10000, 100000, 1 * MS, 10 * MS, 100 * MS, 1000 * MS,
	10000 * MS, 100000 * MS, 1000000 * MS };

#define QUEUE(kind, metric_name, sentence, ...) \
	metric(&(const struct component_metric_spec)COMPONENT_METRIC_SPEC(.type = COMPONENT_METRIC_##kind, \
		.name = "workqueue_" metric_name, .help = sentence, .labels = { "name", "controller" }, __VA_ARGS__))
#define QUEUE_TIMES(metric_name, sentence) \
	QUEUE(HISTOGRAM, metric_name, sentence, .per_unit = CLOCK_NS_PER_S, .buckets = queue_buckets, \
		.bucket_count = COUNT(queue_buckets))

void
queue_figures_init(struct queue_figures *f, const char *name, component_metric_collect_fn *collect)
{
	if (!name) {
		f->depth = f->unfinished = f->longest = component_gauge_of(NULL, NULL);
		f->adds = f->retries = component_counter_of(NULL, NULL);
		f->waited = f->worked = component_histogram_of(NULL, NULL);
		return;
	}
	f->depth = component_gauge_of(QUEUE(GAUGE, "depth", "Keys that wait for a worker.", .per_unit = 1), name, name, NULL);
	f->adds = component_counter_of(QUEUE(COUNTER, "adds_total", "Keys that were added.", .per_unit = 1), name, name, NULL);
	f->waited = component_histogram_of(QUEUE_TIMES("queue_duration_seconds", "How long keys waited for a worker."),
		name, name, NULL);
	f->worked = component_histogram_of(QUEUE_TIMES("work_duration_seconds", "How long workers took for a key."),
		name, name, NULL);
	f->unfinished = component_gauge_of(QUEUE(GAUGE, "unfinished_work_seconds",
		"Time that workers have spent on keys which they have not finished; it grows by a second each second for "
		"each that is stuck.", .per_unit = CLOCK_NS_PER_S), name, name, NULL);
	/* Of the two that are set when somebody asks this one is shown first. */
	f->longest = component_gauge_of(QUEUE(GAUGE, "longest_running_processor_seconds",
		"The longest time that a worker has spent on the key which it has.", .per_unit = CLOCK_NS_PER_S, .collect = collect),
		name, name, NULL);
	f->retries = component_counter_of(QUEUE(COUNTER, "retries_total", "Keys that were added again after a failure.",
		.per_unit = 1), name, name, NULL);
}

void
leader_figures_init(struct leader_figures *f, const char *name)
{
	if (!name) {
		f->leads = component_gauge_of(NULL, NULL);
		f->slow_paths = component_counter_of(NULL, NULL);
		return;
	}
	f->leads = component_gauge_of(metric(&(const struct component_metric_spec)COMPONENT_METRIC_SPEC(
		.type = COMPONENT_METRIC_GAUGE, .name = "leader_election_master_status", .help = "1 while this process leads, else 0.",
		.labels = { "name" })), name, NULL);
	f->slow_paths = component_counter_of(metric(&(const struct component_metric_spec)COMPONENT_METRIC_SPEC(
		.type = COMPONENT_METRIC_COUNTER, .name = "leader_election_slowpath_total",
		.help = "How often it could not be verified at once that this process leads.", .labels = { "name" })), name, NULL);
}

/* Those of controller-runtime. */
static const int64_t reconcile_buckets[] = { 5 * MS, 10 * MS, 25 * MS, 50 * MS, 100 * MS, 150 * MS, 200 * MS, 250 * MS,
	300 * MS, 350 * MS, 400 * MS, 450 * MS, 500 * MS, 600 * MS, 700 * MS, 800 * MS, 900 * MS, 1000 * MS, 1250 * MS,
	1500 * MS, 1750 * MS, 2000 * MS, 2500 * MS, 3000 * MS, 3500 * MS, 4000 * MS, 4500 * MS, 5000 * MS, 6000 * MS,
	7000 * MS, 8000 * MS, 9000 * MS, 10000 * MS, 15000 * MS, 20000 * MS, 25000 * MS, 30000 * MS, 40000 * MS,
	50000 * MS, 60000 * MS };

#define RECONCILE(kind, metric_name, sentence, ...) \
	metric(&(const struct component_metric_spec)COMPONENT_METRIC_SPEC(.type = COMPONENT_METRIC_##kind, \
		.name = "controller_runtime_" metric_name, .help = sentence, __VA_ARGS__))

void
reconcile_figures_init(struct reconcile_figures *f, const char *controller)
{
	static const char *const results[] = { [COMPONENT_DONE] = "success", [COMPONENT_ERROR] = "error",
		[COMPONENT_AFTER] = "requeue_after", [COMPONENT_TERMINAL] = "error" };
	struct component_metric *total = RECONCILE(COUNTER, "reconcile_total", "Reconciliations by their result.",
		.labels = { "controller", "result" });

	for (size_t i = 0; i < COUNT(results); i++)
		f->results[i] = component_counter_of(total, controller, results[i], NULL);
	f->errors = component_counter_of(RECONCILE(COUNTER, "reconcile_errors_total", "Reconciliations that failed.",
		.labels = { "controller" }), controller, NULL);
	f->terminal_errors = component_counter_of(RECONCILE(COUNTER, "terminal_reconcile_errors_total",
		"Reconciliations that failed and are not tried again.", .labels = { "controller" }), controller, NULL);
	f->time = component_histogram_of(RECONCILE(HISTOGRAM, "reconcile_time_seconds", "How long reconciliations took.",
		.labels = { "controller" }, .per_unit = CLOCK_NS_PER_S, .buckets = reconcile_buckets,
		.bucket_count = COUNT(reconcile_buckets)), controller, NULL);
	f->workers = component_gauge_of(RECONCILE(GAUGE, "max_concurrent_reconciles", "Workers of the controller.",
		.labels = { "controller" }), controller, NULL);
	f->active = component_gauge_of(RECONCILE(GAUGE, "active_workers", "Workers that have a key just now.",
		.labels = { "controller" }), controller, NULL);
}

void
reconcile_figures_add(const struct reconcile_figures *f, enum component_reconcile outcome, int64_t took_ns)
{
	if (outcome > COMPONENT_TERMINAL)
		outcome = COMPONENT_DONE; /* as the controller takes it */
	component_counter_add(f->results[outcome], 1);
	if (outcome == COMPONENT_ERROR || outcome == COMPONENT_TERMINAL)
		component_counter_add(f->errors, 1);
	if (outcome == COMPONENT_TERMINAL)
		component_counter_add(f->terminal_errors, 1);
	component_histogram_observe(f->time, took_ns);
}
