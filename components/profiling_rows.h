/*
 * profiling_rows.h - the options about profiling, as the part and door (c) use them.
 */
#ifndef COMPONENTS_PROFILING_ROWS_H
#define COMPONENTS_PROFILING_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <component/component.h>
#include <component/profiler.h>

#include "collector.h"
#include "enable_file.h"

#define PROFILING_ADDRESS_MAX 320 /* bytes with NUL: a host of 253 and what surrounds it */

enum profiling_on_error { PROFILING_ON_ERROR_FATAL, PROFILING_ON_ERROR_WARN };

struct component_profiling_rows {
	struct component_flags *flags;
	struct component_profiler_options options; /* what is an option there is its row's variable */
	int64_t                 rates[COLLECTORS_MAX]; /* by place in the table */
	struct component_list   allowed_hosts;
	bool                    enable, registry;
	const char             *enable_file;
	enum enable_word        said; /* by that file, which overrules enable */
	bool                    asked; /* the file, of a program without our loop */
	int                     on_error; /* enum profiling_on_error */
	int64_t                 port, default_port;
	char                    default_address[PROFILING_ADDRESS_MAX];
	bool                    owns_flags; /* made by component_profiling_extract() */
	char                  **argv;       /* all of main()'s, with NULL at the end, where that was called */
	bool                    started; /* by component_profiling_begin() */
	bool                    resolved; /* a copy whose options.address is all that counts */
};

/* p starts as zeros, may be given options.log and options.page later, and must stay where it is until the flags are freed. */
int profiling_rows_init(struct component_profiling_rows *p, struct component_flags *f, unsigned port, struct component_error *err);
bool profiling_rows_given(const struct component_profiling_rows *p, const char *row);
/* The address that counts; returns the row it came from. */
const char *profiling_rows_address(const struct component_profiling_rows *p, char *buf, size_t size);
/* Is it to serve on TCP: as the file says, else as --enable-pprof. */
bool profiling_rows_enabled(const struct component_profiling_rows *p);
/* May a start that fails end the daemon?  Not if the file alone has asked for it. */
bool profiling_rows_is_fatal(const struct component_profiling_rows *p);
/* What the file says, for a program without our loop: once, what was read stays.  0, or a negative errno with err. */
int  profiling_rows_ask_file(struct component_profiling_rows *p, struct component_error *err);
/* Does anybody want a server, by TCP or by the socket alone? */
bool profiling_rows_wanted(const struct component_profiling_rows *p);
/* Whether a server is wanted, and where, to see whether that has changed; free(); NULL: no memory. */
char *profiling_rows_text(const struct component_profiling_rows *p);
/* enable: on TCP too, not on the socket alone.  err names option, holder and way out. */
int profiling_rows_start(const struct component_profiling_rows *p, bool enable, struct component_error *err);
/* The same in the server that runs: nothing ends. */
int profiling_rows_change(const struct component_profiling_rows *p, bool enable, struct component_error *err);
/* The sampling rates that differ, of whatever server runs. */
int profiling_rows_change_rates(const struct component_profiling_rows *from, const struct component_profiling_rows *to);

#endif
