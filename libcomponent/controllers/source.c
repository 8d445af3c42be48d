/*
 * source.c - which files below a directory may have changed: inotify, and a look.
 *
 * Every directory of the tree is watched; watched.c remembers which, and the files.
 *
 *     inotify --> on_event() --+--> a file: say its key
 *                              +--> a directory came: watch it, then scan it
 *                              +--> a directory went: say all files below it, then scan
 *                              +--> overflow, another root, an unmount, a link to a directory:
 *                                   source_rescan()
 *
 * What a stranger would get wrong:
 *
 * - A new directory is watched first and scanned after.  Files made before the
 *   watch are found by the scan, those made after it by events; some are said
 *   twice, which the queue behind us folds into one.
 * - A path in an event is as it was then.  A directory that has been renamed
 *   since fails to be watched (its next event is on the way) or turns out to
 *   have a watch already, under its old path: the new path wins, and the event
 *   about the old one finds only files to say.
 * - What has gone may be another one by now: of two names that are exchanged each
 *   comes before it goes, and after an overflow only its going may be told.  So
 *   that is an event to look, too.
 * - Files are remembered although inotify would tell of each: a directory that
 *   is renamed away takes its files along without a word about them, and after
 *   an overflow only memory can tell which have gone.
 * - A file just created empty, or being written, is not yet what its writer
 *   means; IN_CLOSE_WRITE will follow.  It is said SETTLE_NS later all the same:
 *   a linked O_TMPFILE has no such event, and some files are never closed.
 * - A file that has gone may come back in a moment: editors and git remove a file
 *   and then make it anew.  So what has gone is said SETTLE_NS later, too.
 * - Whether the root's name has another directory by now, only a look at the name can
 *   tell.  There is none where the root is on a network file system: its server may be
 *   away, and whoever looks, here the loop, would wait for it.
 * - Symbolic links below the root are files here and are never followed.  But what
 *   others show may be behind one that leads to a directory: a ConfigMap's files
 *   are links through "..data", which alone is replaced.  It leads to a name beside
 *   it, and no other kind is looked behind: anybody may plant one that leads to a
 *   server that is away.  Nor is all said anew for each of them: a reconcile that
 *   makes such a link would keep the loop busy for ever.
 *
 * Why not fanotify: one mark could watch a whole file system, but needs CAP_SYS_ADMIN.
 *
 * Tests: tests/controllers/test_source.c.
 */
#include <config.h>

#include "source.h"

#include "watched.h"
#include "our_fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "clock.h"

/* Levels below the root: recursion holds a descriptor for each. */
#define DEPTH_MAX 64
/* Bytes taken by one source_read(): about 2,000 events, a few milliseconds. */
#define SOURCE_READ_MAX (64 * 1024)
/* How long a file is left alone that is being written, or that may come back, ns. */
#define SETTLE_NS CLOCK_NS_PER_S
/* Between two looks at everything because of links to directories, ns. */
#define LINKED_NS (CLOCK_NS_PER_S * 5)

#define WATCHED (IN_CLOSE_WRITE | IN_MODIFY | IN_ATTRIB | IN_CREATE | IN_DELETE | \
	IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF)

/* Where a scan is: the path grows and shrinks in place. */
struct scan {
	size_t length;
	int    depth;
	char   path[PATH_MAX];
};

struct source {
	struct our_fd_kept notify; /* inotify */
	char     *directory;
	struct source_events events;
	struct watched watched;
	bool      remote; /* the root is on a network file system */
	bool      blind;
	bool      stale; /* look at everything when the events that are here are read */
	bool      linked; /* look at everything now and then: a link to a directory has come */
	int64_t   scanned_ns; /* when that was done last; monotonic */
	struct scan scan; /* too large for a stack; scans do not nest */
};

static void
trouble(struct source *s, const char *what, const char *path, int error)
{
	char text[PATH_MAX + 256];

	s->blind = true;
	snprintf(text, sizeof text, "%s %s%s%s: %s%s", what, s->directory, *path == '\0' ? "" : "/", path,
		strerror(error), error == ENOSPC ? "; raise /proc/sys/fs/inotify/max_user_watches" : "");
	s->events.trouble(text, s->events.arg);
}

