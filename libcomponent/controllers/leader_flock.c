/*
 * leader_flock.c - the lock by which one process leads: flock(2) on a file.
 *
 *     take:    open -- flock --+--> taken: who has it
 *                              +--> free, and still the file of that name: ours
 *                              +--> free, but the name has another file by now: again, with that
 *     verify:  our descriptor? -- still locked? -- still the file of that name, and is it still we that it names?
 *
 * What a stranger would get wrong:
 * - The kernel gives the lock back when the process ends, a kill -9 included.  What is written in
 *   the file tells people who has it, and whether anybody has led by it: who takes a file by which
 *   nobody has waits (leader.c), for it may stand in the place of one that was removed under a leader.
 *   So the file's own number stands in it: a copy in its place is as good as new.
 * - The file is never removed: somebody may be waiting for it, and a third would lock a new one.  Who
 *   waits for one that a hand has removed goes on until that one's holder has ended, too.
 * - A process that is stopped (SIGSTOP, a debugger) still has the lock, as it should.
 * - A child of fork() has the same lock by its copy of the descriptor, so it is closed there
 *   (our_fd.h).  One of the bare clone(2) keeps it, and so the lock is given back by a call, not by
 *   closing alone.
 * - The daemon may close every descriptor there is: then the lock is lost, and verify finds that.
 * - NFS passes flock on to its server unless the mount says otherwise; other network file systems
 *   do so, or not, in ways that nobody can tell from here.  What is not known to hold is refused.
 *
 * Why not fcntl(F_SETLK): closing any other descriptor of the file gives that lock back.
 * Tests: tests/controllers/test_leader.c, tests/examples/leader.t.
 */
#include <config.h>

#include "leader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "absolute_path.h"
#include "our_fd.h"
#include "utc.h"

#define FILE_BYTES_MAX  1024 /* ours are some 250 */
#define REPLACED_MAX    8    /* times while it is taken once: then somebody is at it, and a later try may do */
#define OPTIONS_MAX     1024 /* bytes of a mount's options that are looked at */

struct lock {
	char              *path;
	const char        *option, *busy;
	bool               shared;
	char               identity[LEADER_IDENTITY_MAX]; /* what we have written */
	struct our_fd_kept fd;
};

/* ---- what stands in it ---- */

/* The value of a "key: value" line, without quotes; what does not print becomes '?'. */
static void
value_of(const char *text, const char *key, char *buf, size_t size)
{
	size_t length = strlen(key), n = 0;

	buf[0] = '\0';
	while (strncmp(text, key, length) != 0 || text[length] != ':') {
		text = strchr(text, '\n');
		if (!text)
			return;
		text++;
	}
	text += length + 1;
	text += strspn(text, " \"");
	for (; n + 1 < size && *text != '\n' && *text != '\0' && *text != '"'; text++)
		buf[n++] = *text >= ' ' && *text < 0x7f ? *text : '?';
	buf[n] = '\0';
}

static int
record_read(const struct lock *l, struct leader_record *ret)
{
	char text[FILE_BYTES_MAX], pid[24], host[HOST_NAME_MAX + 1], since[32], number[24];
	ssize_t n = pread(l->fd.fd, text, sizeof text - 1, 0);

	*ret = (struct leader_record){ .transitions = 0 };
	if (n < 0)
		return -errno;
	text[n] = '\0';
	value_of(text, "identity", ret->identity, sizeof ret->identity);
	value_of(text, "transitions", number, sizeof number);
	ret->transitions = strtoull(number, NULL, 10);
	value_of(text, "pid", pid, sizeof pid);
	value_of(text, "host", host, sizeof host);
	value_of(text, "since", since, sizeof since);
	if (*pid != '\0')
		snprintf(ret->text, sizeof ret->text, "pid %s on %s%s%s", pid, host, *since != '\0' ? " since " : "", since);
	value_of(text, "file", number, sizeof number);
	ret->has_led = *since != '\0' && (*number == '\0' || strtoull(number, NULL, 10) == (unsigned long long)l->fd.inode);
	return 0;
}

/* In place, for another file under its name would not be locked; the length last, for whoever reads meanwhile. */
static void
flock_announce(void *lock, const char *identity, uint64_t transitions, bool leads)
{
	struct lock *l = lock;
	char text[FILE_BYTES_MAX], host[HOST_NAME_MAX + 1] = "", now[UTC_BYTES], since[64] = "";
	struct leader_record there;
	int n;

	snprintf(l->identity, sizeof l->identity, "%s", identity);
	gethostname(host, sizeof host - 1);
	utc_text(time(NULL), now);
	if (leads)
		snprintf(since, sizeof since, "since: \"%s\"\n", now);
	n = snprintf(text, sizeof text, "pid: %ld\nhost: \"%s\"\n%sidentity: \"%s\"\ntransitions: %llu\nfile: %llu\n",
		(long)getpid(), host, since, identity, (unsigned long long)transitions, (unsigned long long)l->fd.inode);
	/* A full disk.  The lock holds all the same, and what the file still says is no later owner. */
	if (pwrite(l->fd.fd, text, (size_t)n, 0) == n && ftruncate(l->fd.fd, n) == 0)
		return;
	if (record_read(l, &there) == 0)
		snprintf(l->identity, sizeof l->identity, "%s", there.identity);
}

