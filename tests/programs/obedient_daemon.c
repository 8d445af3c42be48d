/*
 * obedient_daemon.c - a daemon that tests tell what to do.
 *
 * It calls itself TELL_NAME, "subject" otherwise.  TELL_COMMANDS names a
 * fifo; each line in it is done on the loop and answered by a log line "did":
 *
 *     block MS     the loop hangs
 *     until FILE   the loop hangs until there is one
 *     stick FILE   the check "work" hangs until there is one
 *     unready WHY  the check "work" fails; "ready" lets it pass again
 *     fork         a worker that does nothing but wait; the line has its pid
 *     second ADDR  another component of this process serves health there; "second-end" ends it
 *     hold         work that a graceful stop waits for; "release" ends it
 *
 * TELL_SLOW_START names a file that spec.start() waits for.  With TELL_SECOND_THREAD all of it
 * is in another thread than the first one, which ends.
 */
#include <config.h>

#include <component/component.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

static char        unready[128], stuck[128];
static const char *password = "", *greeting = "hello";

static const struct component_flag flags[] = {
	COMPONENT_FLAG_STRING("password", &password, "What nobody may see.", .section = "Subject",
		.bits = COMPONENT_FLAG_SECRET),
	COMPONENT_FLAG_STRING("greeting", &greeting, "What its section of /statusz says.", .section = "Subject"),
	COMPONENT_FLAG_END
};

static void
hang(long ms)
{
	struct timespec left = { ms / 1000, ms % 1000 * 1000000 };

	while (nanosleep(&left, &left) < 0 && errno == EINTR)
		;
}

static void
until(const char *path)
{
	while (access(path, F_OK) < 0)
		hang(10);
}

static int
check_work(struct component *c, void *arg, struct component_error *err)
{
	(void)c;
	(void)arg;
	if (*stuck)
		until(stuck);
	if (!*unready)
		return 0;
	component_error_set(err, "%s", unready);
	return -EAGAIN;
}

static struct component *second;

static void
second_start(char *address)
{
	static const struct component_spec spec = COMPONENT_SPEC(.name = "second", .summary = "Beside another.");
	static char                        name[] = "second", option[] = "--health-probe-bind-address";
	char                              *argv[] = { name, option, address, NULL };
	struct component_error             err = COMPONENT_ERROR_INIT;

	if (component_new(&spec, &second, &err) < 0 || component_use(second, component_health(), &err) < 0 ||
		component_parse(second, 3, argv, &err) != 0 || component_start(second, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		abort();
	}
}

static void
do_line(struct component *c, char *line)
{
	char *word = strtok(line, " "), *rest = strtok(NULL, ""), number[32] = "";

	if (!word)
		return;
	component_log(c, COMPONENT_LOG_DEBUG, "heard", "what", word, NULL);
	if (strcmp(word, "block") == 0) {
		hang(atol(rest));
	} else if (strcmp(word, "until") == 0) {
		until(rest);
	} else if (strcmp(word, "stick") == 0) {
		snprintf(stuck, sizeof(stuck), "%s", rest);
	} else if (strcmp(word, "unready") == 0) {
		snprintf(unready, sizeof(unready), "%s", rest);
	} else if (strcmp(word, "ready") == 0) {
		*unready = '\0';
	} else if (strcmp(word, "hold") == 0) {
		component_hold(c, "subject");
	} else if (strcmp(word, "release") == 0) {
		component_release(c, "subject");
	} else if (strcmp(word, "second") == 0) {
		second_start(rest);
	} else if (strcmp(word, "second-end") == 0) {
		component_free(second);
	} else if (strcmp(word, "fork") == 0) {
		pid_t parent = getpid(), pid = fork();

		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			while (getppid() == parent)
				pause();
			_exit(0);
		}
		snprintf(number, sizeof(number), "%d", (int)pid);
	}
	component_log(c, COMPONENT_LOG_INFO, "did", "what", word, "pid", number, NULL);
}

static void
on_commands(struct component *c, int fd, uint32_t events, void *arg)
{
	static char   line[256];
	static size_t used;
	char          byte;

	(void)events;
	(void)arg;
	while (read(fd, &byte, 1) == 1) {
		if (byte != '\n' && used < sizeof(line) - 1) {
			line[used++] = byte;
			continue;
		}
		line[used] = '\0';
		used = 0;
		do_line(c, line);
	}
}

static int
start(struct component *c, struct component_error *err)
{
	const char *path = getenv("TELL_COMMANDS"), *slow = getenv("TELL_SLOW_START");
	int         fd;

	(void)err;
	if (slow)
		until(slow);
	if (!path)
		return 0;
	/* For writing too, so that it never reads as ended. */
	fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return component_watch_add(c, fd, EPOLLIN, on_commands, NULL, NULL);
}

static void
greet(struct component *c, struct component_status *to, void *arg)
{
	(void)c;
	(void)arg;
	component_status_row(to, "greeting", "%s", greeting);
	component_status_row(to, "characters", "%zu", strlen(greeting));
}

static int
init(struct component *c, void **ret_state, struct component_error *err)
{
	(void)ret_state;
	(void)err;
	if (component_status_add(c, "Greeting", greet, NULL) < 0 || component_status_add(c, "Greeting", greet, NULL) != -EEXIST ||
		component_status_add(c, "Health", greet, NULL) != -EEXIST ||
		component_status_add(c, "A section whose title is longer than others are, since it is a sentence", greet, NULL) < 0)
		return -EINVAL;
	return component_check_add(c, "work", check_work, NULL);
}

static const struct component_part *
subject_part(void)
{
	static const struct component_part part = { .size = sizeof(part), .name = "subject", .init = init };

	return &part;
}

static component_part_fn *const parts[] = { subject_part, NULL };
static struct component_spec    spec = COMPONENT_SPEC(
	.name = "subject", .summary = "Does what tests tell it.", .version = "0", .flags = flags,
	.parts = parts, .start = start);
static int                      count;

static void *
run_all(void *argv)
{
	exit(component_main(&spec, count, argv));
}

int
main(int argc, char **argv)
{
	pthread_t thread;

	count = argc;
	if (getenv("TELL_NAME"))
		spec.name = getenv("TELL_NAME");
	if (getenv("TELL_SECOND_THREAD") && pthread_create(&thread, NULL, run_all, argv) == 0)
		pthread_exit(NULL);
	run_all(argv);
}
