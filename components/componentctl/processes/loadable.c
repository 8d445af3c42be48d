/*
 * loadable.c - reads the heads of a program's files as the kernel and the loader would.
 *
 * What a stranger would get wrong:
 * - A program that gains privileges when it starts has its LD_PRELOAD ignored without a word: set-user-ID,
 *   set-group-ID, and file capabilities.
 * - A script is what its interpreter is; that may be a script as well, so often as the kernel follows.
 * - env is no interpreter: it looks for one in PATH, and runs that in its own place.  The agent would be in env alone.
 * - musl's loader loads the agent, and does not find glibc's functions for it: it ends the program.
 *
 * Tests: tests/componentctl/run.t, tests/componentctl/doctor.t.
 */
#include <config.h>

#include "loadable.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "text.h"

#define SCRIPTS_MAX 5   /* as the kernel: then it says ELOOP */
#define HEAD_BYTES  256 /* BINPRM_BUF_SIZE */
#define WORDS_MAX   (HEAD_BYTES / 2)
#define OUTSIDE     "; start it as always, and write 'componentctl profile PID', which looks at it from outside"

int
loadable_find(const char *word, char ret[PATH_MAX], struct component_error *err)
{
	const char *path = getenv("PATH"), *end;
	int         r = -ENOENT;

	if (strchr(word, '/')) {
		if (strlen(word) < PATH_MAX && !access(word, X_OK)) {
			strcpy(ret, word);
			return 0;
		}
		r = -errno;
	}
	for (path = path ? path : "/usr/local/bin:/usr/bin:/bin"; !strchr(word, '/') && path; path = *end ? end + 1 : NULL) {
		struct stat st;

		end = path + strcspn(path, ":");
		if (snprintf(ret, PATH_MAX, "%.*s%s%s", (int)(end - path), path, end > path ? "/" : "", word) < PATH_MAX &&
		    !access(ret, X_OK) && !stat(ret, &st) && S_ISREG(st.st_mode))
			return 0;
	}
	component_error_set(err, r == -ENOENT ? "Failed to find command %.*s" : "cannot run %.*s: %s", TEXT_QUOTED_MAX, word,
		strerror(-r));
	return r;
}

static int
refuse(int r, const char *path, struct component_error *err, const char *why)
{
	component_error_set(err, "%s %s", path, why);
	return r;
}

/* The loader that a dynamic program names; "" where it names none. */
static int
read_interpreter(int fd, const ElfW(Ehdr) *head, char buf[PATH_MAX])
{
	ElfW(Phdr) p;
	ssize_t    n;

	*buf = '\0';
	for (unsigned i = 0; i < head->e_phnum; i++) {
		n = pread(fd, &p, sizeof(p), (off_t)(head->e_phoff + i * sizeof(p)));
		if (n != (ssize_t)sizeof(p))
			return -ENOEXEC;
		if (p.p_type != PT_INTERP)
			continue;
		if (p.p_filesz == 0 || p.p_filesz >= PATH_MAX)
			return -ENOEXEC;
		n = pread(fd, buf, p.p_filesz, (off_t)p.p_offset);
		buf[n > 0 ? n : 0] = '\0';
		return 0;
	}
	return 0;
}

/* Of the processor that we run on; EM_NONE: it cannot be read. */
static unsigned
own_machine(void)
{
	ElfW(Ehdr) own;
	int        fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	ssize_t    n = fd < 0 ? -1 : pread(fd, &own, sizeof(own), 0);

	if (fd >= 0)
		close(fd);
	return n == (ssize_t)sizeof(own) ? own.e_machine : EM_NONE;
}

static int
check_elf(int fd, const char *path, const ElfW(Ehdr) *head, struct component_error *err)
{
	unsigned own = own_machine();
	char     interpreter[PATH_MAX];

	if (head->e_ident[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) || (own != EM_NONE && head->e_machine != own) ||
	    head->e_phentsize != sizeof(ElfW(Phdr)))
		return refuse(-ENOEXEC, path, err, "is for another kind of processor, which the agent is not built for; "
			"use the libcomponent that is");
	if (read_interpreter(fd, head, interpreter))
		return refuse(-ENOEXEC, path, err, "is damaged: its program headers cannot be read");
	if (!*interpreter)
		return refuse(-ENOTSUP, path, err, "is linked statically, so nothing can be loaded into it" OUTSIDE);
	if (strstr(interpreter, "ld-musl"))
		return refuse(-ENOTSUP, path, err, "is linked with musl, and the agent needs glibc" OUTSIDE);
	return 0;
}

/* As the kernel sees it, and tells the loader.  Root has no capabilities to gain. */
static bool
gains_privileges(const char *path, const struct stat *st)
{
	char           capabilities[64];
	struct statvfs fs;

	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 || (!statvfs(path, &fs) && fs.f_flag & ST_NOSUID))
		return false;
	return (st->st_mode & S_ISUID && st->st_uid != geteuid()) ||
	       ((st->st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && st->st_gid != getegid()) ||
	       (getuid() && getxattr(path, "security.capability", capabilities, sizeof(capabilities)) > 0);
}

static int
refuse_gains(const char *path, struct component_error *err)
{
	return refuse(-ENOTSUP, path, err, "gains privileges when it starts (set-user-ID, set-group-ID or file capabilities), and the "
		"loader then loads nothing into it" OUTSIDE);
}

/* A program that cannot be read: it may be run all the same.  i: how many scripts name it. */
static int
check_unread(const char *path, int i, struct component_error *err)
{
	struct stat st;
	int         r = -errno;

	if (!stat(path, &st))
		return gains_privileges(path, &st) ? refuse_gains(path, err) : 0;
	if (r != -ENOENT || i == 0)
		return 0;
	if (strchr(path, '\r'))
		return refuse(r, "the script", err, "has lines that end in CR LF, and so its interpreter's name does; write lines that end in LF");
	return refuse(r, path, err, "is not there, and the script names it as its interpreter");
}

