/*
 * answer.h - one answer, whatever door it was asked for at.
 *
 *     the port                   reply.c       struct answer { what is asked, four functions }
 *     a program's own evhttp     evhttp_door.c       ──>  begin(status, headers)  write ... end
 *     a descriptor               answer_fd.c                                             or abort
 *
 * A door makes a struct answer, says in it what is asked, and hands it over.  Whoever
 * answers knows nothing else of the door, and answers exactly once: begin, any number of
 * writes, end; or abort, at any time, which the client sees as a reply that is not whole.
 * end and abort free the answer.
 *
 * What a stranger would get wrong:
 * - begin and write never wait, except at a descriptor: what the client has not taken is
 *   queued.  write says how much that is; who has more waits for on_drain.
 * - A client that has left is no error.  The answer stays valid, takes what is written to
 *   nowhere, and must still be ended.
 * - HEAD is the door's: who answers writes the body as for GET, and the door drops it.
 *
 *   threads  the server's alone, from which on_hangup, on_gone and on_drain are called, too;
 *            an answer to a descriptor has no such calls and may be used on any one thread
 *
 * Tests: tests/http/protocol.t, tests/http/limits.t, tests/serve/evhttp.t, tests/serve/test_profile_write.c.
 */
#ifndef HTTP_ANSWER_H
#define HTTP_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define ANSWER_QUEUE_BYTES_MAX (256 * 1024) /* who writes waits above it */
#define ANSWER_STALL_SECONDS   60           /* who takes nothing for so long is cut off; evhttp has its own time */

#define ANSWER_TEXT "text/plain; charset=utf-8"

enum ask_method { ASK_GET, ASK_HEAD, ASK_POST, ASK_OTHER };

/* What is asked.  Strings are the door's and live as long as the answer; NULL: not sent. */
struct ask {
	enum ask_method method;
	const char     *method_name; /* as sent: "PUT"; NULL at other doors than the port */
	const char     *path;        /* percent-decoded, before '?' */
	const char     *query;       /* raw */
	const char     *body;
	size_t          body_size;   /* bytes */
	const char     *host, *authorization, *origin, *accept, *accept_encoding, *user_agent; /* headers */
	const char     *peer;        /* "127.0.0.1:40112" or "unix" */
	const char     *prefix;      /* what stood before path where the client asked; "" */
	bool            by_mode;     /* at a unix socket whose file we have made: its mode says who may ask */
	bool            loopback;    /* at an address that only this machine reaches, whatever else its listener hears; or it cannot be told */
	void           *tag;         /* of the listener, see httpd_listen(); NULL at other doors */
};

/* In an array whose last name is NULL. */
struct answer_header {
	const char *name, *value; /* a value has no line break: the port makes a blank of it, evhttp drops the header */
};

struct answer;
typedef void answer_fn(void *arg);

/* What a door can do; see above. */
struct answer_sink {
	/* size: of the body in bytes; -1: not known, it ends with end. */
	void    (*begin)(struct answer *a, int status, const struct answer_header *headers, int64_t size);
	/* Returns the bytes that are queued, or, of a descriptor alone, a negative errno. */
	int64_t (*write)(struct answer *a, const void *data, size_t size);
	void    (*end)(struct answer *a);
	void    (*abort)(struct answer *a);
};

/*
 * on_hangup  the client has closed its side, or all of it: nothing more will be asked
 * on_gone    it is gone: what is written goes nowhere
 * on_drain   at most half of ANSWER_QUEUE_BYTES_MAX is queued
 *
 * Each is called at most once for each time that it is set, and is NULL meanwhile.  A client
 * that is gone makes one call: of on_gone if it is set, else of on_hangup.  A half-close cannot
 * be told from a close, so a hangup may be followed by gone when a write fails.
 */
struct answer {
	const struct answer_sink *sink;
	struct ask                ask;
	answer_fn                *on_hangup, *on_gone, *on_drain;
	void                     *arg; /* of the three */
};

/* All of it at once: never waits. */
void answer_whole(struct answer *a, int status, const struct answer_header *headers, const void *body, size_t size);
/* The client is gone: calls what is set and forgets it.  For doors; may end the answer. */
void answer_lost(struct answer *a);
const char *answer_reason(int status); /* "Not Found" */
/* Of the time of now, as a header has it. */
#define ANSWER_DATE_BYTES 40
void answer_date(char buf[ANSWER_DATE_BYTES]);
/* What '%41' and the like in text[0..n) stand for, and plus for '+'; cut to size, with a NUL.
 * Returns the bytes before that; -1: a bad escape. */
int64_t ask_decode(const char *text, size_t n, char plus, char *buf, size_t size);
/* The same of a path, malloc'd; NULL: a bad escape, a NUL, or no memory. */
char *ask_path_decode(const char *target);
#define ASK_PEER_BYTES 96 /* with NUL: "[fe80::1%2]:65535" and more */
void ask_peer_format(const struct sockaddr_storage *peer, char buf[ASK_PEER_BYTES]);

#endif
