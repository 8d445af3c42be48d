/*
 * evhttp_why.c - a small server on libevent's evhttp, with the guards that evhttp offers, for
 * what no guard mends: tests/http/evhttp_why.t.
 *
 *     evhttp_why version          of libevent, and the file it is in
 *     evhttp_why serve PATH       listens on that unix socket; obeys lines, see on_line()
 *     evhttp_why faults REQUEST   answers that request, see requests[], once for each block
 *                                 that libevent asks for meanwhile and is refused
 *
 * What a stranger would get wrong: only libevent's own blocks are refused
 * (event_set_mem_functions()), so what then ends the process is libevent.  Server and client
 * of "faults" are one process and meet on a unix socket, where whatever was written is there
 * at once: nothing waits, and each number gives the same end each time.
 */
#include <config.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>

#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECRET     "Bearer secret"
#define BODY_BYTES (1024 * 1024) /* as our own server allows */
#define HEAD_BYTES (64 * 1024)
#define PASSES     1000 /* of the loop, none of which waits; a request takes about five */
#define FRAMES     64

static size_t                 received; /* bytes, of all clients */
static unsigned               asked;    /* requests that could be asked for their token */
static struct evhttp_request *pending;

/* ---- the server ---- */

static void
reply(struct evhttp_request *r, int status, const char *text)
{
	evbuffer_add(evhttp_request_get_output_buffer(r), text, strlen(text));
	evhttp_add_header(evhttp_request_get_output_headers(r), "Content-Type", "text/plain; charset=utf-8");
	evhttp_send_reply(r, status, NULL, NULL);
}

static void
streamed(struct evhttp_request *r)
{
	struct evbuffer *text = evbuffer_new();

	evhttp_send_reply_start(r, 200, NULL);
	if (text) {
		evbuffer_add(text, "here\n", 5);
		evhttp_send_reply_chunk(r, text);
		evbuffer_free(text);
	}
	evhttp_send_reply_end(r);
}

static void
on_request(struct evhttp_request *r, void *arg)
{
	const char *token = evhttp_find_header(evhttp_request_get_input_headers(r), "Authorization");
	const char *path = evhttp_request_get_uri(r);

	(void)arg;
	asked++;
	if (!token || strcmp(token, SECRET)) {
		reply(r, 401, "who are you?\n");
	} else if (!strncmp(path, "/pending", 8)) {
		pending = r;
		/* The only way to read that a client has left. */
		if (!strcmp(path, "/pending/read"))
			bufferevent_enable(evhttp_connection_get_bufferevent(evhttp_request_get_connection(r)), EV_READ);
	} else if (!strcmp(path, "/streamed")) {
		streamed(r);
	} else {
		reply(r, 200, "here\n");
	}
}

/* Where a libevent has evhttp_set_newreqcb(), a server may ask by the header. */
static int
on_header(struct evhttp_request *r, void *arg)
{
	(void)r;
	(void)arg;
	asked++;
	return 0;
}

static int
on_new_request(struct evhttp_request *r, void *arg)
{
	(void)arg;
	evhttp_request_set_header_cb(r, on_header);
	return 0;
}

static void
on_bytes(struct evbuffer *input, const struct evbuffer_cb_info *info, void *arg)
{
	(void)input;
	(void)arg;
	received += info->n_added;
}

static struct bufferevent *
on_connection(struct event_base *base, void *arg)
{
	struct bufferevent *b = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);

	(void)arg;
	if (b)
		evbuffer_add_cb(bufferevent_get_input(b), on_bytes, NULL);
	return b;
}

/* Answers on the listening socket; NULL: no memory. */
static struct evhttp *
server(struct event_base *base, int fd)
{
	void         (*set_new)(struct evhttp *, int (*)(struct evhttp_request *, void *), void *);
	struct evhttp *http = base ? evhttp_new(base) : NULL;

	if (!http)
		return NULL;
	evhttp_set_max_headers_size(http, HEAD_BYTES);
	evhttp_set_max_body_size(http, BODY_BYTES);
	evhttp_set_timeout(http, 60);
	evhttp_set_allowed_methods(http, 0xffff);
	evhttp_set_bevcb(http, on_connection, NULL);
	evhttp_set_gencb(http, on_request, NULL);
	*(void **)&set_new = dlsym(RTLD_DEFAULT, "evhttp_set_newreqcb");
	if (set_new)
		set_new(http, on_new_request, NULL);
	return evhttp_accept_socket(http, fd) ? NULL : http;
}

/* A listening unix socket, at a name of the kernel's if path is NULL. */
static int
listening(const char *path, struct sockaddr_un *ret_name, socklen_t *ret_bytes)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	*ret_name = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (path)
		strncpy(ret_name->sun_path, path, sizeof(ret_name->sun_path) - 1);
	*ret_bytes = sizeof(*ret_name);
	if (fd < 0 || bind(fd, (void *)ret_name, path ? sizeof(*ret_name) : sizeof(sa_family_t)) || listen(fd, 8) ||
	    getsockname(fd, (void *)ret_name, ret_bytes)) {
		perror("a unix socket");
		exit(2);
	}
	return fd;
}

/* ---- serve ---- */

/* "counts": what came so far.  "release": answers the request that is pending. */
static void
on_line(evutil_socket_t fd, short what, void *base)
{
	char    line[64];
	ssize_t n = read(fd, line, sizeof(line));

	(void)what;
	if (n <= 0) {
		event_base_loopbreak(base);
	} else if (!strncmp(line, "release", 7) && pending) {
		reply(pending, 200, "at last\n");
		pending = NULL;
		puts("released");
	} else {
		printf("received %zu asked %u pending %d\n", received, asked, pending != NULL);
	}
}