/* What "#!" names, and the rest of its line as the kernel makes one argument of it, "" for none; in place.  NULL: there is none. */
static char *
interpreter_of(char *head, char **ret_argument)
{
	char *name, *end;

	if (head[0] != '#' || head[1] != '!')
		return NULL;
	name = head + 2 + strspn(head + 2, " \t");
	name[strcspn(name, "\n")] = '\0';
	for (end = name + strlen(name); end > name && strchr(" \t", end[-1]);)
		*--end = '\0';
	end = name + strcspn(name, " \t");
	*ret_argument = end + strspn(end, " \t");
	*end = '\0';
	return *name ? name : NULL;
}

/* The words that env would make of its argument, in place, and how many; 0: it is not env, or that would do more. */
static size_t
env_words(const char *name, char *argument, char *words[WORDS_MAX])
{
	const char *last = strrchr(name, '/');
	bool        splits = !strncmp(argument, "-S", 2);
	size_t      count = 0;
	char       *rest = NULL;

	if (strcmp(last ? last + 1 : name, "env") != 0 || access(name, X_OK) || strpbrk(argument, splits ? "\\'\"$#" : " \t"))
		return 0;
	for (char *word = strtok_r(splits ? argument + 2 : argument, " \t", &rest); word; word = strtok_r(NULL, " \t", &rest))
		words[count++] = word;
	return count && words[0][0] != '-' && !strchr(words[0], '=') ? count : 0;
}

/* What runs a script goes into path, and if env would, the words that it puts before the script; false: it is no script. */
static bool
next_program(char *head, char path[PATH_MAX], char *words[WORDS_MAX], size_t *ret_count)
{
	char *argument, *name = interpreter_of(head, &argument);

	*ret_count = name ? env_words(name, argument, words) : 0;
	if (*ret_count && loadable_find(words[0], path, NULL))
		*ret_count = 0;
	if (name && !*ret_count)
		snprintf(path, PATH_MAX, "%s", name);
	return name != NULL;
}

/* How many bytes there are; with a NUL behind them. */
static ssize_t
head_read(int fd, char head[HEAD_BYTES + 1])
{
	ssize_t n = pread(fd, head, HEAD_BYTES, 0);

	head[n > 0 ? n : 0] = '\0';
	return n;
}

int
loadable_check(const char *path, struct component_error *err)
{
	char        now[PATH_MAX], *words[WORDS_MAX];
	char        head[HEAD_BYTES + 1] __attribute__((aligned(16)));
	struct stat st;
	ssize_t     n;
	size_t      count;
	int         fd, r = 0;

	snprintf(now, sizeof(now), "%s", path);
	for (int i = 0; i <= SCRIPTS_MAX; i++) {
		bool is_script;

		fd = open(now, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			return check_unread(now, i, err);
		n = fstat(fd, &st) ? -1 : head_read(fd, head);
		is_script = n > 0 && next_program(head, now, words, &count);
		if (!is_script && n >= (ssize_t)sizeof(ElfW(Ehdr)) && !memcmp(head, ELFMAG, SELFMAG))
			r = gains_privileges(now, &st) ? refuse_gains(now, err) : check_elf(fd, now, (const void *)head, err);
		close(fd);
		if (!is_script)
			return r;
	}
	return 0; /* the kernel refuses it, too */
}

char **
loadable_past_env(char path[PATH_MAX], char **words)
{
	char   head[HEAD_BYTES + 1] = "", program[PATH_MAX], *found[WORDS_MAX], **all, *text;
	size_t count, given = 0, size;
	int    fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		head_read(fd, head);
		close(fd);
	}
	if (!next_program(head, program, found, &count) || !count)
		return NULL;
	while (words[given])
		given++;
	size = (count + given + 1) * sizeof(*all);
	all = malloc(size + HEAD_BYTES + PATH_MAX);
	if (!all)
		return NULL;
	text = (char *)all + size;
	for (size_t i = 0; i < count; i++, text += strlen(text) + 1)
		all[i] = strcpy(text, found[i]);
	all[count] = strcpy(text, path);
	memcpy(all + count + 1, words + 1, given * sizeof(*all));
	strcpy(path, program);
	return all;
}

/* The loader reads LD_PRELOAD as a list, and $ORIGIN and the like in it. */
static int
agent_path_check(const char *path, struct component_error *err)
{
	if (!strpbrk(path, ": $"))
		return 0;
	component_error_set(err, "the agent cannot be loaded from %s: LD_PRELOAD takes no ':', '$' or blank in a path; install it in another "
		"folder", path);
	return -ENOENT;
}

int
loadable_agent(char ret[PATH_MAX], struct component_error *err)
{
	char    own[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", own, sizeof(own) - 1);

	own[n > 0 ? n : 0] = '\0';
	if (snprintf(ret, PATH_MAX, "%s/../preload/" LOADABLE_AGENT, dirname(own)) < PATH_MAX && !access(ret, R_OK))
		return agent_path_check(ret, err);
	snprintf(ret, PATH_MAX, "%s/" LOADABLE_AGENT, LIBDIR);
	if (!access(ret, R_OK))
		return agent_path_check(ret, err);
	component_error_set(err, "the agent is not here: %s cannot be read; install the Debian package libcomponent-preload "
		"(configure's summary says whether this build has it), or run the program alone: --enable-profiling=false", ret);
	return -ENOENT;
}
