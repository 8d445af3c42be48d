/*
 * cmdline.c - GET cmdline: argv joined by NULs, as Go sends it.
 *
 * Read from /proc/thread-self/cmdline for each request, as some daemons rewrite theirs; where there is
 * no /proc, from the place that the kernel reads, which a constructor is told.  The values of options that hold a secret
 * are replaced, whether written --name=VALUE or --name VALUE, with '_' for '-'.
 *
 * Tests: tests/serve/test_cmdline.c, tests/http/protocol.t.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "our_fd.h"
#include "reply.h"
#include "routes.h"
#include "serve.h"
#include "text.h"

#define CMDLINE_MAX (4 * 1024 * 1024) /* bytes; the kernel's limit is a quarter of the stack limit */
#define REDACTED    "REDACTED"

static bool
is_same_option(const char *word, const char *name, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if ((word[i] == '_' ? '-' : word[i]) != (name[i] == '_' ? '-' : name[i]))
			return false;
	return true;
}

/* How many bytes of word are "--name" or "--name=" of a secret option; 0: none. */
static size_t
secret_prefix(const char *word, const char *const *redact)
{
	size_t dashes = strspn(word, "-"), n;

	if (dashes == 0 || dashes > 2)
		return 0;
	for (; redact && *redact; redact++) {
		const char *name = *redact + strspn(*redact, "-");

		n = strlen(name);
		if (strlen(word + dashes) < n || !is_same_option(word + dashes, name, n))
			continue;
		if (word[dashes + n] == '=')
			return dashes + n + 1;
		if (word[dashes + n] == '\0')
			return dashes + n;
	}
	return 0;
}

char *
cmdline_redact(const char *raw, size_t size, const char *const *redact, size_t *ret_size)
{
	/* A word is at least its NUL, and grows by a constant at most. */
	char       *out = malloc(size * (sizeof(REDACTED) + 1) + 1);
	size_t      n = 0, word_size, prefix;
	bool        hide = false;
	const char *end = raw + size;

	if (!out)
		return NULL;
	for (const char *word = raw; word < end; word += word_size + 1) {
		word_size = strlen(word);
		if (word > raw)
			out[n++] = '\0';
		prefix = hide ? 0 : secret_prefix(word, redact);
		if (hide || (prefix && word[prefix - 1] == '=')) {
			memcpy(out + n, word, prefix);
			memcpy(out + n + prefix, REDACTED, sizeof(REDACTED) - 1);
			n += prefix + sizeof(REDACTED) - 1;
		} else {
			memcpy(out + n, word, word_size);
			n += word_size;
		}
		hide = prefix && word[prefix - 1] != '=';
	}
	out[n] = '\0';
	*ret_size = n;
	return out;
}

/* Where the kernel finds it too: the words lie one behind the other. */
static struct {
	const char *words;
	size_t      size;
} own;

#ifdef __GLIBC__ /* others call constructors without arguments */
__attribute__((constructor)) static void
own_note(int argc, char **argv)
{
	const char *end = argc > 0 && argv[argc - 1] ? argv[argc - 1] + strlen(argv[argc - 1]) + 1 : NULL;

	if (end && end > argv[0] && end - argv[0] < CMDLINE_MAX)
		own.words = argv[0];
	if (own.words)
		own.size = (size_t)(end - argv[0]);
}
#endif

/* The kernel's NULs counted. */
static void
cmdline_read(struct text *ret)
{
	int     fd = our_fd_open("/proc/thread-self/cmdline", O_RDONLY, 0);
	char    piece[4096];
	ssize_t n = 0;

	while (fd >= 0 && ret->size < CMDLINE_MAX && !ret->failed) {
		n = read(fd, piece, sizeof(piece));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		text_add_bytes(ret, piece, (size_t)n);
	}
	if (fd >= 0)
		our_fd_close(fd);
	if (ret->size == 0)
		text_add_bytes(ret, own.words, own.size);
}

char *
cmdline_text(const char *const *redact, size_t *ret_size)
{
	struct text raw = TEXT_INIT;
	char       *out = NULL;

	cmdline_read(&raw);
	errno = raw.failed ? ENOMEM : raw.size ? 0 : ENOENT;
	if (!errno)
		out = cmdline_redact(raw.data, raw.size, redact, ret_size);
	text_release(&raw);
	return out;
}

void
cmdline_reply(struct serve *s, struct answer *a)
{
	size_t size = 0;
	char  *out = cmdline_text(s->options.redact, &size);

	if (out)
		reply_text(a, 200, ANSWER_TEXT, out, size);
	else if (errno == ENOENT)
		reply_error(a, 500, "the command line cannot be read: /proc is not mounted or not readable");
	else
		reply_error(a, 500, "out of memory");
	free(out);
}