/* Says a file that is there and remembers it. */
static void
file_say(struct source *s, const char *key, int64_t settle_ns)
{
	watched_file_see(&s->watched, key);
	s->events.changed(key, settle_ns, s->events.arg);
}

static void
on_gone(const char *key, void *arg)
{
	struct source *s = arg;

	s->events.changed(key, SETTLE_NS, s->events.arg);
}

/* Says a file that has gone and forgets it. */
static void
file_gone(struct source *s, const char *key)
{
	watched_file_forget(&s->watched, key);
	on_gone(key, s);
}

static void
on_unwatched(int wd, void *arg)
{
	inotify_rm_watch(((struct source *)arg)->notify.fd, wd);
}

/* Forgets a directory and all below it, or all that the last scan missed. */
static void
dirs_forget(struct source *s, const char *below)
{
	if (watched_dirs_forget(&s->watched, below, on_unwatched, s) != 0)
		trouble(s, "still watching what has gone in", below == NULL ? "" : below, ENOMEM);
}

/* Watches a directory under its present path. */
static int
dir_watch(struct source *s, const char *path)
{
	char *full;
	int wd;

	if (asprintf(&full, "%s/%s", s->directory, path) < 0)
		return -ENOMEM;
	wd = inotify_add_watch(s->notify.fd, full, WATCHED | IN_ONLYDIR | IN_DONT_FOLLOW * (*path != '\0'));
	free(full);
	/* Without memory the watch stays, and its events are for nobody. */
	return wd < 0 ? -errno : watched_dir_put(&s->watched, wd, path);
}

/* Is it on a file system whose server may be away? */
static bool
is_remote(int fd)
{
	static const uint32_t types[] = {
		0x6969,                             /* NFS */
		0x517b, 0xff534d42, 0xfe534d42,     /* SMB, CIFS */
		0x65735546,                         /* FUSE */
		0x01021997,                         /* 9p */
		0x00c36400,                         /* Ceph */
		0x0bd00bd0,                         /* Lustre */
		0x5346414f, 0x6b414653, 0x73757245, /* AFS, kAFS, Coda */
	};
	struct statfs fs;

	if (fstatfs(fd, &fs) != 0)
		return true;
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if ((uint32_t)fs.f_type == types[i])
			return true;
	return false;
}

static void scan_dir(struct source *s, int parent, const char *name);

static void
scan_entry(struct source *s, int fd, const struct dirent *e)
{
	size_t length = s->scan.length, n = strlen(e->d_name);
	unsigned char type = e->d_type;
	struct stat st;

	if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
		return;
	if (length + 1 + n >= sizeof s->scan.path) {
		trouble(s, "cannot watch all of", s->scan.path, ENAMETOOLONG);
		return;
	}
	if (type == DT_UNKNOWN) {
		if (fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
			return; /* gone again */
		type = S_ISDIR(st.st_mode) ? DT_DIR : DT_REG;
	}
	if (length != 0)
		s->scan.path[s->scan.length++] = '/';
	memcpy(s->scan.path + s->scan.length, e->d_name, n + 1);
	s->scan.length += n;
	if (type == DT_DIR)
		scan_dir(s, fd, e->d_name);
	else
		file_say(s, s->scan.path, 0);
	s->scan.length = length;
	s->scan.path[length] = '\0';
}

/* Watches scan.path, which is NAME in the directory parent, then reads it. */
static void
scan_dir(struct source *s, int parent, const char *name)
{
	struct dirent *e;
	int fd, r;
	DIR *d;

	if (s->scan.depth >= DEPTH_MAX) {
		trouble(s, "too many levels below", s->scan.path, ELOOP);
		return;
	}
	r = dir_watch(s, s->scan.path);
	if (s->scan.length != 0 && (r == -ENOENT || r == -ENOTDIR))
		return; /* renamed or removed since: its event is on the way */
	if (r != 0)
		trouble(s, "cannot watch", s->scan.path, -r);
	fd = our_fd_openat(parent, name, O_RDONLY | O_DIRECTORY | (s->scan.length == 0 ? 0 : O_NOFOLLOW), 0);
	if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP)
		return;
	if (fd < 0) {
		trouble(s, "cannot read", s->scan.path, -fd);
		return;
	}
	if (s->scan.length == 0)
		s->remote = is_remote(fd);
	d = fdopendir(fd);
	if (d == NULL) {
		trouble(s, "cannot read", s->scan.path, errno);
		our_fd_close(fd);
		return;
	}
	s->scan.depth++;
	for (errno = 0; (e = readdir(d)) != NULL; errno = 0)
		scan_entry(s, fd, e);
	if (errno != 0)
		trouble(s, "cannot read", s->scan.path, errno);
	s->scan.depth--;
	our_fd_closedir(d);
}

