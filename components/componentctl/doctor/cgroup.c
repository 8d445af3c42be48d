/*
 * cgroup.c - the memory that a process' control groups leave to it.
 *
 *     /proc/PID/cgroup ── "0::/a/b" ──▶ /sys/fs/cgroup/a/b/memory.max, .../a/memory.max, ...
 *
 * The least that one of them leaves counts.  Of the first version of control groups the controller's own tree is read.
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

struct left {
	int64_t limit, bytes; /* bytes that are left of it; limit -1: there is none */
	char    file[PATH_MOST + 64]; /* that the limit stands in */
};

/* From folder up to top. */
static void
look_up(char *folder, size_t top, const char *limit_name, const char *used_name, struct left *ret)
{
	for (char *slash = folder; slash; *slash = '\0') {
		int64_t limit = number_in(folder, limit_name), used = number_in(folder, used_name);

		if (limit >= 0 && limit < NO_LIMIT && used >= 0 && (ret->limit < 0 || limit - used < ret->bytes)) {
			ret->limit = limit;
			ret->bytes = limit - used;
			snprintf(ret->file, sizeof(ret->file), "%s/%s", folder, limit_name);
		}
		slash = strlen(folder) > top ? strrchr(folder, '/') : NULL;
		if (!slash)
			break;
	}
}

void
facts_cgroup(pid_t pid, struct findings *f)
{
	static const char two[] = "/sys/fs/cgroup", one[] = "/sys/fs/cgroup/memory";
	char              line[PATH_MOST], folder[PATH_MOST + 32], quoted[SHELL_WORD_MAX], command[SHELL_WORD_MAX + 64];
	struct left       left = { .limit = -1 };
	FILE             *file;

	snprintf(line, sizeof(line), "/proc/%d/cgroup", (int)pid);
	file = fopen(line, "re");
	while (file && fgets(line, sizeof(line), file)) {
		char *path = strrchr(line, ':');
		bool  is_two = !strncmp(line, "0::", 3);

		line[strcspn(line, "\n")] = '\0';
		if (!path || (!is_two && !strstr(line, ":memory:")))
			continue;
		snprintf(folder, sizeof(folder), "%s%s", is_two ? two : one, path + 1);
		look_up(folder, is_two ? sizeof(two) - 1 : sizeof(one) - 1, is_two ? "memory.max" : "memory.limit_in_bytes",
			is_two ? "memory.current" : "memory.usage_in_bytes", &left);
	}
	if (file)
		fclose(file);
	snprintf(command, sizeof(command), "echo %" PRId64 " > %s", left.limit + LEAST, shell_word(left.file, quoted));
	if (left.limit < 0)
		findings_ok(f, "memory", NULL, "no limit of a control group is known");
	else if (left.bytes < LEAST)
		findings_warn(f, "memory", command, "%" PRId64 " of %" PRId64 " MiB are left to its control group: a profile may bring the kernel to "
			"end it; raise the limit, or lower --profiling-memory", left.bytes / (1 << 20), left.limit >> 20);
	else
		findings_ok(f, "memory", NULL, "%" PRId64 " of %" PRId64 " MiB are left to its control group", left.bytes >> 20,
			left.limit >> 20);
}
