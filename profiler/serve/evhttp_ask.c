/*
 * evhttp_ask.c - what is asked on a program's own evhttp, copied: the request belongs to the
 * program's loop and may go at any moment.
 *
 * What a stranger would get wrong: libevent has read the request by rules of its own.  What
 * our port would not have taken (two Host headers, which two readers could tell apart; more
 * headers than anybody sends) is refused here with the port's status.
 *
 * Tests: tests/serve/evhttp.t.
 */
#include <config.h>

#include "evhttp_ask.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/http_struct.h>
#include <event2/keyvalq_struct.h>

#include "listen.h"

#pragma weak evhttp_connection_get_bufferevent
#pragma weak evhttp_request_get_command
#pragma weak evhttp_request_get_connection
#pragma weak evhttp_request_get_evhttp_uri
#pragma weak evhttp_request_get_input_buffer
#pragma weak evhttp_request_get_input_headers
#pragma weak evhttp_uri_get_query

/* Who has asked, and where: at a loopback address Host is looked at, whatever else the listener
 * hears; where it cannot be told, too.  A unix socket is out of reach of a page. */
static void
ends_read(int fd, char peer[ASK_PEER_BYTES], bool *ret_loopback)
{
	struct sockaddr_storage a = { .ss_family = AF_UNIX };
	socklen_t               size = sizeof(a);

	getpeername(fd, (struct sockaddr *)&a, &size);
	ask_peer_format(&a, peer);
	size = sizeof(a);
	*ret_loopback = getsockname(fd, (struct sockaddr *)&a, &size) ||
		(a.ss_family != AF_UNIX && listen_is_loopback((struct sockaddr *)&a));
}

static enum ask_method
method_of(enum evhttp_cmd_type command)
{
	return command == EVHTTP_REQ_GET ? ASK_GET : command == EVHTTP_REQ_HEAD ? ASK_HEAD :
	       command == EVHTTP_REQ_POST ? ASK_POST : ASK_OTHER;
}

/* What the rules ask for.  0, or the status that httpd would refuse such headers with. */
static int
headers_read(const struct evkeyvalq *headers, struct ask *ask)
{
	const struct {
		const char  *name;
		const char **value;
	} wanted[] = { { "Host", &ask->host }, { "Authorization", &ask->authorization }, { "Origin", &ask->origin },
		{ "Accept", &ask->accept }, { "Accept-Encoding", &ask->accept_encoding }, { "User-Agent", &ask->user_agent } };
	size_t bytes = 0;
	int    count = 0, hosts = 0;

	for (const struct evkeyval *header = headers->tqh_first; header; header = header->next.tqe_next) {
		bytes += strlen(header->key) + strlen(header->value);
		count++;
		hosts += !strcasecmp(header->key, "Host");
		for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
			if (!*wanted[i].value && !strcasecmp(header->key, wanted[i].name))
				*wanted[i].value = header->value;
	}
	if (count > HTTPD_HEADERS_MAX || bytes > HTTPD_HEADER_BYTES_MAX)
		return 431;
	return hosts > 1 ? 400 : 0;
}

struct evhttp_ask *
evhttp_ask_copy(struct evhttp_request *request, const char *path, const char *prefix)
{
	struct evhttp_connection *connection = evhttp_request_get_connection(request);
	struct evbuffer          *body = evhttp_request_get_input_buffer(request);
	struct evhttp_ask        *a;
	const struct evhttp_uri  *uri = evhttp_request_get_evhttp_uri(request);
	struct ask                ask = { .query = evhttp_uri_get_query(uri), .prefix = prefix };
	const char              **texts[] = { &ask.query, &ask.prefix, &ask.host, &ask.authorization, &ask.origin,
		&ask.accept, &ask.accept_encoding, &ask.user_agent };
	int                       refused = headers_read(evhttp_request_get_input_headers(request), &ask);
	size_t                    taken, size = 0;
	char                     *at;

	ask.method = method_of(evhttp_request_get_command(request));
	ask.body_size = ask.method == ASK_POST ? evbuffer_get_length(body) : 0;
	taken = ask.body_size <= HTTPD_BODY_BYTES_MAX ? ask.body_size : 0; /* of more the size is enough */
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		size += *texts[i] ? strlen(*texts[i]) + 1 : 0;
	a = malloc(sizeof(*a) + size + taken);
	if (!a)
		return NULL;
	at = a->text;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (*texts[i]) {
			char *kept = at;

			at = stpcpy(kept, *texts[i]) + 1;
			*texts[i] = kept;
		}
	evbuffer_copyout(body, at, taken);
	ask.body = at;
	ends_read(bufferevent_getfd(evhttp_connection_get_bufferevent(connection)), a->peer, &ask.loopback);
	ask.peer = a->peer;
	ask.path = a->path = ask_path_decode(path);
	a->refused = refused ? refused : a->path ? 0 : 400;
	a->ask = ask;
	return a;
}

void
evhttp_ask_free(struct evhttp_ask *a)
{
	free(a->path);
	free(a);
}