/* ---- where it holds ---- */

/* What has anonymous devices and is not here is refused: 9p, FUSE (but on a block device), virtiofs, SMB, AFS, folders of virtual
 * machines.  needs: one of these must be among the options; spoils: this must not. */
static const struct {
	uint64_t    magic;
	const char *needs[2], *spoils;
} file_systems[] = {
	{ 0x6969,     { "local_lock=none", "local_lock=posix" }, "nolock" }, /* NFS: to the server, since Linux 2.6.12 */
	{ 0x0bd00bd0, { "flock" }, "localflock" },                           /* Lustre: to its servers, if it is told to */
	{ 0x01161970, { NULL }, "localflocks" },                             /* GFS2 */
	{ 0x7461636f, { NULL }, "localflocks" },                             /* OCFS2 */
	{ 0x00c36400, { NULL }, NULL },                                      /* Ceph: to its metadata server */
	{ 0x01021994, { NULL }, NULL }, /* tmpfs; from here on no other host has it */
	{ 0x858458f6, { NULL }, NULL }, /* ramfs */
	{ 0x794c7630, { NULL }, NULL }, /* overlay: what is written is in that mount alone */
	{ 0x9123683e, { NULL }, NULL }, /* btrfs */
	{ 0x2fc12fc1, { NULL }, NULL }, /* ZFS */
	{ 0xca451a4e, { NULL }, NULL }, /* bcachefs */
	{ 0x24051905, { NULL }, NULL }, /* UBIFS */
};

static bool
has_option(const char *options, const char *name)
{
	size_t length = strlen(name);

	for (const char *at = options; (at = strstr(at, name)) != NULL; at += length)
		if ((at == options || at[-1] == ',' || at[-1] == ' ') && strchr(",\n", at[length]) != NULL)
			return true;
	return false;
}

bool
leader_flock_holds(uint64_t magic, bool on_device, const char *options)
{
	for (size_t i = 0; i < sizeof file_systems / sizeof *file_systems; i++) {
		const char *const *needs = file_systems[i].needs, *spoils = file_systems[i].spoils;

		if (file_systems[i].magic != magic)
			continue;
		if (needs[0] == NULL && spoils == NULL)
			return true;
		return options != NULL && (spoils == NULL || !has_option(options, spoils)) &&
		       (needs[0] == NULL || has_option(options, needs[0]) || (needs[1] != NULL && has_option(options, needs[1])));
	}
	return on_device; /* a disk of this host */
}

/* Type and options of the mount that fd is on, as mountinfo ends: "nfs4 host:/export rw,local_lock=none". */
static bool
mount_of(int fd, char *buf, size_t size)
{
	char path[64], want[32], *line = NULL, *found;
	size_t room = 0, length = 0;
	bool known = false;
	FILE *f;

	snprintf(path, sizeof path, "/proc/thread-self/fdinfo/%d", fd);
	f = our_fd_fopen(path);
	while (f != NULL && getline(&line, &room, f) > 0)
		if (strncmp(line, "mnt_id:\t", 8) == 0)
			length = (size_t)snprintf(want, sizeof want, "%ld ", strtol(line + 8, NULL, 10));
	if (f != NULL)
		our_fd_fclose(f);
	f = length == 0 ? NULL : our_fd_fopen("/proc/thread-self/mountinfo");
	while (f != NULL && !known && getline(&line, &room, f) > 0) {
		found = strncmp(line, want, length) == 0 ? strstr(line, " - ") : NULL;
		known = found != NULL && (size_t)snprintf(buf, size, "%s", found + 3) < size;
	}
	if (f != NULL)
		our_fd_fclose(f);
	free(line);
	return known;
}

static int
holds(const struct lock *l, struct component_error *err)
{
	char options[OPTIONS_MAX], type[64];
	struct statfs fs;
	bool known;

	if (fstatfs(l->fd.fd, &fs) < 0) {
		component_error_set(err, "option '--%s': '%s': %s", l->option, l->path, strerror(errno));
		return -errno;
	}
	known = mount_of(l->fd.fd, options, sizeof options);
	if (leader_flock_holds((uint64_t)fs.f_type & UINT32_MAX, major(l->fd.device) != 0, known ? options : NULL))
		return 0;
	snprintf(type, sizeof type, "type 0x%lx", (unsigned long)fs.f_type & UINT32_MAX);
	if (known)
		snprintf(type, sizeof type, "%.*s", (int)strcspn(options, " "), options);
	component_error_set(err, "option '--%s': '%s' is on a file system (%s) of which it is not known that locks hold between "
		"hosts, so two processes could lead at once; name a place on a disk of this host, or on NFS that is mounted "
		"with its locks (neither nolock nor local_lock)", l->option, l->path, type);
	return -EOPNOTSUPP;
}

