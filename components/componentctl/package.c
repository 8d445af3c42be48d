/*
 * package.c - which package has a file, by dpkg's own lists; rpm is asked by the command itself.
 *
 *     /var/lib/dpkg/info/redis-server.list ── "/usr/bin/redis-check-rdb" ──▶ apt-get install redis-server-dbgsym
 *
 * What a stranger would get wrong: on a system with a merged /usr older packages list /lib/x, and the kernel says /usr/lib/x.
 *
 * Tests: tests/componentctl/doctor.t
 */
#include <config.h>

#include "package.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DPKG     "/var/lib/dpkg/info"
#define PATH_MOST 4096

/* What a shell takes as it stands. */
static bool
is_plain(const char *text)
{
	return text[strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/_.+:-")] == '\0';
}

static bool
list_has(const char *list, const char *path)
{
	FILE       *file = fopen(list, "re");
	const char *merged = strncmp(path, "/usr/", 5) ? NULL : path + 4;
	char       *line = NULL;
	size_t      room = 0;
	bool        found = false;

	if (!file)
		return false;
	while (!found && getline(&line, &room, file) > 0) {
		line[strcspn(line, "\n")] = '\0';
		found = !strcmp(line, path) || (merged && !strcmp(line, merged));
	}
	free(line);
	fclose(file);
	return found;
}

/* "redis-server" of "redis-server:amd64.list"; false: no package has it. */
static bool
package_of(const char *folder, const char *path, char *ret, size_t size)
{
	DIR           *dir = opendir(folder);
	struct dirent *e;
	char           list[PATH_MOST];
	bool           found = false;

	while (dir && !found && (e = readdir(dir))) {
		size_t n = strlen(e->d_name);

		if (n < 6 || strcmp(e->d_name + n - 5, ".list") || snprintf(list, sizeof(list), "%s/%s", folder, e->d_name) >= PATH_MOST)
			continue;
		found = list_has(list, path);
		if (found)
			snprintf(ret, size, "%.*s", (int)(strcspn(e->d_name, ":") < n ? strcspn(e->d_name, ":") : n - 5), e->d_name);
	}
	if (dir)
		closedir(dir);
	return found;
}

bool
package_command(pid_t pid, const char *path, char ret[PACKAGE_COMMAND_MAX])
{
	char root[32] = "", folder[64], name[256], rpm[64];

	*ret = '\0';
	if (pid)
		snprintf(root, sizeof(root), "/proc/%d/root", (int)pid);
	snprintf(folder, sizeof(folder), "%s" DPKG, root);
	snprintf(rpm, sizeof(rpm), "%s/usr/bin/rpm", root);
	if (*path != '/' || !is_plain(path))
		return false;
	if (package_of(folder, path, name, sizeof(name) - sizeof("-dbgsym")))
		snprintf(ret, PACKAGE_COMMAND_MAX, "apt-get install %s", strcmp(name, "libc6") ? strcat(name, "-dbgsym") : "libc6-dbg");
	else if (access(folder, F_OK) && !access(rpm, X_OK) && strlen(path) < PACKAGE_COMMAND_MAX - 64)
		snprintf(ret, PACKAGE_COMMAND_MAX, "dnf debuginfo-install \"$(rpm -qf %s)\"", path);
	return *ret != '\0';
}
