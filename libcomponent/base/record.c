/*
 * record.c - a file PID.START for each process that serves profiles, and who may be believed.
 *
 *     id NAME, url URL, app_port N, created SECONDS, parent PID, takes USR1 or words, program DEVICE.INODE: a line
 *     each; pid and start are its name
 *     profiling on or off: a line that somebody has added, who has seen "takes words"
 *
 * What a stranger would get wrong:
 * - Everybody may write into /run/component, and what stands there is an address that somebody is
 *   going to connect to.  So a record counts only if root or the user of its process has written
 *   it, and that process is the one that began at START.
 * - Nobody can be trusted to remove his file, since processes are killed, leave their root and their
 *   rights.  Who reads removes what is left, where he may.
 * - A process that is not here may live in another pid namespace with the same /run.  The file is
 *   locked as long as it lives, and what is locked is not removed.
 * - The file is locked before it has its name: a reader that came in between would remove it.
 * - Root reads users' own folders, too, and a user may put a link in the place of his at any moment.  So a folder is
 *   opened first, without following a link, and what has been opened is looked at.
 * - A process keeps its number and its START when it runs another program, a static one perhaps, which has
 *   none of ours to take the record back.  So a record names its program's file, and of another one it does
 *   not count.  It stays until the process ends: the other program may write its own under this name.
 *
 * Tests: tests/componentctl/list.t, tests/componentctl/enable.t, tests/componentctl/records.t, tests/componentctl/follow_forks.t.
 */
#include <config.h>

#include "record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "digits.h"
#include "fd.h"
#include "listen.h"
#include "proc_status.h"
#include "process_start.h"
#include "replacement.h"
#include "text.h"

#define SYSTEM_FOLDER "/run/component"
#define USERS_FOLDER  "/run/user" /* what $XDG_RUNTIME_DIR is for each, but for its number */
#define WAY_OUT       "make a folder for all by 'sudo install -d -m 1777 " SYSTEM_FOLDER "'"
#define FILE_MAX      2048 /* bytes; ours are some hundred */
#define FOLDER_MAX    512  /* bytes with NUL; a longer one is none */
#define FOLDERS       2
#define PROGRAM_MAX   44 /* bytes with NUL: two numbers */

static _Atomic bool    takes_usr1, takes_words, keeps;
static _Atomic int64_t first; /* seconds since 1970 of this process's first record; 0: none yet */

/* ---- folders ---- */

/* Its path, or "": this process has none of that number. */
static void
folder_path(int i, char *buf, size_t size)
{
	const char *own = secure_getenv("XDG_RUNTIME_DIR");

	*buf = '\0';
	if (i == 0)
		snprintf(buf, size, "%s", SYSTEM_FOLDER);
	else if (own && *own == '/' && strlen(own) + sizeof("/component") <= size)
		snprintf(buf, size, "%s/component", own);
}

/* Is it a folder in which nobody but root and that user is able to take others' files away? */
static bool
is_safe(const struct stat *st, uid_t user)
{
	return S_ISDIR(st->st_mode) && (st->st_uid == 0 || st->st_uid == user) &&
	       ((st->st_mode & S_IWOTH) == 0 || (st->st_mode & S_ISVTX));
}

static bool
folder_is_good(const char *path)
{
	struct stat st;

	return *path && !lstat(path, &st) && is_safe(&st, geteuid());
}

static void
folder_make(int i, const char *path)
{
	mode_t mode = i == 0 ? 01777 : 0700;

	if (!*path || (i == 0 && geteuid() != 0))
		return;
	if (!mkdir(path, mode & 0700))
		chmod(path, mode); /* whatever the umask is */
}

/* ---- one's own ---- */

#define ID_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."

void
record_id_make(const char *name, char ret[RECORD_ID_MAX])
{
	bool is_number = digits_number(name, INT64_MAX / 2) >= 0;

	snprintf(ret, RECORD_ID_MAX, "%s%s", is_number || !*name ? "program-" : "", name);
	for (char *c = ret; *c; c++)
		if (!strchr(ID_CHARACTERS, *c))
			*c = '-';
}

