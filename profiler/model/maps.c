/*
 * maps.c - /proc/PID/maps, this process's as a rule, read into memory of our own and cut into lines.
 *
 * A line is "START-LIMIT PERMS OFFSET MAJOR:MINOR INODE   PATH".  The kernel writes
 * a newline in a path as \012 and appends " (deleted)" when the file has no name
 * any more.  A file whose real name ends in " (deleted)" cannot be told apart; it
 * is then not opened by name, which costs its symbols, nothing else.
 *
 * Whose a single address is, newer kernels tell without the text.
 *
 * Where there is no /proc, lines are made of what the loader knows: maps_loader.c.
 *
 * Not stdio: it allocates.
 *
 * Tests: tests/symbols/test_symbols.c
 */
#include <config.h>

#include "maps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "file.h"
#include "our_fd.h"
#include "process.h"
#include "proc_status.h"

#define ROOM_FIRST ((size_t)64 << 10) /* bytes; 500 lines */
#define ROOM_MAX   ((size_t)64 << 20) /* bytes; several times vm.max_map_count's default */

static int
grow(struct maps *m)
{
	size_t room = m->room ? m->room * 2 : ROOM_FIRST;
	char  *text = room <= ROOM_MAX ? arena_map(m->budget, room) : NULL;

	if (!text)
		return -ENOMEM;
	if (m->size)
		memcpy(text, m->text, m->size);
	arena_unmap(m->budget, m->text, m->room);
	m->text = text;
	m->room = room;
	return 0;
}

static atomic_bool proc_refused;

void
maps_proc_refuse(bool refuse)
{
	atomic_store(&proc_refused, refuse);
}

/* The process's is empty after pthread_exit() in main; the thread's is one that qemu does not
 * know, which answers for the program it emulates. */
static int
open_maps(void)
{
	int  fd;
	char first, path[PROCESS_PATH_MAX];

	if (atomic_load_explicit(&proc_refused, memory_order_relaxed))
		return -ENOENT;
	fd = file_open(process_path("maps", path));
	if (process_other() || (fd >= 0 && pread(fd, &first, 1, 0) == 1))
		return fd;
	our_fd_close(fd);
	return file_open("/proc/thread-self/maps");
}

static atomic_bool without_proc;

bool
maps_without_proc(void)
{
	return atomic_load_explicit(&without_proc, memory_order_relaxed);
}

/* Where only descriptors or memory are short, /proc will be there again. */
static int
read_without_proc(struct maps *m, int err)
{
	if (err == -EMFILE || err == -ENFILE || err == -ENOMEM || process_other())
		return err;
	atomic_store(&without_proc, true);
	return maps_of_loader(m);
}

int
maps_read(struct maps *m, struct arena_budget *budget)
{
	int fd, r = 0;

	*m = (struct maps){ .budget = budget };
	fd = open_maps();
	if (fd < 0)
		return read_without_proc(m, fd);
	atomic_store(&without_proc, false);
	for (;;) {
		ssize_t n;

		if (m->room - m->size < 2) {
			r = grow(m);
			if (r < 0)
				break;
		}
		n = read(fd, m->text + m->size, m->room - m->size - 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			r = n < 0 ? -errno : 0;
			break;
		}
		m->size += (size_t)n;
	}
	our_fd_close(fd);
	if (r < 0)
		maps_release(m);
	return r;
}

/* ---- one mapping ---- */

/* <linux/fs.h> of older systems has neither. */
struct query {
	uint64_t size, flags, address;
	uint64_t start, limit, vma_flags, page_size, offset, inode;
	uint32_t major_no, minor_no, name_size, build_id_size;
	uint64_t name, build_id;
};

#define QUERY            _IOWR('f', 17, struct query)
#define QUERY_EXECUTABLE 0x04

static atomic_bool refused;

void
maps_query_refuse(bool refuse)
{
	atomic_store(&refused, refuse);
}

