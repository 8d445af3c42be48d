/*
 * process.c - the process that is looked at: this one, or another one from outside.
 *
 * What a stranger would get wrong: it is one for all of a program, and not a parameter, since the tables
 * of the unwinder, the list of generations and the stack table are one for all of a program as well.
 *
 * Tests: tests/componentctl/outside.t.
 */
#include <config.h>

#include "process.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "arch.h"
#include "our_fd.h"
#include "thread_id.h"

#define AUXV_MAX 64 /* entries; kernels have some twenty */

static struct {
	pid_t        pid; /* 0: this one */
	ElfW(auxv_t) auxv[AUXV_MAX];
	size_t       count;
} looked_at;

/* Of PID/NAME, as much as there is; or a negative errno. */
static ssize_t
read_start(const char *name, void *buf, size_t size)
{
	char    path[PROCESS_PATH_MAX];
	int     fd = our_fd_open(process_path(name, path), O_RDONLY, 0);
	ssize_t n;

	if (fd < 0)
		return fd;
	n = read(fd, buf, size);
	n = n < 0 ? -errno : n;
	our_fd_close(fd);
	return n;
}

int
process_look_at(pid_t pid)
{
	Elf64_Ehdr program;
	ssize_t    n;

	looked_at.pid = pid;
	looked_at.count = 0;
	n = read_start("exe", &program, sizeof(program));
	if (n < 0)
		return n == -ENOENT ? -ESRCH : (int)n;
	if (n < (ssize_t)sizeof(program) || program.e_ident[EI_CLASS] != ELFCLASS64 ||
	    (ARCH_ELF_MACHINE != EM_NONE && program.e_machine != ARCH_ELF_MACHINE))
		return -ENOEXEC;
	n = read_start("auxv", looked_at.auxv, sizeof(looked_at.auxv));
	if (n < 0)
		return (int)n;
	looked_at.count = (size_t)n / sizeof(looked_at.auxv[0]);
	return 0;
}

pid_t
process_other(void)
{
	return looked_at.pid;
}

const char *
process_path(const char *name, char buf[PROCESS_PATH_MAX])
{
	if (looked_at.pid)
		snprintf(buf, PROCESS_PATH_MAX, "/proc/%d/%s", (int)looked_at.pid, name);
	else
		snprintf(buf, PROCESS_PATH_MAX, "/proc/self/%s", name);
	return buf;
}

pid_t
process_memory_id(void)
{
	return looked_at.pid ? looked_at.pid : thread_id_self();
}

unsigned long
process_auxv(unsigned long type)
{
	if (!looked_at.pid)
		return getauxval(type);
	for (size_t i = 0; i < looked_at.count; i++)
		if (looked_at.auxv[i].a_type == type)
			return looked_at.auxv[i].a_un.a_val;
	return 0;
}
