/*
 * adopted_daemon.c - a daemon as others write them: getopt(3), daemon(3), workers, its own shutdown;
 * and the options about profiling beside.
 *
 *     adopted_daemon [-d] [-c FILE] [-r ROOT] [-u UID] [-v] -w WORKERS
 *
 * A worker that ends is followed by another.  At HUP it sets itself up once more, at USR2 it replaces itself.
 * Changes its root before it becomes a daemon.  Prints what its own options were and, at the end, "bye";
 * warnings about profiling as "log: ...".  A worker that gets USR1 has profiling changed to what the file of
 * the variable AGAIN says, its address and its debug socket in a line each, and prints "changed NUMBER".
 */
#include <config.h>

#include <component/main.h>
#include <component/profiler.h>

#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORKERS_MAX 8

static uid_t          user;
static volatile long  turns;
static pid_t          workers[WORKERS_MAX];
static volatile sig_atomic_t again;

void worker_turns(void);

__attribute__((noinline)) void
worker_turns(void)
{
	for (long i = 0; i < 1000000; i++)
		turns += i;
}

static void
on_usr1(int number)
{
	(void)number;
	again = 1;
}

static void
change(void)
{
	struct component_profiler_options o = COMPONENT_PROFILER_OPTIONS_INIT;
	struct component_error            err = COMPONENT_ERROR_INIT;
	char                              address[256] = "", debug[256] = "";
	FILE                             *f = fopen(getenv("AGAIN"), "re");
	int                               r;

	if (!f || !fgets(address, sizeof(address), f))
		_exit(7);
	if (!fgets(debug, sizeof(debug), f))
		debug[0] = '\0';
	fclose(f);
	address[strcspn(address, "\n")] = '\0';
	debug[strcspn(debug, "\n")] = '\0';
	o.address = address;
	o.debug_socket_path = debug;
	o.port_file = getenv("AGAIN");
	o.max_seconds = 1;
	r = component_profiler_change(&o, &err);
	printf("changed %d%s\n", r, err.text);
	fflush(stdout);
}

static void
work(void)
{
	sigset_t none;
	int      r = component_after_fork_worker();

	if (r < 0)
		_exit(9);
	if (user && (setgroups(0, NULL) < 0 || setuid(user) < 0))
		_exit(8);
	signal(SIGUSR1, on_usr1);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (;;) {
		worker_turns();
		if (again)
			change();
		again = 0;
		usleep(1000);
	}
}

static void
make_workers(int count)
{
	for (int i = 0; i < count; i++)
		if (!workers[i]) {
			workers[i] = fork();
			if (workers[i] == 0)
				work();
		}
}

/* The signal that ended it. */
static int
serve(int count, const sigset_t *wanted)
{
	int   number;
	pid_t pid;

	do {
		make_workers(count);
		sigwait(wanted, &number);
		while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
			for (int i = 0; i < count; i++)
				workers[i] = workers[i] == pid ? 0 : workers[i];
	} while (number == SIGCHLD);
	if (number != SIGTERM)
		return number;
	for (int i = 0; i < count; i++)
		if (workers[i])
			kill(workers[i], SIGKILL);
	while (wait(NULL) > 0)
		;
	return number;
}

static void
on_log(void *arg, enum component_log_level level, const char *message, const struct component_log_field *fields, size_t count)
{
	(void)arg;
	(void)fields;
	(void)count;
	if (level <= COMPONENT_LOG_WARNING)
		fprintf(stderr, "log: %s\n", message);
}

/* As often as a signal asks for it; the exit status. */
static int
run(struct component_profiling_rows *profiling, int count)
{
	struct component_error err = COMPONENT_ERROR_INIT;
	sigset_t               wanted;
	int                    number;

	sigemptyset(&wanted);
	sigaddset(&wanted, SIGTERM);
	sigaddset(&wanted, SIGCHLD);
	sigaddset(&wanted, SIGHUP);
	sigaddset(&wanted, SIGUSR2);
	sigprocmask(SIG_BLOCK, &wanted, NULL); /* from now on it ends as it wants to */
	do {
		if (component_profiling_begin(profiling, on_log, NULL, &err) < 0) {
			fprintf(stderr, "%s\n", err.text);
			return 1;
		}
		puts("begun");
		fflush(stdout);
		number = serve(count, &wanted);
	} while (number == SIGHUP);
	if (number == SIGUSR2) {
		execv("/proc/self/exe", component_profiling_argv(profiling));
		return 1;
	}
	component_profiling_end(profiling);
	puts("bye");
	return 0;
}

int
main(int argc, char **argv)
{
	struct component_profiling_rows *profiling = NULL;
	struct component_error           err = COMPONENT_ERROR_INIT;
	int                              letter, count = 0, background = 0, loud = 0;
	const char                      *file = "none", *root = NULL;
	int r = component_profiling_extract(&argc, argv, "adopted", 0, &profiling, &err);

	if (r != 0) {
		fputs(r < 0 ? err.text : component_profiling_output(profiling), r < 0 ? stderr : stdout);
		component_profiling_end(profiling);
		return r < 0 ? 2 : 0;
	}
	while ((letter = getopt(argc, argv, "c:dr:u:vw:")) != -1)
		switch (letter) {
		case 'c': file = optarg; break;
		case 'd': background = 1; break;
		case 'r': root = optarg; break;
		case 'u': user = (uid_t)atoi(optarg); break;
		case 'v': loud++; break;
		case 'w': count = atoi(optarg); break;
		default: return 3;
		}
	if (count < 0 || count > WORKERS_MAX)
		return 3;
	printf("c=%s d=%d v=%d w=%d rest=%d\n", file, background, loud, count, argc - optind);
	fflush(stdout);
	if (root && (chroot(root) < 0 || chdir("/") < 0)) {
		perror("chroot");
		return 77;
	}
	if (background && daemon(1, 1) < 0)
		return 1;
	return run(profiling, count);
}
