/*
 * container.h - a container that serves profiles: arguments, ports and probes that it lacks for that.
 *
 *   source   components/componentctl/annotate/container.c
 */
#ifndef COMPONENTCTL_CONTAINER_H
#define COMPONENTCTL_CONTAINER_H

#include <stdbool.h>
#include <stdint.h>

#include "manifest.h"

struct container_wish {
	int64_t profile_port, health_port; /* where the manifest names none */
	bool    probes;                    /* for one that has none */
	bool    beside_dapr;               /* whose injector adds a container to the pod */
};

/* One of a pod's spec gets what it lacks, and nothing twice.  What cannot be is the manifest's fault. */
void container_annotate(struct manifest *m, struct node *spec, struct node *container, const struct container_wish *wish);

#endif
