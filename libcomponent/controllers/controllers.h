/*
 * controllers.h - between the part that has the options and the controllers.
 */
#ifndef CONTROLLERS_CONTROLLERS_H
#define CONTROLLERS_CONTROLLERS_H

#include <component/controller.h>

struct leader;

/* What the options say; the same for all controllers of a component. */
struct controller_options {
	int64_t workers;
	int64_t resync_ns; /* 0: never */
	struct component_queue_options queue;
};

/* Watches; stopped and freed by hand. */
int  controller_new(struct component *c, const struct component_controller_spec *spec,
	const struct controller_options *options, struct leader *leader, struct component_controller **ret,
	struct component_error *err);
/* Starts its workers. */
int  controller_run(struct component_controller *k, struct component_error *err);
/* Queues every file there is. */
void controller_look(struct component_controller *k);
/* Other pacing and resync period from now on. */
void controller_set(struct component_controller *k, const struct controller_options *options);
/* No new keys; workers end when the queue is empty.  May be called again. */
void controller_stop(struct component_controller *k);
/* Joins the workers, which have released their hold. */
void controller_free(struct component_controller *k);

#endif
