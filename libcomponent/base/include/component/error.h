/*
 * error.h - the sentence that travels up when a person caused a failure.
 *
 * Functions return 0 or a negative errno for machines.  Where the cause is
 * something a person wrote (an option, a variable, a file, an address) they also
 * fill a struct component_error, whose text names the source, the value and the
 * way out.  Several faults are several lines, without a newline at the end.
 */
#ifndef COMPONENT_ERROR_H
#define COMPONENT_ERROR_H

#include <component/export.h>

COMPONENT_BEGIN

/* Bytes of text, its NUL included; what does not fit is cut at the end. */
#define COMPONENT_ERROR_MAX 4096

/* Caller's storage, no ownership inside; start with COMPONENT_ERROR_INIT. */
struct component_error {
	char text[COMPONENT_ERROR_MAX];
};

#define COMPONENT_ERROR_INIT { { 0 } }

/*
 * component_error_set - replace the text
 * component_error_add - append a line to it
 *
 *   err      may be NULL: then nothing happens
 *   threads  one thread at a time for one object
 *   signals  not from a handler
 *   source   libcomponent/base/error.c
 */
COMPONENT_API void component_error_set(struct component_error *err, const char *format, ...)
	COMPONENT_PRINTF(2, 3);
COMPONENT_API void component_error_add(struct component_error *err, const char *format, ...)
	COMPONENT_PRINTF(2, 3);

COMPONENT_END

#endif
