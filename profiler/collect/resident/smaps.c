/*
 * smaps.c - reads /proc/self/smaps line by line, in pieces.
 *
 *     7f0000000000-7f0000021000 rw-p 00000000 00:00 0      [heap]
 *     Size:                132 kB
 *     Rss:                  12 kB
 *     ...
 *
 * What a stranger would get wrong: the file is made while it is read, and the process goes on
 * meanwhile.  Each mapping is right for a moment, and the sum is of no single moment.  One that grows
 * where a piece ends comes twice; the later line is the newer.
 *
 * Why not smaps_rollup, which is faster: it has the sum alone.
 *
 * Tests: tests/memory/memory.t.
 */
#include <config.h>

#include "smaps.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "file.h"
#include "our_fd.h"
#include "pages.h"

#define TEXT_BYTES ((size_t)64 << 10) /* read at once; no line is longer: a path has 4096 bytes, each \012 at most */
#define FIRST      512
#define PRESENT    63 /* a bit of pagemap's words */

/* ---- a line ---- */

static uint64_t
number(const char **p, unsigned base)
{
	uint64_t n = 0;

	for (;; (*p)++) {
		unsigned char c = (unsigned char)**p;
		unsigned      digit = c >= '0' && c <= '9' ? c - 48U : c >= 'a' && c <= 'f' ? c - 87U : 99U;

		if (digit >= base)
			return n;
		n = n * base + digit;
	}
}

static void
skip(const char **p, const char *what)
{
	*p += strspn(*p, what);
}

/* "START-LIMIT PERMS OFFSET MAJOR:MINOR INODE   PATH" */
static int
head(struct smaps *s, struct arena *paths, const char *p)
{
	struct smaps_mapping m = { .path = "" }, *all;

	m.start = number(&p, 16);
	p += *p == '-';
	m.limit = number(&p, 16);
	skip(&p, " ");
	if (strlen(p) < 4)
		return -EINVAL;
	m.readable = p[0] == 'r';
	m.writable = p[1] == 'w';
	m.executable = p[2] == 'x';
	m.shared = p[3] == 's';
	p += 5;
	m.offset = number(&p, 16);
	skip(&p, " ");
	skip(&p, "0123456789abcdef:");
	skip(&p, " ");
	number(&p, 10);
	skip(&p, " ");
	if (*p)
		m.path = arena_strndup(paths, p, strlen(p));
	if (!m.path)
		return -ENOMEM;
	while (s->count && m.start < s->all[s->count - 1].limit)
		s->count--;
	if (s->count == s->room) {
		all = pages_grow(s->all, &s->room, FIRST, sizeof(*all));
		if (!all)
			return -ENOMEM;
		s->all = all;
	}
	s->all[s->count++] = m;
	return 0;
}

/* "Rss:      12 kB" */
static void
field(struct smaps_mapping *m, const char *line)
{
	bool        rss = !strncmp(line, "Rss:", 4), swap = !strncmp(line, "Swap:", 5);
	const char *p = line + (rss ? 4 : 5);

	if (!rss && !swap)
		return;
	skip(&p, " ");
	*(rss ? &m->resident : &m->swapped) = number(&p, 10) * 1024;
}

static int
line_read(struct smaps *s, struct arena *paths, const char *line)
{
	if (*line >= 'A' && *line <= 'Z') {
		if (s->count)
			field(&s->all[s->count - 1], line);
		return 0;
	}
	return head(s, paths, line);
}

/* ---- the file ---- */

/* Reads whole lines out of text; how many bytes are left of one that has no end yet. */
static ssize_t
lines_read(struct smaps *s, struct arena *paths, char *text, size_t size)
{
	char *line = text, *end;
	int   r;

	for (; (end = memchr(line, '\n', size - (size_t)(line - text))); line = end + 1) {
		*end = '\0';
		r = line_read(s, paths, line);
		if (r)
			return r;
	}
	size -= (size_t)(line - text);
	memmove(text, line, size);
	return (ssize_t)size;
}

static int
file_read(struct smaps *s, struct arena *paths, int fd, char *text)
{
	ssize_t left = 0, n;

	for (;;) {
		n = read(fd, text + left, TEXT_BYTES - (size_t)left);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : s->count ? 0 : -ENOENT;
		left = lines_read(s, paths, text, (size_t)(left + n));
		if (left < 0 || (size_t)left == TEXT_BYTES)
			return left < 0 ? (int)left : -EINVAL;
	}
}

int
smaps_read(struct smaps *ret, struct arena *paths)
{
	char        *text = pages_map(TEXT_BYTES);
	struct smaps s = { NULL, 0, 0 };
	int          fd = text ? file_open("/proc/thread-self/smaps") : -ENOMEM;
	int          r = fd;

	if (fd < 0)
		goto out;
	r = file_read(&s, paths, fd, text);
	our_fd_close(fd);
out:
	pages_unmap(text, TEXT_BYTES);
	if (r < 0)
		smaps_release(&s);
	else
		*ret = s;
	return r < 0 ? r : 0;
}

const struct smaps_mapping *
smaps_find(const struct smaps *s, uintptr_t address)
{
	size_t low = 0, high = s->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (address < s->all[middle].start)
			high = middle;
		else if (address >= s->all[middle].limit)
			low = middle + 1;
		else
			return &s->all[middle];
	}
	return NULL;
}

void
smaps_release(struct smaps *s)
{
	pages_unmap(s->all, s->room * sizeof(*s->all));
	*s = (struct smaps){ NULL, 0, 0 };
}

/* ---- single pages ---- */

int
smaps_pages_open(void)
{
	return file_open("/proc/thread-self/pagemap");
}

int64_t
smaps_pages(int fd, uintptr_t start, uintptr_t limit)
{
	uint64_t words[SMAPS_WORDS];
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t at = start / page, end = (limit + page - 1) / page, found = 0, n;
	ssize_t  got;

	for (; fd >= 0 && at < end; at += (uint64_t)got / 8) {
		n = end - at < SMAPS_WORDS ? end - at : SMAPS_WORDS;
		got = pread(fd, words, n * 8, (off_t)(at * 8));
		if (got < 8)
			return -1;
		for (ssize_t i = 0; i < got / 8; i++)
			found += words[i] >> PRESENT;
	}
	return fd < 0 ? -1 : (int64_t)(found * page);
}

bool
smaps_is_resident(struct smaps_look *l, uintptr_t address)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	ssize_t   got;

	if (l->fd < 0)
		return true;
	if (address < l->start || address >= l->limit) {
		l->asked++;
		got = pread(l->fd, l->words, sizeof(l->words), (off_t)(address / page * 8));
		if (got < 8)
			return true;
		l->start = address & ~(page - 1);
		l->limit = l->start + (uintptr_t)got / 8 * page;
	}
	return l->words[(address - l->start) / page] >> PRESENT & 1;
}
