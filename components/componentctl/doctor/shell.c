/*
 * shell.c - words of a command that is to be typed, as a shell takes them.
 *
 * An address of a record, a name of a file: whoever wrote them is not who types the command.
 *
 * Tests: tests/componentctl/doctor.t
 */
#include <config.h>

#include "shell.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char *
shell_word(const char *word, char ret[SHELL_WORD_MAX])
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789@%+=:,./_-";
	char             *to = ret;

	if (*word && word[strspn(word, plain)] == '\0') {
		snprintf(ret, SHELL_WORD_MAX, "%s", word);
		return ret;
	}
	*to++ = '\'';
	for (; *word && to < ret + SHELL_WORD_MAX - 6; word++)
		if (*word == '\'')
			to = stpcpy(to, "'\\''");
		else
			*to++ = *word;
	strcpy(to, "'");
	return ret;
}

void
shell_write(int64_t number, const char *path, char *ret, size_t size)
{
	char quoted[SHELL_WORD_MAX];

	/* sudo does not reach what the shell opens. */
	snprintf(ret, size, "echo %" PRId64 " %s %s", number, geteuid() ? "| sudo tee" : ">", shell_word(path, quoted));
}

const char *
shell_sudo(const char *command)
{
	static const char *const all[] = { "apt-get ", "dnf ", "install ", "mount ", "nsenter ", "prlimit ", "sysctl " };
	size_t                   size = strlen(command);

	/* A soft limit alone, as in "nofile=4096:", is its user's affair. */
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]) && geteuid(); i++)
		if (!strncmp(command, all[i], strlen(all[i])) && command[size - 1] != ':')
			return "sudo ";
	return "";
}

void
shell_curl(const char *words, const char *socket, const char *url, const char *what, char *ret, size_t size)
{
	static const char *const options[] = { " --unix-socket ", " --abstract-unix-socket " };
	char                     path[SHELL_WORD_MAX], address[SHELL_WORD_MAX], whole[PATH_MAX];
	bool                     is_abstract = *socket == '@';

	snprintf(whole, sizeof(whole), "%s/%s", url, what);
	snprintf(ret, size, "curl %s%s%s %s", words, *socket ? options[is_abstract] : "",
		*socket ? shell_word(socket + is_abstract, path) : "", shell_word(whole, address));
}
