/*
 * package.c - which package has a file: dpkg-query says it; rpm is asked by the command itself.
 *
 *     dpkg-query --search /usr/bin/redis-check-rdb ── "redis-server: /usr/bin/redis-check-rdb" ──▶ apt-get install redis-server-dbgsym
 *
 * What a stranger would get wrong: on a system with a merged /usr older packages list /lib/x, and the kernel says /usr/lib/x.
 *
 * Tests: tests/componentctl/doctor.t
 */
#include <config.h>

#include "package.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PATH_MOST 1024

/* What a shell and dpkg-query take as it stands. */
static bool
is_plain(const char *text)
{
	return text[strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/_.+:-")] == '\0';
}

/* "redis-server" of "redis-server:amd64: /path"; false: no package has it, or there is no dpkg-query. */
static bool
package_of(const char *root, const char *path, char *ret, size_t size)
{
	const char *merged = strncmp(path, "/usr/", 5) ? path : path + 4;
	char        command[2 * PATH_MOST + 128], line[PATH_MOST + 256];
	bool        found = false;
	FILE       *answer;

	/* --root is unknown before dpkg 1.21.  The folder is put together, as lintian would say that its files are read here. */
	snprintf(command, sizeof(command), "timeout 5 dpkg-query --admindir='%s%s/dpkg' --search %s %s 2>/dev/null", root, "/var/lib", path,
		merged);
	answer = popen(command, "re"); /* a container may have a pipe where dpkg's files are */
	while (answer && fgets(line, sizeof(line), answer)) {
		if (found || strstr(line, "diversion") || !strchr(line, ':'))
			continue;
		snprintf(ret, size, "%.*s", (int)strcspn(line, ":,"), line);
		found = is_plain(ret);
	}
	if (answer)
		pclose(answer);
	return found;
}

bool
package_command(pid_t pid, const char *path, char ret[PACKAGE_COMMAND_MAX])
{
	char root[32] = "", name[256], rpm[64];

	*ret = '\0';
	if (pid)
		snprintf(root, sizeof(root), "/proc/%d/root", (int)pid);
	snprintf(rpm, sizeof(rpm), "%s/usr/bin/rpm", root);
	if (*path != '/' || !is_plain(path) || strlen(path) >= PATH_MOST)
		return false;
	if (package_of(root, path, name, sizeof(name) - sizeof("-dbgsym")))
		snprintf(ret, PACKAGE_COMMAND_MAX, "apt-get install %s", strcmp(name, "libc6") ? strcat(name, "-dbgsym") : "libc6-dbg");
	else if (!access(rpm, X_OK) && strlen(path) < PACKAGE_COMMAND_MAX - 64)
		snprintf(ret, PACKAGE_COMMAND_MAX, "dnf debuginfo-install \"$(rpm -qf %s)\"", path);
	return *ret != '\0';
}
