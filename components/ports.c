/*
 * ports.c - the table of ports.def as data.
 *
 * Tests: tests/components/test_ports.c.
 */
#include <config.h>

#include <component/ports.h>

#include <string.h>

#define COMPONENT_PORTS_ROW(id, name, summary, profiling, health, metrics) \
	{ name, summary, profiling, health, metrics },
static const struct component_ports rows[] = {
#include <component/ports.def>
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

const struct component_ports *
component_ports_find(const char *name)
{
	for (size_t i = 0; name && i < ROWS; i++)
		if (strcmp(rows[i].name, name) == 0)
			return &rows[i];
	return NULL;
}

const struct component_ports *
component_ports_at(size_t index)
{
	return index < ROWS ? &rows[index] : NULL;
}
