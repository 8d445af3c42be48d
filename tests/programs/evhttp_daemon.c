/*
 * evhttp_daemon.c - a daemon with an HTTP server of its own, on which profiles are
 * mounted, driven by lines on its standard input, for tests/serve/evhttp.t.
 *
 *     evhttp_daemon [--token-file PATH] [--address ADDRESS] [--unix PATH]
 *
 * Each line is a command and is answered by one line; its loop runs in between.
 */
#include <config.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <component/evhttp.h>
#include <component/profiler.h>
#include <event2/buffer.h>
#include <event2/event.h>

static struct component_profiler_options options = COMPONENT_PROFILER_OPTIONS_INIT;
static struct event_base *base;
static struct evhttp     *http;
static const char        *unix_path;

static volatile unsigned long burned;

static void *
burner(void *arg)
{
	for (;;)
		burned++;
	return arg;
}

/* Stacks enough for a profile that no buffer holds whole. */
#define TREE_LEVELS 12

__attribute__((noinline)) static void
tree(int level, unsigned path)
{
	static void *keep;

	if (level == 0) {
		keep = realloc(keep, 64 + path % 64);
		return;
	}
	if (path & 1u << (level - 1)) {
		tree(level - 1, path);
		__asm__ volatile("# right");
	} else {
		tree(level - 1, path);
		__asm__ volatile("# left");
	}
}

static void
say(int r, const struct component_error *err)
{
	printf("%d %s\n", r, err ? err->text : "");
	fflush(stdout);
}

static void
page(struct evhttp_request *request, void *arg)
{
	(void)arg;
	evbuffer_add_printf(evhttp_request_get_output_buffer(request), "the daemon's own\n");
	evhttp_send_reply(request, HTTP_OK, "OK", NULL);
}

static int
bind_unix(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int                fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", unix_path);
	return fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) || listen(fd, 8) || evhttp_accept_socket(http, fd);
}

/* Answers the port. */
static void
do_open(void)
{
	struct evhttp_bound_socket *bound;
	struct sockaddr_storage     a;
	socklen_t                   size = sizeof(a);
	char                        text[64];

	http = evhttp_new(base);
	evhttp_set_allowed_methods(http, 0xffff);
	evhttp_set_cb(http, "/mine", page, NULL);
	bound = evhttp_bind_socket_with_handle(http, "127.0.0.1", 0);
	if (!bound || (unix_path && bind_unix()))
		exit(1);
	getsockname(evhttp_bound_socket_get_fd(bound), (struct sockaddr *)&a, &size);
	snprintf(text, sizeof(text), "%d", ntohs(((struct sockaddr_in *)&a)->sin_port));
	puts(text);
	fflush(stdout);
}

static void
do_start(void)
{
	struct component_error err = COMPONENT_ERROR_INIT;
	int                    r = component_profiler_start_options(&options, &err);

	say(r, &err);
}

static void
do_mount(const char *prefix, bool other)
{
	struct component_error err = COMPONENT_ERROR_INIT;
	int                    r = component_evhttp_mount(http, prefix, other ? page : NULL, NULL, &err);

	say(r, &err);
}

static void *
stop_run(void *arg)
{
	say(component_profiler_stop(), NULL);
	return arg;
}

/* On another thread, as the loop has to carry the last replies. */
static void
do_stop(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, stop_run, NULL);
	pthread_detach(thread);
}

/* A child that goes on with the loop, as a prefork server's would. */
static void
do_fork(void)
{
	pid_t pid;
	int   r;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		r = event_reinit(base);
		printf("%d %d\n", r, (int)getpid());
		fflush(stdout);
		close(0);
		event_base_loopexit(base, NULL);
		event_base_dispatch(base);
		pause();
	}
}

static void
command(char *line)
{
	char word[32] = "", text[256] = "";
	int  n;

	sscanf(line, "%31s %255s", word, text);
	n = atoi(text);
	if (!strcmp(word, "start"))
		do_start();
	else if (!strcmp(word, "stop"))
		do_stop();
	else if (!strcmp(word, "stophere"))
		say(component_profiler_stop(), NULL);
	else if (!strcmp(word, "open"))
		do_open();
	else if (!strcmp(word, "mount"))
		do_mount(text, true);
	else if (!strcmp(word, "mountalone"))
		do_mount(text, false);
	else if (!strcmp(word, "unmount"))
		say(component_evhttp_unmount(http), NULL);
	else if (!strcmp(word, "free")) {
		evhttp_free(http);
		say(0, NULL);
	} else if (!strcmp(word, "freebase")) { /* and all that is left in it */
		evhttp_free(http);
		event_base_free(base);
		say(0, NULL);
		component_profiler_stop();
		exit(0);
	} else if (!strcmp(word, "timeout")) {
		evhttp_set_timeout(http, n);
		say(0, NULL);
	} else if (!strcmp(word, "tree")) {
		for (unsigned path = 0; path < 1u << TREE_LEVELS; path++)
			tree(TREE_LEVELS, path);
		say(0, NULL);
	} else if (!strcmp(word, "fork"))
		do_fork();
	else
		say(-1, NULL);
}

/* One line at a time: whoever writes them waits for the answer. */
static void
on_line(evutil_socket_t fd, short what, void *arg)
{
	char    line[512];
	ssize_t n = read(fd, line, sizeof(line) - 1);

	(void)what;
	(void)arg;
	if (n <= 0) {
		event_base_loopbreak(base);
		return;
	}
	line[n] = '\0';
	command(line);
}

int
main(int argc, char **argv)
{
	struct event *lines;
	pthread_t     thread;

	options.address = "0";
	options.heap_rate_bytes = 1;
	for (int i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--token-file"))
			options.token_file = argv[i + 1];
		else if (!strcmp(argv[i], "--address"))
			options.address = argv[i + 1];
		else if (!strcmp(argv[i], "--unix"))
			unix_path = argv[i + 1];
	}
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGCHLD, SIG_IGN);
	pthread_create(&thread, NULL, burner, NULL);
	base = event_base_new();
	lines = event_new(base, 0, EV_READ | EV_PERSIST, on_line, NULL);
	event_add(lines, NULL);
	event_base_dispatch(base);
	event_free(lines);
	component_profiler_stop();
	if (http)
		evhttp_free(http);
	event_base_free(base);
	return 0;
}
