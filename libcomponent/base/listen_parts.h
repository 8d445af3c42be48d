/*
 * listen_parts.h - what the files behind listen.h share.
 */
#ifndef BASE_LISTEN_PARTS_H
#define BASE_LISTEN_PARTS_H

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "listen.h"

#define LISTEN_BACKLOG 1024 /* connections waiting for accept, for whom there is no room the client tries again in 1, 2, 4 s */
#define LISTEN_TYPE (SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK)
#define LISTEN_OWNER_MAX 160 /* bytes with NUL: "process 4194304 (/usr/sbin/nginx)" */

int listen_open_tcp(const struct address *a, struct listen_set *set, struct component_error *err);
int listen_open_unix(const struct address *a, struct listen_set *set, struct component_error *err);
int listen_open_fd(const struct address *a, struct listen_set *set, struct component_error *err);
/* Fills address, url, port and the rest from what the socket itself says. */
int listen_describe(int fd, struct listen_socket *s);

/* Who listens on this port; "" when /proc does not tell. */
void listen_owner_tcp(const struct sockaddr *sa, char *buf, size_t size);
void listen_owner_pid(pid_t pid, char *buf, size_t size);

#endif
