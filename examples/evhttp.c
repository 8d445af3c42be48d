/* evhttp.c - a web server with libevent; two lines make its own port answer "go tool pprof" too. */
#include <signal.h>
#include <stdlib.h>
#include <component/evhttp.h>
#include <component/profiler.h>
#include <event2/buffer.h>
#include <event2/event.h>

static void page(struct evhttp_request *request, void *name)
{
	evbuffer_add_printf(evhttp_request_get_output_buffer(request), "this is %s\n", (char *)name);
	evhttp_send_reply(request, HTTP_OK, NULL, NULL);
}

int main(int argc, char **argv) /* evhttp PORT */
{
	struct event_base *base = event_base_new();
	struct evhttp *http = evhttp_new(base);

	signal(SIGPIPE, SIG_IGN);
	component_evhttp_mount(http, "", page, argv[0], NULL); /* instead of evhttp_set_gencb(http, page, argv[0]) */
	component_profiler_start("0"); /* no port of its own */
	if (evhttp_bind_socket(http, "127.0.0.1", (unsigned short)atoi(argc > 1 ? argv[1] : "8080")) < 0)
		return 1;
	return event_base_dispatch(base) == 0 ? 0 : 1;
}
