/*
 * starts_before_daemon.c - a daemon that starts its profiling server too early: before daemon(3).
 *
 *     starts_before_daemon ADDRESS PORT-FILE [stay-off]
 *
 * After daemon(3) the server's thread is in the parent, which is gone; the survivor
 * calls component_after_fork(), or with "stay-off" does not.  Prints what the calls
 * returned, then waits to be killed.
 */
#include <config.h>

#include <component/profiler.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int
main(int argc, char **argv)
{
	struct component_profiler_options o = COMPONENT_PROFILER_OPTIONS_INIT;
	struct component_error            err = COMPONENT_ERROR_INIT;
	int                               r;

	if (argc < 3)
		return 2;
	o.address = argv[1];
	o.port_file = argv[2];
	r = component_profiler_start_options(&o, &err);
	printf("start %d %s\n", r, err.text);
	fflush(stdout);
	unlink(argv[2]);
	if (daemon(1, 1) < 0)
		return 1;
	printf("running after fork %d\n", component_profiler_running());
	if (argc < 4)
		printf("after fork %d\n", component_after_fork());
	printf("running %d pid %d\n", component_profiler_running(), (int)getpid());
	fflush(stdout);
	for (;;)
		pause();
}
