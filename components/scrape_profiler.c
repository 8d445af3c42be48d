/*
 * scrape_profiler.c - component_profiler_*: what profiling has done and taken since the process began.
 *
 * Nothing is counted for it: samplers, windows and jobs know these figures anyway.
 *
 * Tests: tests/components/metrics.t.
 */
#include <config.h>

#include "scrape.h"

#include <component/metrics.h>
#include <component/profiler.h>

#include "clock.h"
#include "collector.h"
#include "pages.h"
#include "profiler.h"
#include "stack_table.h"
#include "windows.h"

enum figure { SAMPLES, LOST, HANDLER_NS };

static void
of_collectors(struct component_metric_samples *to, enum figure which)
{
	for (size_t i = 0; i < collector_count; i++) {
		struct collector_figures f = { 0 };

		if (!collectors[i]->figures)
			continue;
		collectors[i]->figures(&f);
		if (which != HANDLER_NS || collectors[i]->cpu)
			component_metric_sample(to, (int64_t)(which == SAMPLES ? f.samples : which == LOST ? f.lost : f.handler_ns),
				collectors[i]->name, NULL);
	}
}

static void
samples(struct component_metric_samples *to, void *arg)
{
	(void)arg;
	of_collectors(to, SAMPLES);
}

static void
lost(struct component_metric_samples *to, void *arg)
{
	(void)arg;
	of_collectors(to, LOST);
}

static void
handler_seconds(struct component_metric_samples *to, void *arg)
{
	(void)arg;
	of_collectors(to, HANDLER_NS);
}

static void
windows_all(struct component_metric_samples *to, void *arg)
{
	unsigned open;

	(void)arg;
	component_metric_sample(to, (int64_t)windows_opened(&open), NULL);
}

static void
windows_now(struct component_metric_samples *to, void *arg)
{
	unsigned open;

	(void)arg;
	windows_opened(&open);
	component_metric_sample(to, open, NULL);
}

static void
answers(struct component_metric_samples *to, void *arg)
{
	uint64_t bytes;

	(void)arg;
	component_metric_sample(to, (int64_t)profiler_answered(&bytes), NULL);
}

static void
answer_bytes(struct component_metric_samples *to, void *arg)
{
	uint64_t bytes;

	(void)arg;
	profiler_answered(&bytes);
	component_metric_sample(to, (int64_t)bytes, NULL);
}

static void
memory(struct component_metric_samples *to, void *arg)
{
	uintptr_t   start;
	const char *file;
	int64_t     bytes = 0;

	(void)arg;
	for (unsigned i = 0; i < PAGES_KEPT; i++)
		bytes += (int64_t)pages_noted(i, &start, &file);
	component_metric_sample(to, bytes, NULL);
}

static void
stacks(struct component_metric_samples *to, void *arg)
{
	(void)arg;
	component_metric_sample(to, (int64_t)stack_table_bytes(), NULL);
}

static void
running(struct component_metric_samples *to, void *arg)
{
	(void)arg;
	component_metric_sample(to, component_profiler_running(), NULL);
}

#define COUNTER(metric, sentence, fn, ...) \
	COMPONENT_METRIC_SPEC(.type = COMPONENT_METRIC_COUNTER, .name = metric, .help = sentence, .collect = fn, __VA_ARGS__)
#define GAUGE(metric, sentence, fn) \
	COMPONENT_METRIC_SPEC(.type = COMPONENT_METRIC_GAUGE, .name = metric, .help = sentence, .collect = fn)

void
scrape_profiler(void)
{
	static const struct component_metric_spec specs[] = {
		GAUGE("component_profiler_running", "1 while the profiling server runs.", running),
		COUNTER("component_profiler_samples_total", "Samples taken, by profile.", samples, .labels = { "profile" }),
		COUNTER("component_profiler_lost_samples_total", "Samples that no profile has, by profile.", lost,
			.labels = { "profile" }),
		COUNTER("component_profiler_handler_seconds_total", "Time of signal handlers that take samples, on the clock.",
			handler_seconds, .labels = { "profile" }, .per_unit = CLOCK_NS_PER_S),
		COUNTER("component_profiler_windows_total", "Windows that were opened: CPU and wall-clock profiles, traces.",
			windows_all, .per_unit = 1),
		GAUGE("component_profiler_open_windows", "Windows that are open.", windows_now),
		COUNTER("component_profiler_answers_total", "Profiles, dumps and traces that were answered over HTTP.", answers, .per_unit = 1),
		COUNTER("component_profiler_answer_bytes_total", "Bytes of these answers.", answer_bytes, .per_unit = 1),
		GAUGE("component_profiler_memory_bytes", "Memory that the library has mapped for itself, touched or not.", memory),
		GAUGE("component_profiler_stack_bytes", "Of it, the stacks and labels of samples.", stacks),
	};
	struct component_metric *m;

	for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++)
		component_metric_new(&specs[i], &m, NULL);
}
