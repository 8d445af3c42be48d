/*
 * target.c - what is to be looked into: a server, or a file with a profile.
 *
 * What a stranger would get wrong: a word without a scheme, a port or a slash is first an ID or PID of a program
 * that has a record, then a file here, then the number of any process.  Write ./NAME for a file that is called like a program.
 *
 * Tests: tests/componentctl/profile.t, tests/componentctl/test_target.c
 */
#include <config.h>

#include "target.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proc_status.h"

#define PATH    "/debug/pprof"
#define TARGETS "HOST:PORT, a URL, unix:/path, a file, an ID that 'componentctl list' shows, or the number of any process"

static int
refuse(struct component_error *err, const char *word, const char *why)
{
	component_error_set(err, "'%.200s': %s", word, why);
	return -EINVAL;
}

static void
name_it(struct target *t, const char *from, size_t size)
{
	size_t n = size < sizeof(t->name) - 1 ? size : sizeof(t->name) - 1;

	for (size_t i = 0; i < n; i++)
		t->name[i] = isalnum((unsigned char)from[i]) || strchr("._", from[i]) ? from[i] : '-';
	t->name[n] = '\0';
	if (!n)
		strcpy(t->name, "localhost");
	if (t->name[0] == '.' || t->name[0] == '-')
		t->name[0] = '_';
}

static int
of_url(struct target *t, const char *url, struct component_error *err)
{
	const char *host = strstr(url, "://") + 3, *path = host + strcspn(host, "/?#");
	size_t      host_size = (size_t)(path - host), length = strlen(path);

	if (!host_size || *path == '?' || *path == '#' || strpbrk(path, "?#") || strpbrk(url, " \"<>\\^`{|}"))
		return refuse(err, t->word, "is no address of a server; write 'http://HOST:PORT'");
	if (memchr(host, '@', host_size))
		return refuse(err, t->word, "has a name or a password in it; write the token into a file, and --token-file=FILE");
	while (length && path[length - 1] == '/')
		length--;
	if (length >= sizeof(PATH) - 1 && !memcmp(path + length - (sizeof(PATH) - 1), PATH, sizeof(PATH) - 1))
		length -= sizeof(PATH) - 1;
	else if (strstr(path, PATH))
		return refuse(err, t->word, "goes on behind '" PATH "'; leave that out, and write the kind as a word of its own");
	snprintf(t->url, sizeof(t->url), "%.*s%.*s" PATH, (int)(path - url), url, (int)length, path);
	name_it(t, host, host_size);
	return 0;
}

static int
of_socket(struct target *t, const char *path, struct component_error *err)
{
	const char *base = strrchr(path, '/');
	size_t      size;

	if ((*path != '/' && *path != '@') || !path[1])
		return refuse(err, t->word, "is no unix socket; write 'unix:/path' or 'unix:@name'");
	base = base ? base + 1 : path + 1;
	size = strlen(base);
	if (size > 5 && !strcmp(base + size - 5, ".sock"))
		size -= 5;
	snprintf(t->socket, sizeof(t->socket), "%s", path);
	snprintf(t->url, sizeof(t->url), "http://localhost" PATH);
	name_it(t, base, size);
	return 0;
}

/* HOST:PORT, [IPV6]:PORT or :PORT. */
static bool
is_address(const char *word)
{
	const char *colon = strrchr(word, ':');
	size_t      digits = colon ? strspn(colon + 1, "0123456789") : 0;

	return digits && digits <= 5 && !colon[1 + digits] && !strchr(word, '/') &&
		(word[0] == '[' ? colon[-1] == ']' : strchr(word, ':') == colon);
}

static int
of_address(struct target *t, const char *address, struct component_error *err)
{
	char url[TARGET_MAX];

	snprintf(url, sizeof(url), "http://%s%.*s", *address == ':' ? "localhost" : "", TARGET_MAX - 32, address);
	return of_url(t, url, err);
}

static int
of_server(struct target *t, const char *text, struct component_error *err)
{
	if (!strncmp(text, "http://", 7) || !strncmp(text, "https://", 8))
		return of_url(t, text, err);
	if (!strncmp(text, "unix:", 5))
		return of_socket(t, text + 5, err);
	return is_address(text) ? of_address(t, text, err) : -ENOENT;
}

