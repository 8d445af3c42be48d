/*
 * notify.h - telling the service manager: ready, reloading, stopping, alive.
 */
#ifndef LIFECYCLE_NOTIFY_H
#define LIFECYCLE_NOTIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

struct notify {
	struct sockaddr_un address;
	socklen_t          size;        /* 0: nobody to tell */
	int64_t            watchdog_ns; /* 0: nobody waits for a sign of life */
};

/* Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID; leaves them as they are.
 * -EINVAL: one of them makes no sense, and *ret_name is its name. */
int notify_init(struct notify *n, const char **ret_name);

/* One datagram: "READY=1\nSTATUS=..."; 0 or a negative errno.  Nobody to tell: 0. */
int notify_send(const struct notify *n, const char *state);

#endif