/* A filter may kill for a call that it does not know.  Reading is what we do anyway. */
static bool
is_filtered(void)
{
	char value[PROC_STATUS_BYTES];

	return !proc_status_find(proc_status_open(), "\nSeccomp:\t", value) || value[0] != '0';
}

int
maps_query_open(void)
{
	struct maps_place p;
	int               fd;

	if (atomic_load(&refused) || is_filtered())
		return -ENOSYS;
	fd = open_maps();
	if (fd < 0)
		return -ENOSYS;
	if (maps_query(fd, (uintptr_t)maps_query_open, &p) == 0)
		return fd;
	our_fd_close(fd);
	return -ENOSYS;
}

int
maps_query(int fd, uintptr_t address, struct maps_place *ret)
{
	struct query q = { .size = sizeof(q), .address = address };

	if (ioctl(fd, QUERY, &q) < 0)
		return -errno;
	*ret = (struct maps_place){ (uintptr_t)q.start, (uintptr_t)q.limit, makedev(q.major_no, q.minor_no), q.inode,
				    (q.vma_flags & QUERY_EXECUTABLE) != 0 };
	return 0;
}

/* ---- its lines ---- */

/* A number in hex or decimal; moves on to what follows it. */
static bool
number(char **p, unsigned base, char until, uint64_t *ret)
{
	uint64_t v = 0;
	char    *q = *p;

	for (;; q++) {
		unsigned d;

		if (*q >= '0' && *q <= '9')
			d = (unsigned)(*q - '0');
		else if (base == 16 && *q >= 'a' && *q <= 'f')
			d = (unsigned)(*q - 'a') + 10;
		else
			break;
		v = v * base + d;
	}
	if (q == *p || (*q != until && !(until == ' ' && !*q)))
		return false;
	*p = *q ? q + 1 : q;
	*ret = v;
	return true;
}

static void
unescape(char *s)
{
	char *to = s = strchrnul(s, '\\'); /* hardly any path has one */

	for (; *s; s++) {
		if (!strncmp(s, "\\012", 4)) {
			*to++ = '\n';
			s += 3;
		} else {
			*to++ = *s;
		}
	}
	*to = '\0';
}

static bool
parse(char *line, struct maps_line *ret)
{
	static const char gone[] = " (deleted)";
	uint64_t          start, limit, major_no, minor_no;
	size_t            n;

	*ret = (struct maps_line){ .path = line };
	if (!number(&line, 16, '-', &start) || !number(&line, 16, ' ', &limit) || strlen(line) < 5)
		return false;
	ret->start = (uintptr_t)start;
	ret->limit = (uintptr_t)limit;
	ret->executable = line[2] == 'x';
	line += 5;
	if (!number(&line, 16, ' ', &ret->offset) || !number(&line, 16, ':', &major_no) ||
	    !number(&line, 16, ' ', &minor_no) || !number(&line, 10, ' ', &ret->inode))
		return false;
	ret->device = makedev((unsigned)major_no, (unsigned)minor_no);
	ret->path = line + strspn(line, " ");
	n = strlen(ret->path);
	if (n > sizeof(gone) - 1 && !strcmp(ret->path + n - (sizeof(gone) - 1), gone)) {
		ret->path[n - (sizeof(gone) - 1)] = '\0';
		ret->deleted = true;
	}
	unescape(ret->path);
	return start < limit;
}

bool
maps_next(struct maps *m, struct maps_line *ret)
{
	while (m->next < m->size) {
		char *line = m->text + m->next;
		char *end = memchr(line, '\n', m->size - m->next);

		if (!end)
			end = m->text + m->size; /* there is room for its NUL */
		*end = '\0';
		m->next = (size_t)(end - m->text) + 1;
		if (parse(line, ret))
			return true;
	}
	return false;
}

void
maps_release(struct maps *m)
{
	arena_unmap(m->budget, m->text, m->room);
	*m = (struct maps){ .budget = m->budget };
}
