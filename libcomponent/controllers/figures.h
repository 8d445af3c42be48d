/*
 * figures.h - metrics of queues, of controllers and of who leads, under the names that client-go and
 * controller-runtime give them, so that dashboards made for those work.
 *
 * All are handles, which are never NULL.  A queue without a name counts where nobody looks.
 *
 *   source   libcomponent/controllers/figures.c
 */
#ifndef CONTROLLERS_FIGURES_H
#define CONTROLLERS_FIGURES_H

#include <component/controller.h>
#include <component/metrics.h>

struct queue_figures {
	struct component_gauge     *depth;
	struct component_counter   *adds, *retries;
	struct component_histogram *waited, *worked; /* ns: in the queue, and from get to done */
	struct component_gauge     *unfinished, *longest; /* ns: set when somebody asks */
};

/* collect: sets unfinished and longest of all queues; the same function each time. */
void queue_figures_init(struct queue_figures *f, const char *name, component_metric_collect_fn *collect);

struct leader_figures {
	struct component_gauge   *leads; /* 1 or 0 */
	struct component_counter *slow_paths;
};

/* name NULL: there is no election. */
void leader_figures_init(struct leader_figures *f, const char *name);

struct reconcile_figures {
	struct component_counter   *results[COMPONENT_TERMINAL + 1]; /* by enum component_reconcile */
	struct component_counter   *errors, *terminal_errors;
	struct component_histogram *time; /* ns */
	struct component_gauge     *workers, *active;
};

void reconcile_figures_init(struct reconcile_figures *f, const char *controller);
/* One reconcile() has ended. */
void reconcile_figures_add(const struct reconcile_figures *f, enum component_reconcile outcome, int64_t took_ns);

#endif