/* ---- the lock ---- */

static int
flock_open(const struct leader_place *place, void **ret)
{
	struct lock *l = calloc(1, sizeof *l);

	if (l == NULL)
		return -ENOMEM;
	l->path = absolute_path(place->path);
	if (l->path == NULL) {
		free(l);
		return -ENOMEM;
	}
	l->option = place->option;
	l->busy = place->busy;
	l->shared = place->shared;
	our_fd_keep(&l->fd, -1);
	*ret = l;
	return 0;
}

static int
no_locks(const struct lock *l, int error, struct component_error *err)
{
	component_error_set(err, "option '--%s': '%s' cannot be locked: %s; without a lock two processes could spoil each "
		"other's files: name a place on a file system with locks", l->option, l->path, strerror(error));
	return -error;
}

static int
is_taken(const struct lock *l, struct leader_record *ret, struct component_error *err)
{
	record_read(l, ret);
	component_error_set(err, "'%s': another process works there%s%s; %s", l->path, *ret->text != '\0' ? ": " : "",
		ret->text, l->busy);
	return -EBUSY;
}

/* Is it still the file of that name?  A negative errno: not known. */
static int
is_current(const struct lock *l)
{
	struct stat now;

	if (lstat(l->path, &now) == 0)
		return now.st_dev == l->fd.device && now.st_ino == l->fd.inode;
	return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? 0 : -errno;
}

static int
file_open(struct lock *l, struct component_error *err)
{
	int fd, r;

	if (our_fd_is_kept(&l->fd, NULL))
		return 0; /* of a try before */
	our_fd_kept_close(&l->fd);
	fd = our_fd_open(l->path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);
	if (fd < 0)
		return no_locks(l, -fd, err);
	our_fd_keep_listed(&l->fd, fd);
	r = l->shared ? holds(l, err) : 0;
	if (r < 0)
		our_fd_kept_close(&l->fd);
	return r;
}

static void
flock_release(void *lock)
{
	struct lock *l = lock;

	if (our_fd_is_kept(&l->fd, NULL))
		flock(l->fd.fd, LOCK_UN);
	our_fd_kept_close(&l->fd);
}

static int
flock_take(void *lock, struct leader_record *ret, struct component_error *err)
{
	struct lock *l = lock;
	int r;

	for (int n = 0; n < REPLACED_MAX; n++) {
		r = file_open(l, err);
		if (r < 0)
			return r;
		if (flock(l->fd.fd, LOCK_EX | LOCK_NB) != 0)
			return errno == EWOULDBLOCK ? is_taken(l, ret, err) : no_locks(l, errno, err);
		r = is_current(l);
		if (r > 0) {
			record_read(l, ret);
			return 0;
		}
		flock_release(l);
		if (r < 0)
			return no_locks(l, -r, err);
	}
	component_error_set(err, "'%s': it is replaced again and again", l->path);
	*ret = (struct leader_record){ .transitions = 0 };
	return -EBUSY;
}

static int
is_lost(const struct lock *l, const char *how, struct component_error *err)
{
	component_error_set(err, "'%s' %s", l->path, how);
	return -ESTALE;
}

static int
flock_verify(void *lock, struct component_error *err)
{
	const struct lock *l = lock;
	struct leader_record now;
	int r;

	if (!our_fd_is_kept(&l->fd, NULL))
		return is_lost(l, "was closed by the program", err);
	if (flock(l->fd.fd, LOCK_EX | LOCK_NB) != 0)
		return errno == EWOULDBLOCK ? is_lost(l, "is locked by another process", err) : no_locks(l, errno, err);
	r = is_current(l);
	if (r < 0)
		return no_locks(l, -r, err);
	if (r == 0)
		return is_lost(l, "was removed or replaced", err);
	r = record_read(l, &now);
	if (r < 0)
		return no_locks(l, -r, err);
	/* The server of a network file system may have thought us dead, and lent it. */
	return *now.identity == '\0' || strcmp(now.identity, l->identity) == 0 ? 0 : is_lost(l, "names another process", err);
}

static bool
flock_is_same(const void *lock, const void *other)
{
	const struct lock *a = lock, *b = other;

	return our_fd_is_kept(&a->fd, NULL) && our_fd_is_kept(&b->fd, NULL) && a->fd.device == b->fd.device &&
	       a->fd.inode == b->fd.inode;
}

static void
flock_free(void *lock)
{
	struct lock *l = lock;

	free(l->path);
	free(l);
}

const struct leader_lock_kind leader_flock = {
	.name = "flock",
	.open = flock_open,
	.take = flock_take,
	.announce = flock_announce,
	.verify = flock_verify,
	.is_same = flock_is_same,
	.release = flock_release,
	.free = flock_free,
};
