/*
 * listen_owner.h - who holds a socket that cannot be had, as far as /proc tells.
 */
#ifndef BASE_LISTEN_OWNER_H
#define BASE_LISTEN_OWNER_H

#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

#define LISTEN_OWNER_MAX 160 /* bytes with NUL: "process 4194304 (/usr/sbin/nginx)" */

/* Who listens on this port; "" when /proc does not tell. */
void listen_owner_tcp(const struct sockaddr *sa, char *buf, size_t size);
/* Its number; 0 when /proc does not tell. */
pid_t listen_owner_process(const struct sockaddr *sa);
void listen_owner_pid(pid_t pid, char *buf, size_t size);

#endif