static int
of_file(struct target *t, const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0 || S_ISDIR(st.st_mode))
		return -ENOENT;
	t->is_file = true;
	snprintf(t->file, sizeof(t->file), "%s", path);
	return 0;
}

/* A process without a record. */
static int
of_process(struct target *t)
{
	char          path[32], comm[32] = "";
	int           fd;
	unsigned long pid = strspn(t->word, "0123456789") == strlen(t->word) ? strtoul(t->word, NULL, 10) : 0;

	snprintf(path, sizeof(path), "/proc/%lu/task", pid);
	if (!pid || pid > INT32_MAX || access(path, F_OK))
		return -ENOENT;
	t->process = t->pid = (pid_t)pid;
	snprintf(path, sizeof(path), "/proc/%lu/comm", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, comm, sizeof(comm) - 1) <= 0)
		snprintf(comm, sizeof(comm), "%lu", pid);
	if (fd >= 0)
		close(fd);
	name_it(t, comm, strcspn(comm, "\n"));
	return 0;
}

int
target_of_record(struct target *ret, const char *word, const struct record *record, struct component_error *err)
{
	int r;

	if (word != ret->word) {
		*ret = (struct target){ .is_file = false };
		snprintf(ret->word, sizeof(ret->word), "%s", word);
	}
	ret->has_switch = record->takes_words || record->takes_usr1;
	if (!strcmp(record->url, RECORD_URL_OFF)) {
		if (ret->has_switch)
			component_error_set(err, "profiling of '%.200s' is off; 'componentctl enable %ld' switches it on", word,
				(long)record->pid);
		else
			component_error_set(err, "profiling of '%.200s' is off, and it has no switch, as its signals are its own; start "
				"it again with --enable-pprof", word);
		r = -ECONNREFUSED;
	} else {
		r = of_server(ret, record->url, err);
	}
	if (r == -ENOENT)
		r = refuse(err, record->url, "is no address of a server, but stands in a record");
	ret->process = record->pid;
	name_it(ret, ret->word, strlen(ret->word));
	return r;
}

/* The number of a thread, as top -H shows it, stands for its process. */
static void
thread_leave(struct target *t)
{
	char path[TARGET_MAX + 16], process[PROC_STATUS_BYTES];
	long number;

	if (t->word[strspn(t->word, "0123456789")])
		return;
	snprintf(path, sizeof(path), "/proc/%s/status", t->word);
	number = proc_status_find(open(path, O_RDONLY | O_CLOEXEC), "\nTgid:", process) ? atol(process) : 0;
	if (!number || number == atol(t->word))
		return;
	fprintf(stderr, "%s is a thread of process %ld, which is taken as a whole\n", t->word, number);
	snprintf(t->word, sizeof(t->word), "%ld", number);
}

/* A record's program, a file here, or another process. */
static int
of_word(struct target *t, struct component_error *err)
{
	struct record record;
	int           r;

	thread_leave(t);
	r = record_find(t->word, &record, err);
	if (r == -ENOENT) {
		component_error_set(err, "%s", ""); /* it is no failure so far */
		return of_file(t, t->word) < 0 ? of_process(t) : 0;
	}
	return r < 0 ? r : target_of_record(t, t->word, &record, err);
}

int
target_find(struct target *ret, const char *word, struct component_error *err)
{
	int r;

	*ret = (struct target){ .is_file = false };
	if (!*word || strlen(word) > TARGET_MAX / 2)
		return refuse(err, word, "is no target; write " TARGETS);
	snprintf(ret->word, sizeof(ret->word), "%s", word);
	r = of_server(ret, word, err);
	if (r != -ENOENT)
		return r;
	r = strchr(word, '/') ? of_file(ret, word) : of_word(ret, err);
	if (r == -ENOENT)
		component_error_set(err, "'%.200s': no such %s; write " TARGETS, word, strchr(word, '/') ? "file" :
			"program and no such file");
	return r;
}

bool
target_is_stopped(const struct target *t)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/status", (int)t->process);
	return t->process && proc_status_state(open(path, O_RDONLY | O_CLOEXEC)) == 'T';
}