/* A directory below the root has come: watch and scan it with all below it. */
static void
scan_below(struct source *s, const char *path)
{
	char *full;

	if (asprintf(&full, "%s/%s", s->directory, path) < 0) {
		trouble(s, "cannot watch", path, ENOMEM);
		return;
	}
	s->scan.length = strlen(path);
	memcpy(s->scan.path, path, s->scan.length + 1);
	s->scan.depth = 0;
	for (const char *p = path; *p != '\0'; p++)
		s->scan.depth += *p == '/';
	scan_dir(s, AT_FDCWD, full);
	free(full);
}

/* Watches that are still good stay: to give back many at once overflows the queue. */
void
source_rescan(struct source *s)
{
	s->blind = false;
	s->stale = s->linked = false;
	s->watched.scans++;
	scan_below(s, "");
	dirs_forget(s, NULL);
	if (watched_files_forget_missed(&s->watched, on_gone, s) != 0)
		trouble(s, "some files that went were not told of in", "", ENOMEM);
	s->scanned_ns = clock_ns(CLOCK_MONOTONIC);
}

/* Is there something of that name? */
static bool
look(const struct source *s, const char *key, struct stat *ret)
{
	char *full;
	int r;

	if (asprintf(&full, "%s/%s", s->directory, key) < 0)
		return false;
	r = lstat(full, ret);
	free(full);
	return r == 0;
}

/* Does the link lead to a directory beside it? */
static bool
leads_beside(const struct source *s, const char *key)
{
	char *full, to[NAME_MAX + 1], beside[PATH_MAX];
	const char *slash = strrchr(key, '/');
	struct stat st;
	ssize_t n;

	if (asprintf(&full, "%s/%s", s->directory, key) < 0)
		return false;
	n = readlink(full, to, sizeof to);
	free(full);
	if (n < 0 || (size_t)n == sizeof to || memchr(to, '/', (size_t)n) != NULL)
		return false;
	snprintf(beside, sizeof beside, "%.*s%.*s", slash == NULL ? 0 : (int)(slash + 1 - key), key, (int)n, to);
	return look(s, beside, &st) && S_ISDIR(st.st_mode);
}

/* Where a file has gone another one may be already, of which nothing else need tell. */
static void
on_file(struct source *s, const char *key, uint32_t mask)
{
	int64_t settle_ns = mask & (IN_MODIFY | IN_DELETE | IN_MOVED_FROM) ? SETTLE_NS : 0;
	struct stat st;
	bool there = (mask & (IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_MOVED_FROM)) && look(s, key, &st);

	if ((mask & (IN_DELETE | IN_MOVED_FROM)) && (!there || S_ISDIR(st.st_mode))) {
		file_gone(s, key);
		return;
	}
	/* Its writer will tell us when it closes it. */
	if ((mask & IN_CREATE) && there && S_ISREG(st.st_mode) && st.st_size == 0 && st.st_nlink == 1)
		settle_ns = SETTLE_NS;
	if (there && S_ISLNK(st.st_mode) && leads_beside(s, key)) {
		s->linked = true;
		/* One that is made may be about to be renamed, and that is the moment. */
		s->stale |= (mask & IN_MOVED_TO) && clock_ns(CLOCK_MONOTONIC) - s->scanned_ns >= LINKED_NS;
	}
	file_say(s, key, settle_ns);
}

