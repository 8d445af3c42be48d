/*
 * main.h - what is ready-made: a whole main(), and the parts for health, metrics and profiling.
 *
 * <component/component.h> includes this.  What is declared here is defined above the life of
 * a daemon, in components/.
 */
#ifndef COMPONENT_MAIN_H
#define COMPONENT_MAIN_H

#include <component/error.h>
#include <component/export.h>
#include <component/flags.h>
#include <component/log.h>

COMPONENT_BEGIN

struct component_part;
struct component_spec;

/*
 * component_main - a whole main(): flags, signals, listeners, loop, exit status
 *
 * Makes a component of the spec, with the parts for health, metrics and profiling and
 * those of spec->parts; parses; installs the signal handlers; starts; runs the loop until
 * it has stopped.  The only function here that prints: --help and the like to
 * stdout, faults to stderr.
 *
 *   returns  the exit status for main(): 0 clean stop or help given, 1 failure at
 *            start or run time or not finished in time, 2 bad options, 78 bad
 *            config file
 *   threads  the main thread; others may be running already
 *   signals  INT, TERM, HUP, USR1 and PIPE are taken as component_signals_install()
 *            tells; a second INT or TERM ends the process with _exit(1).  USR2 prints
 *            every thread's stack to stderr; so does QUIT, and ends with _exit(2), even
 *            if all threads hang
 *   fork     never forks; call daemon(3) before it
 *   source   components/component_main.c
 */
COMPONENT_API int component_main(const struct component_spec *spec, int argc, char **argv);

/*
 * component_profiling - the part that gives a component the profiling options and server
 * component_health    - the part that answers /livez, /readyz and /healthz
 * component_metrics   - the part that serves /metrics: metrics.h
 *
 * component_main() uses all three; others give them to component_use(), profiling last where several are
 * to be served at one address.
 *
 *   returns  a constant
 *   threads  any
 *   signals  may be called from a handler
 *   fork     no state
 *   source   components/profiling.c, components/health.c, components/scrape.c
 */
COMPONENT_API const struct component_part *component_profiling(void);
COMPONENT_API const struct component_part *component_health(void);
COMPONENT_API const struct component_part *component_metrics(void);

/*
 * component_profiling_add   - the rows about profiling beside a daemon's own
 * component_profiling_begin - after parsing: start the server, if that is asked for
 * component_profiling_end   - stop what begin has started and free the rows' values
 *
 * For a daemon that has a main(), a loop and signals of its own and wants the
 * options alone: what the part component_profiling() does, without a component.
 * Reload and USR1 are then the daemon's, and the file of --profiling-enable-file is read once, by begin
 * or before, with a warning in the log that nobody follows it.
 *
 *   port     of the default address 127.0.0.1:PORT; 0: 6060
 *   log      where the server logs, from any thread, until component_profiling_end(); NULL: nowhere
 *
 *   returns  add: what component_flags_add() returns, -ENOMEM; begin: 0, off or on
 *            (see component_profiler_running()), or a negative errno with err
 *            naming address, reason and way out; with --profiling-on-error=warn that is
 *            logged, and begin returns 0.  A second begin, of a daemon that sets itself up
 *            once more in the same process, finds the server running and returns 0; log and
 *            log_arg stay those of the first
 *   owns     *ret is the caller's until component_profiling_end(), which is called
 *            after component_flags_free(), since the rows' values are in it; NULL
 *            is fine
 *   threads  one; the server has its own
 *   signals  not from a handler
 *   fork     after daemon(3) or fork(2): component_after_fork()
 *   source   components/profiling_rows.c
 */
struct component_profiling_rows;
COMPONENT_API int component_profiling_add(struct component_flags *f, unsigned port,
	struct component_profiling_rows **ret, struct component_error *err);
COMPONENT_API int component_profiling_begin(struct component_profiling_rows *p, component_log_fn *log, void *log_arg,
	struct component_error *err);
COMPONENT_API void component_profiling_end(struct component_profiling_rows *p);

/*
 * component_profiling_extract - the same for a daemon that others wrote, from its command line
 * component_profiling_output  - text that --profiling-help wants on standard output
 * component_profiling_argv    - all words, as they were: for execv(3), by a daemon that replaces itself
 *
 * Takes the options about profiling out as component_flags_extract() does, and reads them from
 * the environment; everything else is left to the daemon.  Then component_profiling_begin(), once
 * it is a daemon, and component_profiling_end(), which frees the flags as well.
 *
 *   name     "memcached": its variables are MEMCACHED_ENABLE_PPROF and so on; borrowed
 *   port     as of component_profiling_add()
 *
 *   returns  0: go on
 *            1: --profiling-help and the like: print component_profiling_output(), exit 0
 *            a negative errno: print err->text, exit 2; argv is as it was
 *   owns     *ret, from 0 and 1, is the caller's until component_profiling_end(); argv's strings
 *            are main()'s, the array that component_profiling_argv() gives is in *ret
 *   threads  as component_flags_parse(): first in main()
 *   signals  not from a handler
 *   fork     after daemon(3): component_after_fork(); in workers: component_after_fork_worker()
 *   source   components/profiling_extract.c
 */
COMPONENT_API int component_profiling_extract(int *argc, char **argv, const char *name, unsigned port,
	struct component_profiling_rows **ret, struct component_error *err);
COMPONENT_API const char *component_profiling_output(const struct component_profiling_rows *p);
COMPONENT_API char **component_profiling_argv(const struct component_profiling_rows *p);

COMPONENT_END

#endif