static int
serve(const char *path)
{
	struct event_base *base = event_base_new();
	struct sockaddr_un name;
	socklen_t          bytes;
	int                fd = listening(path, &name, &bytes);
	struct evhttp     *http = server(base, fd);
	struct event      *lines = http ? event_new(base, 0, EV_READ | EV_PERSIST, on_line, base) : NULL;

	if (!lines || event_add(lines, NULL))
		return 2;
	puts("ready");
	event_base_dispatch(base);
	event_free(lines);
	evhttp_free(http);
	event_base_free(base);
	return 0;
}

/* ---- faults ---- */

static const struct {
	const char *name, *before, *text;
} requests[] = {
	{ "get", "", "GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: " SECRET "\r\n\r\n" },
	{ "again", "GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: " SECRET "\r\n\r\n",
	  "GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: " SECRET "\r\n\r\n" },
	{ "post", "", "POST / HTTP/1.1\r\nHost: localhost\r\nAuthorization: " SECRET "\r\nContent-Length: 5\r\n\r\n0x1+2" },
	{ "streamed", "", "GET /streamed HTTP/1.1\r\nHost: localhost\r\nAuthorization: " SECRET "\r\n\r\n" },
	{ "refused", "", "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" },
};

enum end { ANSWERED, CLOSED = 10, LEFT, UNUSED };

static long blocks, refused_block;

static bool
is_refused(void)
{
	return refused_block && ++blocks == refused_block;
}

static void *
block_new(size_t bytes)
{
	return is_refused() ? NULL : malloc(bytes);
}

static void *
block_resized(void *old, size_t bytes)
{
	return is_refused() ? NULL : realloc(old, bytes);
}

/* Says in which object, and where in it, the process came to its end; libc is not to blame
 * for what it was handed. */
static void
on_crash(int number)
{
	void   *frames[FRAMES];
	Dl_info own = { 0 }, libc = { 0 }, at;

	dladdr((void *)on_crash, &own);
	dladdr((void *)raise, &libc);
	for (int i = 0, n = backtrace(frames, FRAMES); i < n; i++)
		if (dladdr(frames[i], &at) && at.dli_fbase != libc.dli_fbase && (at.dli_fbase != own.dli_fbase || i)) {
			printf("%ld signal %d in %s+%#zx\n", refused_block, number, at.dli_fname,
			       (size_t)((char *)frames[i] - (char *)at.dli_fbase));
			break;
		}
	fflush(stdout);
	signal(number, SIG_DFL);
	raise(number);
}

/* What is to be had without waiting, after a few passes of the loop: whether it is a whole
 * reply; LEFT if neither that nor the end of the connection has come. */
static enum end
exchange(struct event_base *base, int client, const char *text)
{
	char   got[4096];
	size_t have = 0;

	if (write(client, text, strlen(text)) != (ssize_t)strlen(text))
		return CLOSED;
	for (int i = 0; i < PASSES; i++) {
		ssize_t n = recv(client, got + have, sizeof(got) - 1 - have, MSG_DONTWAIT);

		if (!n)
			return CLOSED;
		have += n > 0 ? (size_t)n : 0;
		got[have] = '\0';
		if (strstr(got, "here\n") || strstr(got, "who are you?\n"))
			return ANSWERED;
		event_base_loop(base, EVLOOP_NONBLOCK);
	}
	return LEFT;
}

/* In a child.  Never returns. */
static void
answer_refusing(size_t request, long number)
{
	struct sigaction   crashed = { .sa_handler = on_crash };
	struct event_base *base = event_base_new();
	struct sockaddr_un name;
	socklen_t          bytes;
	int                fd = listening(NULL, &name, &bytes);
	int                client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	void              *frame;
	enum end           end;

	backtrace(&frame, 1); /* loads what it needs */
	sigaction(SIGSEGV, &crashed, NULL);
	sigaction(SIGABRT, &crashed, NULL);
	if (!server(base, fd) || connect(client, (void *)&name, bytes) ||
	    (*requests[request].before && exchange(base, client, requests[request].before)))
		_exit(2);
	refused_block = number;
	end = exchange(base, client, requests[request].text);
	_exit(blocks < number ? UNUSED : (int)end);
}

static void
say_nothing(int severity, const char *text)
{
	(void)severity;
	(void)text;
}

static int
faults(size_t request)
{
	static const char *const names[] = { [0] = "answered", [CLOSED] = "closed", [LEFT] = "left" };
	int                      status;
	pid_t                    pid;

	event_set_log_callback(say_nothing);
	event_set_mem_functions(block_new, block_resized, free);
	for (long number = 1;; number++) {
		pid = fork();
		if (!pid)
			answer_refusing(request, number);
		if (pid < 0 || waitpid(pid, &status, 0) != pid)
			return 2;
		if (WIFEXITED(status) && WEXITSTATUS(status) == UNUSED)
			return 0;
		if (WIFEXITED(status))
			printf("%ld %s\n", number, WEXITSTATUS(status) <= LEFT && names[WEXITSTATUS(status)] ?
			       names[WEXITSTATUS(status)] : "exit");
	}
}

int
main(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : "";
	Dl_info     info;

	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_DUMPABLE, 0); /* no core file */
	if (!strcmp(word, "version")) {
		printf("%s %s\n", event_get_version(), dladdr((void *)evhttp_new, &info) ? info.dli_fname : "?");
		return 0;
	}
	if (!strcmp(word, "serve") && argc == 3)
		return serve(argv[2]);
	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]) && argc == 3 && !strcmp(word, "faults"); i++)
		if (!strcmp(requests[i].name, argv[2]))
			return faults(i);
	fputs("usage: see evhttp_why.c\n", stderr);
	return 2;
}
