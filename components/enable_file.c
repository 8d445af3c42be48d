/*
 * enable_file.c - the file that switches profiling while the daemon runs: a pod's annotations.
 *
 *     kubelet: ..data --rename--> inotify on the folder --+
 *                                                         +--> look --> word --> fn
 *     every 10 s -----------------------------------------+
 *
 * A pod sees its annotations as a file of a downward API volume, a line for each key, the value
 * quoted as Go's %q does:
 *
 *     component.dev/profiling="true"
 *
 * kubelet never writes into that file: it is a symbolic link into the folder "..data", a link too,
 * which is replaced by another one.  So the folder is watched, not the file.
 *
 * What a stranger would get wrong:
 * - %q has one form for each value, and letters stand for themselves: "true" is looked for as it
 *   stands, and nothing is unquoted.  A newline in a value is \n, so no value can look like a line.
 * - A file that is written in place is empty for a moment.  What is written to is looked at when
 *   its writer closes it (IN_CLOSE_WRITE), not while it grows (IN_MODIFY).
 * - The look every 10 s stays while inotify works: for folders that come later or are replaced, links
 *   that lead elsewhere, and network file systems, of which inotify tells nothing.
 * - inotify is refused more often than one would think: 128 instances for each user of a node.
 * - A file that cannot be read says nothing new: what it said before stays.
 *
 * Why no thread: while profiling is off the library has none, and the component's loop is there.
 *
 * Tests: tests/components/enable_file.t.
 */
#include <config.h>

#include "enable_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <component/duration.h>

#include "absolute_path.h"
#include "pages.h"

#define OPTION        "--profiling-enable-file"
#define LOOK_NS       COMPONENT_SECONDS(10)
#define FILE_MAX      (1 << 20) /* bytes: a pod's annotations are at most 256 KiB, and %q makes four bytes of one */
#define EVENTS_SIZE   4096      /* bytes read at once; one event with the longest name is 272 */
#define KUBELETS_LINK "..data"
#define FOLDER_EVENTS \
	(IN_CLOSE_WRITE | IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR)

/* The first that is in the file decides.  Those of Dapr are for manifests that have them already. */
static const char *const keys[] = { "component.dev/profiling", "dapr.io/enable-profiling", "dapr.io/profiling" };

/* ---- what it says ---- */

/* What stands behind "KEY=" in the line; NULL: it has another key, or is cut off in the middle. */
static const char *
value_in(const char *line, size_t size, bool has_end, const char *key, size_t *ret_size)
{
	size_t length = strlen(key);

	if (size <= length || memcmp(line, key, length) != 0 || line[length] != '=')
		return NULL;
	*ret_size = size - length - 1;
	if (!has_end && (*ret_size < 2 || line[size - 1] != '"'))
		return NULL;
	return line + length + 1;
}

static const char *
value_of(const char *text, size_t size, const char *key, size_t *ret_size)
{
	const char *value = NULL, *after = text + size;

	for (const char *line = text; line < after && !value;) {
		const char *newline = memchr(line, '\n', (size_t)(after - line)), *end = newline ? newline : after;

		value = value_in(line, (size_t)(end - line), newline != NULL, key, ret_size);
		line = newline ? newline + 1 : after;
	}
	return value;
}

/* *ret_key: which key decides. */
static enum enable_word
word_of(const char *text, size_t size, const char **ret_key)
{
	static const char yes[] = "\"true\"";

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		size_t      value_size = 0;
		const char *value = value_of(text, size, keys[i], &value_size);

		if (!value)
			continue;
		*ret_key = keys[i];
		return value_size == strlen(yes) && memcmp(value, yes, value_size) == 0 ? ENABLE_ON : ENABLE_OFF;
	}
	return ENABLE_NONE;
}

/* The bytes that were read, up to size, or a negative errno. */
static ssize_t
read_all(int fd, char *text, size_t size)
{
	size_t  used = 0;
	ssize_t n;

	while (used < size && (n = read(fd, text + used, size - used)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		used += (size_t)n;
	}
	return (ssize_t)used;
}

int
enable_file_read(const char *path, enum enable_word *ret_word, const char **ret_key, struct component_error *err)
{
	int         fd = our_fd_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0); /* a fifo would wait */
	char       *text = NULL;
	ssize_t     size = fd;
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) < 0)
		size = -errno;
	if (size >= 0 && !S_ISREG(st.st_mode)) {
		size = -EINVAL;
		component_error_set(err, OPTION "=%s is not a regular file; write the path of the file with the annotations", path);
		goto out;
	}
	if (size >= 0) {
		text = pages_map_sparse(FILE_MAX + 1);
		size = text ? read_all(fd, text, FILE_MAX + 1) : -ENOMEM;
	}
	if (size > FILE_MAX) {
		size = -EFBIG;
		component_error_set(err, OPTION "=%s is larger than %d bytes, which no annotations are; write the path of the "
			"file with the annotations", path, FILE_MAX);
		goto out;
	}
	if (size < 0)
		component_error_set(err, OPTION "=%s cannot be read: %s", path, strerror((int)-size));
	else
		*ret_word = word_of(text, (size_t)size, ret_key);
out:
	pages_unmap(text, FILE_MAX + 1);
	our_fd_close(fd);
	return size < 0 ? (int)size : 0;
}

