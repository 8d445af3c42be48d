/*
 * listen.h - from an address to listening sockets, all of them, before ready.
 *
 * "localhost" is every address it resolves to, ":PORT" is dual stack, unix
 * sockets are made with mode 0600 and stale ones replaced, fd:NAME comes from
 * systemd.  A busy port is told with its owner where /proc lets us see it.
 */
#ifndef BASE_LISTEN_H
#define BASE_LISTEN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <component/error.h>

#include "address.h"

#define LISTEN_MAX 8 /* sockets of one address: localhost has two */

struct listen_socket {
	int  fd;            /* O_CLOEXEC, non-blocking, listening, never 0 to 2; of a set it is listed (our_fd.h) */
	bool loopback;      /* reachable from this machine alone */
	bool is_unix;
	char address[300];  /* the real one: "127.0.0.1:6060", "unix:/run/x.sock" */
	char url[320];      /* "http://127.0.0.1:6060", "http+unix:/run/x.sock" */
	unsigned port;      /* 0 for unix */
	unsigned long long dev, ino; /* of a unix socket's file, to unlink only ours; 0: it has none, or it is not ours */
};

#define LISTEN_NOTE_MAX 512 /* bytes with NUL: a sentence for each of two or three failures */

struct listen_set {
	struct listen_socket sockets[LISTEN_MAX];
	size_t               count;
	char                 note[LISTEN_NOTE_MAX]; /* to log as a warning; "" if all is well */
};

/*
 * listen_open - bind and listen on all sockets of an address
 *
 * Returns 0 or a negative errno (-EADDRINUSE, ...) with nothing left open and
 * *ret untouched; err then reads "127.0.0.1:6060: Address already in use, held by
 * process 812 (nginx)" or "[fe80::1]:6060: Cannot assign requested address; ...",
 * to go behind "cannot serve profiles on ".  The caller adds which option named
 * the address.  A name with several addresses needs only one that can be had;
 * set->note tells of the others.  Blocks for a name that a resolver must be asked.
 */
int listen_open(const struct address *a, struct listen_set *ret, struct component_error *err);

/* How many sockets systemd handed over to this process (LISTEN_FDS), 0 if none. */
int listen_inherited(void);
/* Was descriptor fd of those named by a listen_open() yet?  Its name, "" if none, goes into name. */
bool listen_claimed(int fd, char *name, size_t size);
/* Do both mean one of those, as fd:3 and fd:NAME may? */
bool listen_fd_overlaps(const struct address *a, const struct address *b);

/* Is it one that this machine alone reaches?  Of IPv4 or IPv6. */
bool listen_is_loopback(const struct sockaddr *sa);

/* Removes our unix socket files. */
void listen_unlink(const struct listen_set *set);
/* Closes the sockets, too. */
void listen_close(struct listen_set *set);
/* In a forked child, which has none of the sockets; their files are the parent's. */
void listen_forked(struct listen_set *set);

/* ---- for listen_open(): each kind of address has a file; on failure listen_close() is due ---- */

/* Connections that wait for accept; a client that finds no room tries again after 1, 2, 4 s. */
#define LISTEN_BACKLOG 1024
#define LISTEN_TYPE (SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK)

int listen_open_tcp(const struct address *a, struct listen_set *set, struct component_error *err);
int listen_open_unix(const struct address *a, struct listen_set *set, struct component_error *err);
int listen_open_fd(const struct address *a, struct listen_set *set, struct component_error *err);
/* Is a connection to that path refused, or is there no such file?  Between bind(2) and listen(2) it is refused, too: a
 * file that is younger than this may be about to answer. */
#define LISTEN_YOUNG_SECONDS 3
bool listen_unix_is_dead(const char *path);
/* Still the one that it was?  Some file systems give a number that is free to the next file. */
bool listen_file_is_same(const struct stat *a, const struct stat *b);
/* Removes the sockets that dead processes have left, if pattern is a path with one %p in its last part. */
void listen_remove_dead(const char *pattern);
/* Fills in s from what the socket itself says: of IPv4 or IPv6, and of unix. */
int listen_describe_tcp(int fd, struct listen_socket *s);
int listen_describe_unix(int fd, struct listen_socket *s);

#endif
