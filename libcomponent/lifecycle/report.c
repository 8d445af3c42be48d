/*
 * report.c - what is wrong with options, in the log, and how options want the log.
 *
 * Tests: tests/lifecycle/test_config.c.
 */
#include <config.h>

#include "life.h"

#include <string.h>

void
report_fault(struct component *c, const char *message, const struct component_error *err)
{
	struct component_error text = *err;
	char                  *rest = text.text, *line;

	while ((line = strsep(&rest, "\n")) != NULL)
		if (*line && strncmp(line, "Try '", strlen("Try '")) != 0)
			component_log(c, COMPONENT_LOG_ERROR, message, "error", line, NULL);
}

void
report_warnings(struct component *c)
{
	const char *text;

	for (size_t i = 0; (text = component_flags_warning(c->flags, i)); i++)
		component_log(c, COMPONENT_LOG_WARNING, text, NULL);
}

void
report_apply_options(struct component *c)
{
	int64_t level = c->options.verbosity - VERBOSITY_ERROR;

	c->log.level = level < COMPONENT_LOG_DEBUG ? (int)level : COMPONENT_LOG_DEBUG;
	c->log.format = c->options.log_format;
}
