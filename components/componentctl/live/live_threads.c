/*
 * live_threads.c - which threads of a process of this machine use the processors.
 *
 * By /proc/PID/task/TID/schedstat, which begins with the nanoseconds that it has run.
 *
 * Tests: tests/componentctl/top.t
 */
#include <config.h>

#include "live_threads.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"

static bool
file_read(pid_t pid, pid_t tid, const char *name, char *buf, size_t size)
{
	char    path[64];
	int     fd;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)pid, (int)tid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, buf, size - 1);
	if (fd >= 0)
		close(fd);
	buf[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* False: it has just ended. */
static bool
thread_read(pid_t pid, pid_t tid, struct live_thread *ret)
{
	char        schedstat[64], stat[512];
	const char *open_at, *close_at;
	int         n;

	if (!file_read(pid, tid, "schedstat", schedstat, sizeof(schedstat)) || !file_read(pid, tid, "stat", stat, sizeof(stat)))
		return false;
	open_at = strchr(stat, '(');
	close_at = strrchr(stat, ')');
	if (!open_at || !close_at || close_at < open_at || !close_at[1])
		return false;
	n = (int)(close_at - open_at - 1);
	*ret = (struct live_thread){ .tid = tid, .state = close_at[2], .cpu_ns = strtoll(schedstat, NULL, 10) };
	snprintf(ret->name, sizeof(ret->name), "%.*s", n, open_at + 1);
	return true;
}

static int64_t
known_ns(const struct live_threads *t, pid_t tid)
{
	for (size_t i = 0; i < t->count; i++)
		if (t->all[i].tid == tid)
			return t->all[i].cpu_ns;
	return 0;
}

static int
by_use(const void *a, const void *b)
{
	const struct live_thread *x = a, *y = b;

	return x->used_ns != y->used_ns ? (x->used_ns < y->used_ns) - (x->used_ns > y->used_ns) : (x->tid > y->tid) - (x->tid < y->tid);
}

static int
thread_add(struct live_threads *t, const struct live_thread *l)
{
	size_t              room = t->room ? 2 * t->room : 64;
	struct live_thread *more = t->count < t->room ? t->all : reallocarray(t->all, room, sizeof(*more));

	if (!more)
		return -ENOMEM;
	t->room = t->count < t->room ? t->room : room;
	t->all = more;
	t->all[t->count++] = *l;
	return 0;
}

int
live_threads_look(struct live_threads *t, pid_t pid)
{
	struct live_threads now = { .all = NULL, .at_ns = clock_ns(CLOCK_MONOTONIC) };
	struct dirent      *e;
	char                path[32];
	DIR                *dir;
	int                 err = 0;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? -ESRCH : -errno;
	while (!err && (e = readdir(dir))) {
		struct live_thread l;

		if (atoi(e->d_name) <= 0 || !thread_read(pid, (pid_t)atoi(e->d_name), &l))
			continue;
		l.used_ns = t->at_ns ? l.cpu_ns - known_ns(t, l.tid) : 0;
		err = thread_add(&now, &l);
	}
	closedir(dir);
	now.passed_ns = t->at_ns ? now.at_ns - t->at_ns : 0;
	if (now.count)
		qsort(now.all, now.count, sizeof(*now.all), by_use);
	live_threads_release(t);
	*t = now;
	return err;
}

void
live_threads_print(const struct live_threads *t, size_t most, struct text *out)
{
	text_add(out, "%10s %6s  %-5s %s\n", "TID", "CPU", "STATE", "NAME");
	for (size_t i = 0; i < t->count && i < most; i++) {
		const struct live_thread *l = &t->all[i];

		text_add(out, "%10d %5.1f%%  %-5c ", (int)l->tid, t->passed_ns ? 100.0 * (double)l->used_ns / (double)t->passed_ns : 0.0,
			l->state);
		text_add_visible(out, l->name, sizeof(l->name));
		text_add(out, "\n");
	}
}

void
live_threads_release(struct live_threads *t)
{
	free(t->all);
	*t = (struct live_threads){ .all = NULL };
}
