/*
 * cgroup.c - the memory that a process' control groups leave to it.
 *
 *     /proc/PID/cgroup ── "0::/a/b" ──▶ /sys/fs/cgroup/a/b/memory.max, .../a/memory.max, ...
 *
 * The least that one of them leaves counts.  Pages of files that were not used lately are taken back before anything is
 * ended, so they count as left, as for the kubelet (memory.stat).  Of the first version of control groups the controller's own
 * tree is read.
 *
 * Tests: tests/componentctl/doctor.t
 */
#include <config.h>

#include "facts.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shell.h"

#define LEAST    ((int64_t)64 << 20) /* bytes: --profiling-memory, and as much for tables and answers */
#define NO_LIMIT ((int64_t)1 << 60)  /* beyond that the first version means none */
#define PATH_MOST 4096

/* -1: there is no such file, or no number in it ("max"). */
static int64_t
number_in(const char *folder, const char *name)
{
	char    path[PATH_MOST + 64], text[32] = "";
	FILE   *file;
	int64_t n;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "re");
	n = file && fgets(text, sizeof(text), file) && *text >= '0' && *text <= '9' ? strtoll(text, NULL, 10) : -1;
	if (file)
		fclose(file);
	return n;
}

/* Bytes of such pages. */
static int64_t
reclaimable(const char *folder, const char *key)
{
	char    path[PATH_MOST + 64], line[128];
	size_t  size = strlen(key);
	int64_t n = 0;
	FILE   *file;

	snprintf(path, sizeof(path), "%s/memory.stat", folder);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, key, size) && line[size] == ' ')
			n = strtoll(line + size, NULL, 10);
	if (file)
		fclose(file);
	return n;
}

/* The names of a version's files. */
struct version {
	const char *top, *limit, *used, *inactive;
};

/* -1: not known. */
static int64_t
used_of(const char *folder, const struct version *v)
{
	int64_t used = number_in(folder, v->used), spare = reclaimable(folder, v->inactive);

	return used < 0 ? -1 : used > spare ? used - spare : 0;
}

struct left {
	int64_t limit, bytes; /* bytes that are left of it; limit -1: there is none */
	char    file[PATH_MOST + 64]; /* that the limit stands in */
};

/* From folder up to top. */
static void
look_up(char *folder, const struct version *v, struct left *ret)
{
	for (char *slash = folder; slash; *slash = '\0') {
		int64_t limit = number_in(folder, v->limit), used = used_of(folder, v);

		if (limit >= 0 && limit < NO_LIMIT && used >= 0 && (ret->limit < 0 || limit - used < ret->bytes)) {
			ret->limit = limit;
			ret->bytes = limit - used;
			snprintf(ret->file, sizeof(ret->file), "%s/%s", folder, v->limit);
		}
		slash = strlen(folder) > strlen(v->top) ? strrchr(folder, '/') : NULL;
		if (!slash)
			break;
	}
}

void
facts_cgroup(pid_t pid, struct findings *f)
{
	static const struct version one = { "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
		"total_inactive_file" };
	static const struct version two = { "/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file" };
	char        line[PATH_MOST], folder[PATH_MOST + 32], command[SHELL_WORD_MAX + 64];
	struct left left = { .limit = -1 };
	FILE       *file;

	snprintf(line, sizeof(line), "/proc/%d/cgroup", (int)pid);
	file = fopen(line, "re");
	while (file && fgets(line, sizeof(line), file)) {
		char                 *path = strrchr(line, ':');
		bool                  is_two = !strncmp(line, "0::", 3);
		const struct version *v = is_two ? &two : &one;

		line[strcspn(line, "\n")] = '\0';
		if (!path || (!is_two && !strstr(line, ":memory:")))
			continue;
		snprintf(folder, sizeof(folder), "%s%s", v->top, strcmp(path + 1, "/") ? path + 1 : "");
		look_up(folder, v, &left);
	}
	if (file)
		fclose(file);
	shell_write(left.limit + LEAST, left.file, command, sizeof(command));
	if (left.limit < 0)
		findings_ok(f, "memory", NULL, "no limit of a control group is known");
	else if (left.bytes < LEAST)
		findings_warn(f, "memory", command, "%" PRId64 " of %" PRId64 " MiB are left to its control group: a profile may bring the kernel to "
			"end it; raise the limit, or lower --profiling-memory", left.bytes / (1 << 20), left.limit >> 20);
	else
		findings_ok(f, "memory", NULL, "%" PRId64 " of %" PRId64 " MiB are left to its control group", left.bytes >> 20,
			left.limit >> 20);
}
