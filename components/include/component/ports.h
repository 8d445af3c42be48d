/*
 * ports.h - the ports of components that are known by name.
 *
 * Made from ports.def, which is installed beside this header: constants such as
 * COMPONENT_PORT_CLUSTER_AGENT_PROFILING, and a look-up by name.  A component that
 * is not in the table serves profiles on COMPONENT_PORT_DEFAULT.
 */
#ifndef COMPONENT_PORTS_H
#define COMPONENT_PORTS_H

#include <stddef.h>

#include <component/export.h>

COMPONENT_BEGIN

/* The profiling port of whoever has no row. */
#define COMPONENT_PORT_DEFAULT 6060

#define COMPONENT_PORTS_ROW(id, name, summary, profiling, health, metrics) \
	COMPONENT_PORT_##id##_PROFILING = profiling,                       \
	COMPONENT_PORT_##id##_HEALTH = health,                             \
	COMPONENT_PORT_##id##_METRICS = metrics,
enum component_port {
#include <component/ports.def>
	COMPONENT_PORT_MAX = 65535
};

struct component_ports {
	const char    *name;      /* "cluster-agent" */
	const char    *summary;   /* one sentence */
	unsigned short profiling; /* default of --profiling-bind-address */
	unsigned short health;    /* for --health-probe-bind-address, which is off by default */
	unsigned short metrics;
};

/*
 * component_ports_find - the row of a component
 * component_ports_at   - the rows one by one, from 0
 *
 *   returns  a constant; NULL when there is no such row
 *   owns     nothing passes
 *   threads  any
 *   signals  may be called from a handler
 *   fork     no state
 *   source   components/ports.c, <component/ports.def>
 */
COMPONENT_API const struct component_ports *component_ports_find(const char *name);
COMPONENT_API const struct component_ports *component_ports_at(size_t index);

COMPONENT_END

#endif
