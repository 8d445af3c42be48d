/*
 * html.c - the viewer with a profile inside.
 *
 *     ...<script>the viewer's own</script>
 *     <script id="profile" type="application/octet-stream" data-name="cpu.pb.gz">H4sIAAAA...</script>
 *
 * That element is data to a browser and no script: it needs no digest in the page's policy.  Base64 has no letter that
 * could end it; the name is escaped.
 *
 * Tests: tests/serve/viewer.t, tests/componentctl/profile.t.
 */
#include <config.h>

#include "html.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gzip.h"
#include "our_fd.h"

#define MARK     "<!-- profile -->\n"
#define LETTERS  "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
#define FILE_MAX ((off_t)4 << 20) /* bytes; ours has less than a tenth of a MiB */
#define PIECE    1024 /* letters written at once; a multiple of four */

/* ---- the page ---- */

int
html_file_read(const char *path, struct text *ret)
{
	int         fd = our_fd_open(path, O_RDONLY | O_NONBLOCK, 0), r = fd < 0 ? fd : 0;
	char        piece[4096];
	struct stat st;
	ssize_t     n = 0;

	if (!r && fstat(fd, &st) < 0)
		r = -errno;
	if (!r && !S_ISREG(st.st_mode))
		r = -EINVAL;
	if (!r && st.st_size > FILE_MAX)
		r = -EFBIG;
	while (!r && (n = read(fd, piece, sizeof(piece))) != 0) {
		if (n > 0)
			text_add_bytes(ret, piece, (size_t)n);
		else if (errno != EINTR)
			r = -errno;
		if (!r && (off_t)ret->size > FILE_MAX)
			r = -EFBIG;
	}
	if (fd >= 0)
		our_fd_close(fd);
	if (!r && ret->failed)
		r = -ENOMEM;
	if (!r && (ret->size < 2 || memcmp(ret->data, "\x1f\x8b", 2)))
		r = -EINVAL;
	return r;
}

int
html_page_read(const char *path, struct text *ret)
{
	struct text packed_page = TEXT_INIT;
	int         r = html_file_read(path, &packed_page);

	if (!r)
		r = gzip_inflate(packed_page.data, packed_page.size, text_collect, ret);
	text_release(&packed_page);
	return r;
}

/* ---- a profile in it ---- */

static int
put(struct html *h, const char *text)
{
	return h->write(h->arg, text, strlen(text));
}

/* What an attribute's value may not have is a question mark. */
static int
put_name(struct html *h, const char *name)
{
	char   word[128];
	size_t n = 0;

	for (; *name && n < sizeof(word) - 1; name++)
		word[n++] = (unsigned char)*name < ' ' || (unsigned char)*name > '~' || strchr("\"&<>", *name) ? '?' : *name;
	word[n] = '\0';
	return put(h, word);
}

/* The last such line: a script of the page might speak of it. */
static const char *
find_mark(const char *page, size_t size)
{
	const char *found = NULL, *end = page + size;

	for (const char *at = page; (at = memmem(at, (size_t)(end - at), MARK, sizeof(MARK) - 1)); at++)
		if (at == page || at[-1] == '\n')
			found = at;
	return found;
}

int
html_open(struct html *h, const char *page, size_t size, const char *name, encode_write_fn *write, void *arg)
{
	const char *mark = find_mark(page, size);
	int         r;

	*h = (struct html){ .write = write, .arg = arg };
	if (!mark)
		return -EINVAL;
	h->rest = mark + sizeof(MARK) - 1;
	h->rest_size = size - (size_t)(h->rest - page);
	r = write(arg, page, (size_t)(mark - page));
	if (r >= 0)
		r = put(h, "<script id=\"profile\" type=\"application/octet-stream\" data-name=\"");
	if (r >= 0)
		r = put_name(h, name);
	return r < 0 ? r : put(h, "\">");
}

static void
letters_of(const unsigned char from[3], char to[4])
{
	unsigned bits = (unsigned)from[0] << 16 | (unsigned)from[1] << 8 | from[2];

	for (int i = 3; i >= 0; i--, bits >>= 6)
		to[i] = LETTERS[bits & 63];
}

int
html_write(void *html, const void *data, size_t size)
{
	struct html         *h = html;
	const unsigned char *at = data, *end = at + size;
	char                 piece[PIECE];
	size_t               n = 0;
	int                  r = 0;

	while (at < end && r >= 0) {
		h->left[h->left_count++] = *at++;
		if (h->left_count < sizeof(h->left))
			continue;
		letters_of(h->left, piece + n);
		h->left_count = 0;
		n += 4;
		if (n == PIECE) {
			r = h->write(h->arg, piece, n);
			n = 0;
		}
	}
	return r >= 0 && n ? h->write(h->arg, piece, n) : r;
}

int
html_close(struct html *h)
{
	char last[4];
	int  r = 0;

	if (h->left_count) {
		for (unsigned i = h->left_count; i < sizeof(h->left); i++)
			h->left[i] = 0;
		letters_of(h->left, last);
		for (unsigned i = h->left_count + 1; i < sizeof(last); i++)
			last[i] = '=';
		r = h->write(h->arg, last, sizeof(last));
	}
	if (r >= 0)
		r = put(h, "</script>\n");
	return r < 0 ? r : h->write(h->arg, h->rest, h->rest_size);
}
