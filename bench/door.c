/*
 * door.c - what a program is and takes with us in it, switched off or on.
 *
 *     door exit                ends at once
 *     door off|on              its private dirty memory and its threads
 *     door start PROGRAM       CPU time of starting "PROGRAM exit", from exec to exit
 *     door start-on PROGRAM    the same of "PROGRAM serve", which starts profiling and leaves
 *
 * Built twice from the same object, without us (bench/door_plain) and linked as
 * pkg-config says (bench/door_linked).  on: one call, as examples/one-call.c does it;
 * no request has come yet.
 */
#include <dlfcn.h>
#include <dirent.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define STARTS 41

extern char **environ;

static double
dirty_kb(void)
{
	FILE *f = fopen("/proc/self/smaps_rollup", "re");
	char  line[256];
	long  kb = -1;

	if (!f)
		bench_skip("there is no /proc/self/smaps_rollup");
	while (fgets(line, sizeof(line), f) && sscanf(line, "Private_Dirty: %ld", &kb) != 1)
		;
	fclose(f);
	if (kb < 0)
		bench_die("smaps_rollup says no Private_Dirty");
	return (double)kb;
}

static double
threads(void)
{
	DIR *d = opendir("/proc/self/task");
	int  n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n - 2; /* . and .. */
}

/* In the program without us there is nothing to start. */
static void
serve(void)
{
	int (*start)(const char *) = (int (*)(const char *))dlsym(RTLD_DEFAULT, "component_profiler_start");

	if (start && start("127.0.0.1:0") != 0)
		bench_die("the profiler does not start");
}

static double
start_us(const char *program, char *leave)
{
	char         *argv[] = { (char *)program, leave, NULL };
	struct rusage used;
	int           status;
	pid_t         pid;

	if (posix_spawn(&pid, program, NULL, NULL, argv, environ) != 0 || wait4(pid, &status, 0, &used) != pid || status != 0)
		bench_die("that program does not run");
	return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e6 + (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

static void
state(int on)
{
	int (*start)(const char *) = (int (*)(const char *))dlsym(RTLD_DEFAULT, "component_profiler_start");

	if (on && (!start || start("127.0.0.1:0") != 0))
		bench_die("the profiler does not start");
	if (on)
		usleep(200000); /* what it still does by itself */
	bench_print("dirty_kb", dirty_kb(), "KiB");
	bench_print("threads", threads(), "threads");
}

int
main(int argc, char **argv)
{
	char   exit_word[] = "exit", serve_word[] = "serve";
	double taken[STARTS];

	if (argc < 2)
		bench_die("door exit|serve|off|on|start PROGRAM|start-on PROGRAM");
	if (strcmp(argv[1], "exit") == 0)
		return 0;
	if (strcmp(argv[1], "serve") == 0) {
		serve();
		return 0;
	}
	if (strncmp(argv[1], "start", 5) != 0) {
		state(strcmp(argv[1], "on") == 0);
		return 0;
	}
	for (int i = 0; i < STARTS; i++)
		taken[i] = start_us(argv[2], argv[1][5] ? serve_word : exit_word);
	bench_print("start_us", bench_median(taken, STARTS), "us");
	return 0;
}