int
record_id_check(const char *id, struct component_error *err)
{
	size_t size = strspn(id, ID_CHARACTERS);

	if (size > 0 && size < RECORD_ID_MAX && !id[size] && digits_number(id, INT64_MAX / 2) < 0)
		return 0;
	component_error_set(err, "'%.*s' is no id; write at most %d of letters, digits, '-', '_' and '.', and not digits alone",
		TEXT_QUOTED_MAX, id, RECORD_ID_MAX - 1);
	return -EINVAL;
}

void
record_takes_usr1(bool takes)
{
	takes_usr1 = takes;
}

void
record_takes_words(bool takes)
{
	takes_words = takes;
}

void
record_keep(bool keep)
{
	keeps = keep;
}

/* The file that the process runs, as stat(2) knows it, or "": who asks may not see it. */
static void
program_of(const char *path, char buf[PROGRAM_MAX])
{
	struct stat st;

	*buf = '\0';
	if (!stat(path, &st))
		snprintf(buf, PROGRAM_MAX, "%llu.%llu", (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
}

static int
text_write(int fd, const struct record *r)
{
	char    text[FILE_MAX], program[PROGRAM_MAX];
	ssize_t n;
	int     size;

	if (!first)
		first = time(NULL);
	program_of("/proc/self/exe", program);
	size = snprintf(text, sizeof(text), "id %s\nurl %s\napp_port %lld\ncreated %lld\nparent %ld\n%s%s%s%s", r->id, r->url,
		(long long)r->app_port, (long long)first, (long)r->parent,
		takes_usr1 ? "takes USR1\n" : takes_words ? "takes words\n" : "",
		*program ? "program " : "", program, *program ? "\n" : "");
	n = pwrite(fd, text, (size_t)size, 0);
	if (n == size && ftruncate(fd, size) == 0)
		return size;
	return n == size || n < 0 ? -errno : -ENOSPC;
}

/* Its size; *ret_fd stays open and locked. */
static int
file_write(const char *path, const struct record *r, int *ret_fd)
{
	char *temporary = NULL;
	int   fd = replacement_create(path, 0600, &temporary), result = fd < 0 ? fd : 0;

	if (fd < 0)
		return fd;
	if (flock(fd, LOCK_EX | LOCK_NB))
		result = -errno;
	if (!result)
		result = text_write(fd, r);
	if (result > 0 && rename(temporary, path))
		result = -errno;
	if (result < 0) {
		unlink(temporary);
		our_fd_close(fd);
	} else {
		*ret_fd = fd;
	}
	free(temporary);
	return result;
}

int
record_write(struct record_file *f, const struct record *r, struct component_error *err)
{
	char    folder[FOLDER_MAX], path[RECORD_PATH_MAX] = "";
	int64_t start = process_start("/proc/self/stat", (int32_t)getpid());
	int     fd = -1, result = start < 0 ? (int)start : -ENOENT;
	struct stat st;

	if (takes_words && our_fd_is_kept(&f->fd, &st) && st.st_nlink) {
		result = text_write(f->fd.fd, r);
		if (result > 0) {
			f->size = result;
			return 0;
		}
	}
	for (int i = 0; i < FOLDERS && start >= 0 && fd < 0; i++) {
		folder_path(i, folder, sizeof(folder));
		folder_make(i, folder);
		if (!folder_is_good(folder))
			continue;
		snprintf(path, sizeof(path), "%s/%ld.%lld", folder, (long)getpid(), (long long)start);
		result = file_write(path, r, &fd);
	}
	if (fd < 0) {
		component_error_set(err, "no record of this process can be written to " SYSTEM_FOLDER
			" or to component/ in $XDG_RUNTIME_DIR: %s; " WAY_OUT, strerror(-result));
		return result;
	}
	our_fd_kept_close(&f->fd); /* its file has been replaced, or is in the other folder */
	if (*f->path && strcmp(f->path, path) != 0)
		unlink(f->path);
	strcpy(f->path, path);
	our_fd_keep_listed(&f->fd, fd);
	f->size = result;
	return 0;
}

/* The first in which one may write; false: there is none. */
static bool
folder_find(char ret[FOLDER_MAX])
{
	for (int i = 0; i < FOLDERS; i++) {
		folder_path(i, ret, FOLDER_MAX);
		folder_make(i, ret);
		if (folder_is_good(ret) && !access(ret, W_OK | X_OK))
			return true;
	}
	return false;
}

int
record_folder_check(struct component_error *err)
{
	char folder[FOLDER_MAX];

	if (folder_find(folder))
		return 0;
	component_error_set(err, "no record can be written, neither to " SYSTEM_FOLDER " nor to component/ in $XDG_RUNTIME_DIR, so "
		"'componentctl list' does not show the program, and forked children are not followed; " WAY_OUT);
	return -ENOENT;
}

int
record_socket(char *buf, size_t size)
{
	char    folder[FOLDER_MAX];
	int64_t start = process_start("/proc/self/stat", (int32_t)getpid());

	if (start < 0 || !folder_find(folder))
		return -ENOENT;
	snprintf(buf, size, "unix:%s/%ld.%lld.sock", folder, (long)getpid(), (long long)start);
	return 0;
}

void
record_remove(struct record_file *f)
{
	/* The folder may be another user's by now; an empty record does not count. */
	if (*f->path && !keeps && unlink(f->path) && our_fd_is_kept(&f->fd, NULL))
		(void)!ftruncate(f->fd.fd, 0);
	record_leave(f);
}

void
record_leave(struct record_file *f)
{
	our_fd_kept_close(&f->fd);
	*f->path = '\0';
}

void
record_forked(struct record_file *f)
{
	first = 0;
	f->fd.fd = -1; /* it is closed, since it was listed */
	*f->path = '\0';
}

/* ---- all ---- */

struct found {
	struct record record;
	int64_t       start;
	bool          is_whole; /* not "PID.START.xxx", which was never renamed, and no "PID.START.sock" */
};

/* "123.456", and what was not renamed. */
static bool
name_parse(const char *name, struct found *ret)
{
	char  text[64], *dot, *second;
	int64_t pid;

	if (strlen(name) >= sizeof(text))
		return false;
	strcpy(text, name);
	dot = strchr(text, '.');
	if (!dot)
		return false;
	*dot = '\0';
	second = strchr(dot + 1, '.');
	if (second)
		*second = '\0';
	pid = digits_number(text, INT32_MAX);
	ret->start = digits_number(dot + 1, INT64_MAX / 2);
	ret->record.pid = (pid_t)pid;
	ret->is_whole = !second;
	return pid > 0 && ret->start >= 0;
}

/* The value of a line, in place; NULL: it is not there. */
static char *
line_value(char *text, const char *key)
{
	size_t size = strlen(key);

	for (char *line = text; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL)
		if (!strncmp(line, key, size) && line[size] == ' ')
			return line + size + 1;
	return NULL;
}

static bool
line_copy(char *text, const char *key, char *buf, size_t size)
{
	const char *value = line_value(text, key);
	size_t      length = value ? strcspn(value, "\n") : 0;

	if (!value || length >= size)
		return false;
	memcpy(buf, value, length);
	buf[length] = '\0';
	for (char *c = buf; *c; c++)
		if ((unsigned char)*c < ' ' || (unsigned char)*c >= 0x7f)
			return false; /* a terminal is going to show it */
	return length > 0;
}

static bool
text_parse(char *text, struct record *r)
{
	char number[24];

	if (!line_copy(text, "id", r->id, sizeof(r->id)) || record_id_check(r->id, NULL) ||
	    !line_copy(text, "url", r->url, sizeof(r->url)))
		return false;
	r->app_port = line_copy(text, "app_port", number, sizeof(number)) ? digits_number(number, UINT16_MAX) : 0;
	r->created = line_copy(text, "created", number, sizeof(number)) ? digits_number(number, INT64_MAX / 2) : 0;
	r->parent = line_copy(text, "parent", number, sizeof(number)) ? (pid_t)digits_number(number, INT32_MAX) : 0;
	if (!line_copy(text, "takes", number, sizeof(number)))
		*number = '\0';
	r->takes_usr1 = !strcmp(number, "USR1");
	r->takes_words = !strcmp(number, "words");
	return r->app_port >= 0 && r->created >= 0 && r->parent >= 0;
}

/* Has it ended, and nobody has waited for it?  Who has threads left lives, whatever became of the first. */
static bool
is_zombie(pid_t pid)
{
	char path[32], threads[PROC_STATUS_BYTES];

	snprintf(path, sizeof(path), "/proc/%ld/status", (long)pid);
	return proc_status_state(our_fd_open(path, O_RDONLY, 0)) == 'Z' &&
		proc_status_find(our_fd_open(path, O_RDONLY, 0), "\nThreads:", threads) && atoi(threads) <= 1;
}

static bool
is_alive(const struct found *f)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%ld/stat", (long)f->record.pid);
	return process_start(path, (int32_t)f->record.pid) == f->start && !is_zombie(f->record.pid);
}

/* Has the process this user, of those that it may act as? */
static bool
is_user_of(pid_t pid, uid_t user)
{
	char      path[32], value[PROC_STATUS_BYTES];
	long long uid[4];

	snprintf(path, sizeof(path), "/proc/%ld/status", (long)pid);
	if (!proc_status_find(our_fd_open(path, O_RDONLY, 0), "\nUid:", value) ||
	    sscanf(value, "%lld %lld %lld %lld", &uid[0], &uid[1], &uid[2], &uid[3]) != 4)
		return false;
	for (int i = 0; i < 4; i++)
		if (uid[i] == user)
			return true;
	return false;
}

/* Does the process run what it ran when it wrote this?  Where that is not known, it does. */
static bool
is_its_program(char *text, pid_t pid)
{
	char path[32], then[PROGRAM_MAX], now[PROGRAM_MAX];

	snprintf(path, sizeof(path), "/proc/%ld/exe", (long)pid);
	program_of(path, now);
	return !*now || !line_copy(text, "program", then, sizeof(then)) || !strcmp(then, now);
}

/* A process that is not here, and has this file open, may live elsewhere. */
static bool
is_locked(int fd)
{
	return flock(fd, LOCK_EX | LOCK_NB) < 0;
}

/* A socket "PID.START.sock" has no lock; the record has. */
static bool
is_record_locked(int folder, const char *socket)
{
	char record[64];
	int  fd;
	bool locked;

	snprintf(record, sizeof(record), "%.*s", (int)(strrchr(socket, '.') - socket), socket);
	fd = our_fd_openat(folder, record, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	locked = fd >= 0 && is_locked(fd);
	our_fd_close(fd);
	return locked;
}

/* So is one that does not listen yet, for some microseconds.  However young: those of children that were killed are to go. */
static bool
is_dead(int folder, const char *socket)
{
	char        path[96];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/thread-self/fd/%d/%.64s", folder, socket);
	return stat(path, &st) == 0 && listen_unix_is_dead(path);
}

/* Or has another file taken its place? */
static bool
is_still(const struct stat *st, int folder, const char *name)
{
	struct stat now;

	return fstatat(folder, name, &now, AT_SYMLINK_NOFOLLOW) == 0 && now.st_dev == st->st_dev && now.st_ino == st->st_ino;
}

/* 1: it counts; 0: it does not; -ESRCH: and its file may go. */
static int
file_read(int folder, const char *name, struct found *f)
{
	char        text[FILE_MAX + 1];
	struct stat st;
	int         fd = our_fd_openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0), r = 0;
	ssize_t     n;

	if (fd == -ENXIO) /* a socket, which comes before its record */
		return is_alive(f) || is_record_locked(folder, name) || !is_dead(folder, name) ? 0 : -ESRCH;
	if (fd < 0)
		return 0;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		goto out;
	if (!is_alive(f)) {
		r = is_locked(fd) || !is_still(&st, folder, name) ? 0 : -ESRCH;
		goto out;
	}
	if (!f->is_whole || st.st_size > FILE_MAX || (st.st_uid != 0 && !is_user_of(f->record.pid, st.st_uid)))
		goto out;
	n = read(fd, text, FILE_MAX);
	if (n <= 0)
		goto out;
	text[n] = '\0';
	r = text_parse(text, &f->record) && is_its_program(text, f->record.pid);
out:
	our_fd_close(fd);
	return r;
}

/* Of a folder that is root's or that user's. */
static int
folder_each(const char *path, uid_t user, record_fn *fn, void *arg)
{
	int                  fd = our_fd_open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0), r = 0, state;
	struct stat          st;
	DIR                 *dir = fd >= 0 && !fstat(fd, &st) && is_safe(&st, user) ? fdopendir(fd) : NULL;
	const struct dirent *d;

	while (dir && !r && (d = readdir(dir))) {
		struct found f = { .start = 0 };

		if (!name_parse(d->d_name, &f))
			continue;
		state = file_read(dirfd(dir), d->d_name, &f);
		if (state == -ESRCH)
			unlinkat(dirfd(dir), d->d_name, 0);
		snprintf(f.record.path, sizeof(f.record.path), "%s/%.64s", path, d->d_name);
		if (state > 0)
			r = fn(arg, &f.record);
	}
	if (dir)
		our_fd_closedir(dir);
	else
		our_fd_close(fd);
	return r;
}