static void
on_event(struct source *s, const struct inotify_event *e)
{
	const char *dir = watched_dir_path(&s->watched, e->wd);
	char path[PATH_MAX];

	if (e->mask & IN_Q_OVERFLOW)
		s->stale = true;
	if (dir == NULL)
		return;
	if (e->mask & IN_IGNORED) {
		watched_dir_forget(&s->watched, e->wd);
		return;
	}
	if (e->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT)) {
		/* Of others than the root their parent's event tells, but not of a mount. */
		if (*dir == '\0' || (e->mask & IN_UNMOUNT))
			s->stale = true;
		return;
	}
	if (e->len == 0)
		return; /* attributes of the directory itself */
	if (snprintf(path, sizeof path, "%s%s%s", dir, *dir == '\0' ? "" : "/", e->name) >=
			(int)sizeof path) {
		trouble(s, "cannot watch all of", dir, ENAMETOOLONG);
		return;
	}
	if ((e->mask & IN_ISDIR) == 0) {
		on_file(s, path, e->mask);
		return;
	}
	/* One that is removed was empty, and its own IN_IGNORED forgets it: rm -r costs no walks. */
	if (e->mask & IN_MOVED_FROM)
		dirs_forget(s, path);
	if (e->mask & (IN_DELETE | IN_MOVED_FROM))
		watched_files_forget_below(&s->watched, path, on_gone, s);
	/* Where one has gone another one may be already, too. */
	if (e->mask & (IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_MOVED_FROM))
		scan_below(s, path);
}

void
source_read(struct source *s)
{
	_Alignas(struct inotify_event) char buffer[16 * 1024];
	size_t taken = 0;
	ssize_t n;

	while (taken < SOURCE_READ_MAX) {
		n = read(s->notify.fd, buffer, sizeof buffer);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		taken += (size_t)n;
		for (char *p = buffer; p < buffer + n; ) {
			const struct inotify_event *e = (const void *)p;

			p += sizeof *e + e->len;
			on_event(s, e);
		}
	}
	if (s->stale)
		source_rescan(s);
}

static int
new_error(const char *directory, int error, struct component_error *err)
{
	component_error_set(err, "cannot watch directory '%s': %s%s", directory, strerror(error),
		error == ENOENT ? "; make it, or name another one" :
		error == ENOSPC ? "; raise /proc/sys/fs/inotify/max_user_watches" :
		error == EMFILE ? "; raise /proc/sys/fs/inotify/max_user_instances or the limit of open files" : "");
	return -error;
}

int
source_new(const char *directory, const struct source_events *events, struct source **ret, struct component_error *err)
{
	struct source *s = calloc(1, sizeof *s);
	int r = -ENOMEM;

	if (s == NULL)
		goto out;
	s->notify.fd = -1;
	s->events = *events;
	s->directory = strdup(directory);
	if (s->directory == NULL)
		goto out;
	r = our_fd_keep_inotify(&s->notify);
	if (r == 0)
		r = dir_watch(s, "");
	if (r != 0)
		goto out;
	*ret = s;
	s = NULL; /* the caller owns it now */

out:
	source_free(s);
	return r == 0 ? 0 : new_error(directory, -r, err);
}

int
source_fd(const struct source *s)
{
	return s->notify.fd;
}

/* Another directory may have the root's name without an event: where one above it is
 * renamed, a link leads elsewhere, or somebody still has the old one open. */
static bool
root_is_watched(struct source *s)
{
	int wd = inotify_add_watch(s->notify.fd, s->directory, WATCHED | IN_ONLYDIR);
	const char *path = wd < 0 ? NULL : watched_dir_path(&s->watched, wd);

	if (wd >= 0 && path == NULL)
		inotify_rm_watch(s->notify.fd, wd); /* a scan makes its own, or another directory comes before it */
	return path != NULL && *path == '\0';
}

int
source_is_blind(struct source *s)
{
	return s->blind || s->linked || (!s->remote && !root_is_watched(s));
}

size_t
source_file_count(const struct source *s)
{
	return s->watched.file_count;
}

void
source_free(struct source *s)
{
	if (s == NULL)
		return;
	our_fd_kept_close(&s->notify);
	watched_free(&s->watched);
	free(s->directory);
	free(s);
}
