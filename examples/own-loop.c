/*
 * own-loop.c - a filter with a poll loop and signals of its own: a component is one more descriptor in the loop.
 *
 * A component that is driven like this has no signal handler.  The filter blocks the signals that it
 * knows, before there is any other thread, and reads them from a descriptor.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <component/component.h>

static int
signals_open(void)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigaddset(&signals, SIGUSR1);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	return signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void
signals_read(struct component *c, int fd)
{
	struct signalfd_siginfo signal;

	if (read(fd, &signal, sizeof(signal)) != sizeof(signal))
		return;
	if (signal.ssi_signo == SIGHUP)
		component_signalled(c, COMPONENT_SIGNAL_HUP); /* reads its options again */
	else if (signal.ssi_signo == SIGUSR1)
		component_signalled(c, COMPONENT_SIGNAL_USR1); /* profiling on, or off */
	else
		component_stop(c);
}

/* A signal of the profiler's may end a write in its middle. */
static bool
write_all(const char *data, ssize_t size)
{
	ssize_t n;

	for (; size > 0; data += n, size -= n) {
		n = write(STDOUT_FILENO, data, (size_t)size);
		if (n < 0)
			return false;
	}
	return true;
}

/* The filter's own work.  False: it is done, or has failed, which is the exit status. */
static bool
copy_block(struct component *c)
{
	static char            block[65536];
	struct component_error err;
	ssize_t                size = read(STDIN_FILENO, block, sizeof(block));

	if (size > 0 && write_all(block, size))
		return true;
	if (size != 0) {
		component_error_set(&err, "cannot copy: %s", strerror(errno));
		component_fail(c, &err);
	}
	return false;
}

static void
run(struct component *c, int signals)
{
	struct pollfd fds[] = {
		{ .fd = component_fd(c), .events = POLLIN },
		{ .fd = signals, .events = POLLIN },
		{ .fd = STDIN_FILENO, .events = POLLIN },
	};

	while (!component_finished(c, NULL)) {
		if (poll(fds, 3, -1) < 0)
			continue;
		if (fds[1].revents)
			signals_read(c, signals);
		if (fds[2].revents && !copy_block(c)) {
			component_stop(c);
			fds[2].fd = -1;
		}
		component_dispatch(c);
	}
}

int
main(int argc, char **argv)
{
	static const struct component_spec spec = COMPONENT_SPEC(.name = "own-loop", .summary = "Copies input to output.");
	struct component_error err = COMPONENT_ERROR_INIT;
	struct component *c = NULL;
	int signals = signals_open(), status = 1, r;

	r = component_new(&spec, &c, &err);
	if (r == 0)
		r = component_use(c, component_profiling(), &err);
	if (r == 0)
		r = component_parse(c, argc, argv, &err);
	if (r == 0)
		r = component_start(c, &err);
	if (r < 0)
		fprintf(stderr, "%s\n", err.text);
	else if (r > 0)
		printf("%s\n", component_flags_output(component_flags(c))); /* --help and the like */
	else
		run(c, signals);
	component_finished(c, &status);
	component_free(c);
	return status;
}
