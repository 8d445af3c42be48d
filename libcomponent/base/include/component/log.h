/*
 * log.h - the one shape of a log call, which all layers share.
 *
 * A message is a constant sentence; what varies goes into fields, so that text,
 * logfmt and json lines can all be made of it.  The library itself never prints:
 * whoever owns the process passes a function of this type.
 */
#ifndef COMPONENT_LOG_H
#define COMPONENT_LOG_H

#include <stddef.h>

#include <component/export.h>
#include <component/log_values.h>

COMPONENT_BEGIN

enum component_log_level {
	COMPONENT_LOG_ERROR,
	COMPONENT_LOG_WARNING,
	COMPONENT_LOG_INFO,
	COMPONENT_LOG_DEBUG, /* shown with -v 1 and above */
};

struct component_log_field {
	const char *key;   /* lower case, a word */
	const char *value; /* borrowed for the call; never NULL */
};

/*
 * component_log_fn - receives one log line
 *
 *   threads  called from any thread, ours included, several at once
 *   signals  never from a handler
 */
typedef void component_log_fn(void *arg, enum component_log_level level, const char *message,
	const struct component_log_field *fields, size_t field_count);

COMPONENT_END

/*
 * COMPONENT_KV - one field of component_log(), of whatever type the value has
 *
 *     component_log(c, COMPONENT_LOG_INFO, "synced", COMPONENT_KV("app", name), COMPONENT_KV("files", n));
 *
 * A number, a bool and NULL are such in json, without quotes; NULL is (null) elsewhere.
 * Everything is evaluated once; a text is borrowed for the call.
 *
 *   key      a text
 *   value    a text, bool, integer, floating point number or pointer
 *   source   component/log_values.h
 */
#define COMPONENT_KV(key, value) component_log_pair(key, COMPONENT_LOG_OF(value))

#endif