static bool
is_same_folder(const char *a, const char *b)
{
	struct stat x, y;

	return !lstat(a, &x) && !lstat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* Those in users' own folders, but for the one that was read already; root may read them. */
static int
users_each(record_fn *fn, void *arg)
{
	char                 own[FOLDER_MAX], path[FOLDER_MAX];
	DIR                 *dir = geteuid() == 0 ? our_fd_opendir(USERS_FOLDER) : NULL;
	const struct dirent *d;
	int                  r = 0;

	folder_path(1, own, sizeof(own));
	while (dir && !r && (d = readdir(dir))) {
		int64_t user = digits_number(d->d_name, UINT32_MAX);

		snprintf(path, sizeof(path), USERS_FOLDER "/%.20s/component", d->d_name);
		if (user >= 0 && !(folder_is_good(own) && is_same_folder(path, own)))
			r = folder_each(path, (uid_t)user, fn, arg);
	}
	if (dir)
		our_fd_closedir(dir);
	return r;
}

int
record_each(record_fn *fn, void *arg)
{
	char path[FOLDER_MAX];
	int  r = 0;

	for (int i = 0; i < FOLDERS && !r; i++) {
		folder_path(i, path, sizeof(path));
		r = folder_each(path, geteuid(), fn, arg);
	}
	return r ? r : users_each(fn, arg);
}

static int
pass(void *arg, const struct record *r)
{
	(void)arg;
	(void)r;
	return 0;
}

void
record_sweep(void)
{
	record_each(pass, NULL);
}

struct wanted {
	const char    *word;
	int64_t        pid; /* -1: it is an id */
	struct record *ret;
	size_t         count, masters; /* masters: of those, nobody's children */
	uid_t          user, last;     /* of ret's file, and of the last one's */
	bool           is_mixed;       /* they are not all of one user */
};

/* Of several with one id: one that is nobody's child; and of children alone the oldest. */
static bool
is_before(const struct record *r, const struct record *other)
{
	if (!r->parent != !other->parent)
		return !r->parent;
	return r->created != other->created ? r->created < other->created : r->pid < other->pid;
}

static int
take_wanted(void *arg, const struct record *r)
{
	struct wanted *w = arg;
	struct stat    st;

	if (w->pid >= 0 ? r->pid != w->pid : strcmp(r->id, w->word) != 0)
		return 0;
	if (lstat(r->path, &st) < 0)
		return 0;
	w->is_mixed |= w->count && st.st_uid != w->last;
	w->last = st.st_uid;
	if (!w->count || is_before(r, w->ret)) {
		*w->ret = *r;
		w->user = st.st_uid;
	}
	w->masters += !r->parent;
	w->count++;
	return 0;
}

int
record_find(const char *id_or_pid, struct record *ret, struct component_error *err)
{
	struct record found;
	struct wanted w = { .word = id_or_pid, .pid = digits_number(id_or_pid, INT32_MAX), .ret = &found };

	record_each(take_wanted, &w);
	/* Of several users' only root's may be the master of the others: any user may say what he likes, and root's token is not
	 * for him. */
	if (w.count > 0 && w.masters <= 1 && (!w.is_mixed || (w.masters && w.user == 0))) {
		*ret = found;
		return 0;
	}
	if (w.count > 0) {
		component_error_set(err, "%zu processes have the id '%s'; write the PID of one of them, as 'componentctl list' shows it",
			w.masters ? w.masters : w.count, id_or_pid);
		return -ENOTUNIQ;
	}
	component_error_set(err, w.pid >= 0 ? "process %.*s has no record; 'componentctl list' shows those that have one" :
		"couldn't find app id %.*s; 'componentctl list' shows those there are", TEXT_QUOTED_MAX, id_or_pid);
	return -ENOENT;
}

/* ---- words that are added to it ---- */

static const char word_on[] = "profiling on\n", word_off[] = "profiling off\n";

/* The program has closed its descriptor.  What cannot be had again is not tried again. */
static bool
open_again(struct record_file *f)
{
	struct our_fd_kept was = f->fd;
	struct stat        st;
	int                fd;

	if (was.fd < 0 || !*f->path)
		return false;
	our_fd_kept_close(&f->fd); /* its place: the number may be the program's by now */
	fd_raise();
	fd = our_fd_open(f->path, O_RDWR | O_NOFOLLOW | O_NONBLOCK, 0);
	fd_lower();
	if (fd < 0)
		return false;
	if (fstat(fd, &st) || st.st_dev != was.device || st.st_ino != was.inode || flock(fd, LOCK_EX | LOCK_NB)) {
		our_fd_close(fd);
		return false;
	}
	our_fd_keep_listed(&f->fd, fd);
	return true;
}

bool
record_has_word(struct record_file *f)
{
	struct stat st;

	return takes_words && (our_fd_is_kept(&f->fd, &st) || (open_again(f) && our_fd_is_kept(&f->fd, &st))) &&
	       st.st_size > f->size;
}

int
record_word(struct record_file *f)
{
	char    text[FILE_MAX + 1], *last;
	ssize_t n = pread(f->fd.fd, text, FILE_MAX, f->size);

	if (n <= 0)
		return 0;
	f->size += n;
	text[n] = '\0';
	/* Who asked last is who is meant. */
	for (last = text + n - 1; last > text && last[-1] != '\n'; last--)
		;
	return !strcmp(last, word_on) ? 1 : !strcmp(last, word_off) ? -1 : 0;
}

/* Is it that record still?  Its folder may be another user's. */
static bool
is_of(int fd, const struct record *r)
{
	struct record now;
	char          text[FILE_MAX + 1];
	struct stat   st;
	ssize_t       n;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_nlink != 1)
		return false;
	n = pread(fd, text, FILE_MAX, 0);
	if (n <= 0)
		return false;
	text[n] = '\0';
	return text_parse(text, &now) && now.takes_words && !strcmp(now.id, r->id);
}

int
record_add_word(const struct record *r, bool on)
{
	const char *word = on ? word_on : word_off;
	int         fd = our_fd_open(r->path, O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK, 0), result = 0;
	ssize_t     n;

	if (fd < 0)
		return fd;
	if (!is_of(fd, r)) {
		result = -ESRCH;
	} else {
		n = write(fd, word, strlen(word));
		if (n != (ssize_t)strlen(word))
			result = n < 0 ? -errno : -ENOSPC;
	}
	our_fd_close(fd);
	return result;
}