/* ---- its folder ---- */

static void look_and_tell(struct enable_file *f);

/* May it be about our file?  Without a name it is about the folder, or events were lost. */
static bool
is_about(const struct enable_file *f, const struct inotify_event *e)
{
	return e->len == 0 || strcmp(e->name, f->name) == 0 || strcmp(e->name, KUBELETS_LINK) == 0;
}

/* Other files of the folder may be busy: what is left comes with the next dispatch. */
static void
on_events(struct component *c, int fd, uint32_t events, void *arg)
{
	char                buffer[EVENTS_SIZE] __attribute__((aligned(__alignof__(struct inotify_event))));
	struct enable_file *f = arg;
	ssize_t             size = read(fd, buffer, sizeof(buffer));
	bool                is_ours = false;

	(void)c;
	(void)events;
	for (ssize_t at = 0; at < size;) {
		const struct inotify_event *e = (const void *)(buffer + at);

		is_ours = is_ours || is_about(f, e);
		at += (ssize_t)(sizeof(*e) + e->len);
	}
	if (is_ours)
		look_and_tell(f);
}

static int
notify_open(struct enable_file *f)
{
	int r = our_fd_keep_inotify(&f->notify);

	f->pid = getpid();
	if (r >= 0)
		r = component_watch_add(f->c, f->notify.fd, EPOLLIN, on_events, f, &f->watch);
	if (r < 0)
		our_fd_kept_close(&f->notify);
	return r;
}

static bool
is_missing(int r)
{
	return r == -ENOENT || r == -ENOTDIR;
}

/* Each time anew, since another folder may have its name by now; one that is watched already stays so. */
static void
folder_watch(struct enable_file *f)
{
	int r = f->notify.fd < 0 ? notify_open(f) : 0, watch = -1;

	if (r >= 0) {
		watch = inotify_add_watch(f->notify.fd, f->folder, FOLDER_EVENTS);
		r = watch < 0 ? -errno : 0;
		if (f->folder_watch >= 0 && f->folder_watch != watch)
			inotify_rm_watch(f->notify.fd, f->folder_watch);
	}
	f->folder_watch = watch;
	if (is_missing(r))
		r = 0; /* that is told of the file */
	if (r < 0 && r != f->refused)
		component_log(f->c, COMPONENT_LOG_INFO, "the folder of " OPTION " cannot be watched; the file is looked at every 10 s",
			"folder", f->folder, "error", strerror(-r), NULL);
	f->refused = r;
}

/* ---- together ---- */

/* Watched before it is read, so that no change is missed. */
static void
look(struct enable_file *f)
{
	struct component_error why = COMPONENT_ERROR_INIT;
	int                    r;

	folder_watch(f);
	r = enable_file_read(f->path, &f->word, &f->key, &why);
	if (is_missing(r))
		f->word = ENABLE_NONE;
	if (f->word == ENABLE_NONE)
		f->key = NULL;
	if (r < 0 && r != f->told && is_missing(r))
		component_log(f->c, COMPONENT_LOG_INFO, "the file of " OPTION " is not there; it may come later", "file", f->path, NULL);
	else if (r < 0 && r != f->told)
		component_log(f->c, COMPONENT_LOG_WARNING, why.text, NULL);
	f->told = r;
}

static void
look_and_tell(struct enable_file *f)
{
	enum enable_word before = f->word;

	look(f);
	if (f->word != before)
		f->fn(f->c, f->arg);
}

static void
on_time(struct component *c, void *arg)
{
	(void)c;
	look_and_tell(arg);
}

void
enable_file_init(struct enable_file *f, struct component *c, component_fn *fn, void *arg)
{
	*f = (struct enable_file){ .c = c, .fn = fn, .arg = arg, .notify = { .fd = -1 }, .folder_watch = -1 };
}

/* The names of path, and a timer; on failure some may be there. */
static int
begin(struct enable_file *f, const char *path)
{
	const char *slash;

	f->option = strdup(path);
	f->path = absolute_path(path);
	slash = f->path ? strrchr(f->path, '/') : NULL;
	f->folder = !slash ? strdup(".") : slash == f->path ? strdup("/") : strndup(f->path, (size_t)(slash - f->path));
	if (!f->option || !f->path || !f->folder)
		return -ENOMEM;
	f->name = slash ? slash + 1 : f->path;
	return component_timer_add(f->c, LOOK_NS, LOOK_NS, on_time, f, &f->timer);
}

void
enable_file_follow(struct enable_file *f, const char *path)
{
	int r = 0;

	if (!f->option || !path || strcmp(f->option, path) != 0) {
		enable_file_end(f);
		if (!path || !*path)
			return;
		r = begin(f, path);
	}
	if (r < 0) {
		component_log(f->c, COMPONENT_LOG_WARNING, OPTION " cannot be followed", "file", path, "error", strerror(-r), NULL);
		enable_file_end(f);
	} else {
		look(f);
	}
}

void
enable_file_end(struct enable_file *f)
{
	component_timer_remove(f->timer);
	component_watch_remove(f->watch);
	if (f->pid == getpid()) /* a forked child has closed it, and may have its number for itself */
		our_fd_kept_close(&f->notify);
	free(f->option);
	free(f->path);
	free(f->folder);
	enable_file_init(f, f->c, f->fn, f->arg);
}
