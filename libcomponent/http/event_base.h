/*
 * event_base.h - libevent's event_base, whose descriptors are known by number.
 */
#ifndef HTTP_EVENT_BASE_H
#define HTTP_EVENT_BASE_H

#include <stdbool.h>

#include <event2/event.h>

#define HTTPD_BASE_FDS 3 /* libevent's own: an epoll and both ends of a pipe */

/* fds: -1 where it is not certain, and nothing but on success. */
int  httpd_base_new(struct event_base **ret, int fds[HTTPD_BASE_FDS]);

/* Marks an epoll by a socket of ours, which it will not tell of. */
int  httpd_epoll_mark(int epoll, int mark);
bool httpd_epoll_is_marked(int epoll, int mark); /* mark must be ours; nothing changes anywhere */

/* *e may be NULL, and is so afterwards. */
static inline void
httpd_event_free(struct event **e)
{
	if (*e)
		event_free(*e);
	*e = NULL;
}

#endif
