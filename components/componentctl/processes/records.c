/*
 * records.c - what has a record on this machine, oldest first.
 *
 * What a stranger would get wrong: between the look at a record and a signal the process may end
 * and its number be another's.  So it is held by a pidfd first and looked at then; where the kernel
 * has none (before 5.3), by its number.
 *
 * Tests: tests/componentctl/list.t, tests/componentctl/sd.t.
 */
#include <config.h>

#include "records.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "digits.h"
#include "utf8.h"

#ifndef SYS_pidfd_open /* headers of before 5.3; the same number everywhere */
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif

static int
take(void *arg, const struct record *r)
{
	struct records *l = arg;
	struct record  *more;

	if (l->count == l->room) {
		more = realloc(l->items, (2 * l->room + 16) * sizeof(*more));
		if (!more)
			return -ENOMEM;
		l->items = more;
		l->room = 2 * l->room + 16;
	}
	l->items[l->count++] = *r;
	return 0;
}

static int
is_before(const void *a, const void *b)
{
	const struct record *x = a, *y = b;

	return x->created != y->created ? (x->created < y->created ? -1 : 1) : (x->pid > y->pid) - (x->pid < y->pid);
}

int
records_read(struct records *ret)
{
	int r;

	*ret = (struct records){ .items = NULL };
	r = record_each(take, ret);
	if (ret->count)
		qsort(ret->items, ret->count, sizeof(*ret->items), is_before);
	return r;
}

void
records_release(struct records *r)
{
	free(r->items);
	*r = (struct records){ .items = NULL };
}

bool
records_is_on(const struct record *r)
{
	return strcmp(r->url, RECORD_URL_OFF) != 0;
}

int
records_again(const struct record *r, struct record *ret)
{
	char pid[24];

	snprintf(pid, sizeof(pid), "%ld", (long)r->pid);
	return record_find(pid, ret, NULL) || strcmp(ret->path, r->path) ? -ESRCH : 0;
}

int
records_hold(const struct record *r)
{
	return (int)syscall(SYS_pidfd_open, r->pid, 0);
}

int
records_signal(const struct record *r, int number)
{
	struct record now;
	int           fd = records_hold(r), result = records_again(r, &now);

	if (!result && (fd >= 0 ? syscall(SYS_pidfd_send_signal, fd, number, NULL, 0) : kill(r->pid, number)))
		result = -errno;
	if (fd >= 0)
		close(fd);
	return result;
}

/* The port of "http://HOST:PORT/..."; 0: it is a unix socket. */
int64_t
records_port(const struct record *r)
{
	const char *url = r->url;
	const char *host = strstr(url, "://"), *end, *colon;
	char        number[8];

	if (!host || strncmp(url, "http://", 7))
		return 0;
	end = strchr(host + 3, '/');
	end = end ? end : url + strlen(url);
	for (colon = end; colon > host + 3 && *colon != ':'; colon--)
		;
	if (*colon != ':' || (size_t)(end - colon) > sizeof(number))
		return 0;
	snprintf(number, sizeof(number), "%.*s", (int)(end - colon - 1), colon + 1);
	return digits_number(number, UINT16_MAX) > 0 ? digits_number(number, UINT16_MAX) : 0;
}

/* Its words with blanks between them; what no terminal should get is '?'. */
void
records_command(const struct record *r, char buf[RECORDS_COMMAND_MAX])
{
	char    path[32];
	ssize_t n;
	int     fd;

	snprintf(path, sizeof(path), "/proc/%ld/cmdline", (long)r->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd >= 0 ? read(fd, buf, RECORDS_COMMAND_MAX - 1) : 0;
	if (fd >= 0)
		close(fd);
	while (n > 0 && !buf[n - 1])
		n--;
	n = n < 0 ? 0 : n;
	buf[n] = '\0';
	for (ssize_t i = 0; i < n; i++)
		if (!buf[i])
			buf[i] = ' ';
	utf8_mask(buf, (size_t)n);
}
