/*
 * life_daemon.c - a daemon with a loop of its own, for tests from outside: what it
 * does is chosen by words in the environment variable LIFE_DO.
 *
 *   own-hup     has a handler for HUP before the component takes the signals
 *   leave-term  keeps TERM and INT for itself
 *   ignore-pipe-write  writes to a pipe nobody reads, and logs what came of it
 *   stick       its loop hangs for ever once it runs
 *   chatter     logs for ever, in its loop
 *   hold        has work that never ends
 *   slow-start  starts only when the file LIFE_GO is there
 *   bad-reload  cannot reload
 *   usr1        has a function for USR1
 *   child       forks a child that waits, and logs the child's id
 *   drive       forks a child that tries to drive the loop, and logs its answers
 *   daemonize   leaves its parent between parsing and starting
 *   late        leaves its parent in start(), which is too late
 *   exec        runs sh, which prints its signals' dispositions
 */
#include <config.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <component/component.h>

static bool
wanted(const char *word)
{
	const char *at = getenv("LIFE_DO");
	size_t      size = strlen(word);

	for (; at && (at = strstr(at, word)); at++)
		if (at[size] == '\0' || at[size] == ' ')
			return true;
	return false;
}

static void
on_own_hup(int number)
{
	static const char text[] = "own handler\n";

	(void)number;
	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		_exit(9);
}

static void
stick(struct component *c, void *arg)
{
	(void)arg;
	component_log(c, COMPONENT_LOG_INFO, "stuck", NULL);
	for (;;)
		pause();
}

static void
chatter(struct component *c, void *arg)
{
	(void)arg;
	for (;;)
		component_log(c, COMPONENT_LOG_INFO, "and so on", NULL);
}

static void
on_usr1(struct component *c, void *arg)
{
	component_log(c, COMPONENT_LOG_INFO, "toggled", "arg", arg, NULL);
}

static void
log_number(struct component *c, const char *message, long number)
{
	char text[24];

	snprintf(text, sizeof(text), "%ld", number);
	component_log(c, COMPONENT_LOG_INFO, message, "number", text, NULL);
}

static void
fork_waiting_child(struct component *c)
{
	pid_t pid = fork();

	if (pid == 0) {
		component_log(c, COMPONENT_LOG_INFO, "child waits", NULL);
		for (;;)
			pause();
	}
	log_number(c, "child", pid);
}

static void
nothing(struct component *c, void *arg)
{
	(void)c;
	(void)arg;
}

static void
fork_driving_child(struct component *c)
{
	int   status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		bool refused = component_dispatch(c) == -EPERM && component_post(c, nothing, NULL) == -EPERM &&
			component_reload(c, NULL) == -EPERM && component_start(c, NULL) == -EPERM &&
			component_signals_install(c, NULL) == -EPERM && component_fd(c) == -1;

		component_stop(c); /* must not reach the parent */
		component_hold(c, "in the child");
		component_release(c, "in the child");
		component_free(c);
		_exit(refused ? 42 : 1);
	}
	waitpid(pid, &status, 0);
	log_number(c, "child ended with", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

static void
write_to_broken_pipe(struct component *c)
{
	int ends[2];

	if (pipe(ends) < 0)
		return;
	close(ends[0]);
	log_number(c, "broken pipe", write(ends[1], "x", 1) < 0 ? errno : 0);
	close(ends[1]);
}

static void
run_shell(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		execl("/bin/sh", "sh", "-c", "grep -E 'Sig(Blk|Ign)' /proc/self/status >&2", (char *)NULL);
		_exit(127);
	}
	waitpid(pid, NULL, 0);
}

static int
start(struct component *c, struct component_error *err)
{
	(void)err;
	component_log(c, COMPONENT_LOG_INFO, "starting", NULL);
	while (wanted("slow-start") && access(getenv("LIFE_GO"), F_OK) < 0)
		usleep(1000);
	if (wanted("late") && daemon(1, 1) < 0)
		return -errno;
	if (wanted("hold"))
		component_hold(c, "endless work");
	if (wanted("child"))
		fork_waiting_child(c);
	if (wanted("drive"))
		fork_driving_child(c);
	if (wanted("exec"))
		run_shell();
	if (wanted("ignore-pipe-write"))
		write_to_broken_pipe(c);
	if (wanted("chatter"))
		component_post(c, chatter, NULL);
	if (wanted("stick"))
		component_post(c, stick, NULL);
	component_log(c, COMPONENT_LOG_INFO, "started", NULL);
	return 0;
}

static int
reload(struct component *c, struct component_error *err)
{
	if (wanted("bad-reload")) {
		component_error_set(err, "rules.conf:3: what is this");
		return -EINVAL;
	}
	component_log(c, COMPONENT_LOG_INFO, "daemon reloads", NULL);
	return 0;
}

static void
stop(struct component *c)
{
	component_log(c, COMPONENT_LOG_INFO, "daemon stops", NULL);
}

int
main(int argc, char **argv)
{
	struct component_spec spec = COMPONENT_SPEC(.name = "life-daemon", .summary = "A daemon.",
		.version = "1", .start = start, .reload = reload, .stop = stop);
	struct component_error err = COMPONENT_ERROR_INIT;
	struct component      *c = NULL;
	struct pollfd          ready = { -1, POLLIN, 0 };
	int                    status = 1;

	if (wanted("leave-term"))
		spec.signals = COMPONENT_SIGNAL_TERM;
	if (wanted("own-hup"))
		signal(SIGHUP, on_own_hup);
	if (component_new(&spec, &c, &err) < 0 || component_parse(c, argc, argv, &err) != 0 ||
		component_signals_install(c, &err) < 0)
		goto out;
	if (wanted("daemonize") && daemon(1, 1) < 0)
		goto out;
	if (wanted("usr1"))
		component_on_signal(c, COMPONENT_SIGNAL_USR1, on_usr1, argv[0]);
	if (component_start(c, &err) < 0)
		goto out;
	ready.fd = component_fd(c);
	while (!component_finished(c, &status)) {
		poll(&ready, 1, -1);
		if (component_dispatch(c) < 0)
			break;
	}
out:
	if (err.text[0])
		fprintf(stderr, "%s: %s\n", argv[0], err.text);
	component_finished(c, &status);
	component_free(c);
	return status;
}
