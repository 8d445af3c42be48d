/*
 * scrape_process.c - process_*: what Prometheus' own libraries say of a process, under their names.
 *
 * What cannot be read is not shown: without /proc there are the CPU time and the limits alone.
 *
 * What a stranger would get wrong: to count the descriptors opens one, and /proc/self has none once the
 * program's first thread has ended.  A limit that there is none
 * of has no line, since a number would be taken for one.
 *
 * Tests: tests/components/metrics.t.
 */
#include <config.h>

#include "scrape.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <component/metrics.h>

#include "clock.h"
#include "our_fd.h"
#include "proc_status.h"
#include "process_start.h"

static void
cpu_seconds(struct component_metric_samples *to, void *arg)
{
	(void)arg;
	component_metric_sample(to, clock_ns(CLOCK_PROCESS_CPUTIME_ID), NULL);
}

static void
start_time(struct component_metric_samples *to, void *arg)
{
	int64_t start = process_started_ns();

	(void)arg;
	if (start > 0)
		component_metric_sample(to, start, NULL);
}

/* A line of /proc/self/status in kB, as bytes. */
static void
memory(struct component_metric_samples *to, void *key)
{
	char value[PROC_STATUS_BYTES];

	if (proc_status_find(proc_status_open(), key, value))
		component_metric_sample(to, strtoll(value, NULL, 10) << 10, NULL);
}

static void
threads(struct component_metric_samples *to, void *arg)
{
	char value[PROC_STATUS_BYTES];

	(void)arg;
	if (proc_status_find(proc_status_open(), "\nThreads:", value))
		component_metric_sample(to, strtoll(value, NULL, 10), NULL);
}

static void
open_descriptors(struct component_metric_samples *to, void *arg)
{
	int64_t n = -3; /* ".", ".." and the one that reads */
	DIR    *dir = our_fd_opendir("/proc/thread-self/fd");

	(void)arg;
	if (!dir)
		return;
	while (readdir(dir))
		n++;
	our_fd_closedir(dir);
	if (n >= 0)
		component_metric_sample(to, n, NULL);
}

static void
limit(struct component_metric_samples *to, void *which)
{
	struct rlimit l;

	if (getrlimit((int)(intptr_t)which, &l) == 0 && l.rlim_cur != RLIM_INFINITY && l.rlim_cur <= INT64_MAX)
		component_metric_sample(to, (int64_t)l.rlim_cur, NULL);
}

#define GAUGE(metric, sentence, fn, of) \
	COMPONENT_METRIC_SPEC(.type = COMPONENT_METRIC_GAUGE, .name = metric, .help = sentence, .collect = fn, .arg = of)

void
scrape_process(void)
{
	static char resident[] = "\nVmRSS:", all[] = "\nVmSize:";
	static const struct component_metric_spec specs[] = {
		COMPONENT_METRIC_SPEC(.type = COMPONENT_METRIC_COUNTER, .name = "process_cpu_seconds_total",
			.help = "CPU time of the process, user and system.", .per_unit = CLOCK_NS_PER_S, .collect = cpu_seconds),
		COMPONENT_METRIC_SPEC(.type = COMPONENT_METRIC_GAUGE, .name = "process_start_time_seconds",
			.help = "When the process began, in seconds since 1970.", .per_unit = CLOCK_NS_PER_S,
			.collect = start_time),
		GAUGE("process_resident_memory_bytes", "Memory of the process that is in RAM.", memory, resident),
		GAUGE("process_virtual_memory_bytes", "Memory that the process has mapped.", memory, all),
		GAUGE("process_virtual_memory_max_bytes", "Memory that it may map; no line if there is no limit.", limit,
			(void *)(intptr_t)RLIMIT_AS),
		GAUGE("process_open_fds", "Open descriptors of the process.", open_descriptors, NULL),
		GAUGE("process_max_fds", "Descriptors that it may open.", limit, (void *)(intptr_t)RLIMIT_NOFILE),
		GAUGE("process_threads", "Threads of the process, with those of the library.", threads, NULL),
	};
	struct component_metric *m;

	for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++)
		component_metric_new(&specs[i], &m, NULL);
}
