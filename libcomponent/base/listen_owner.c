/*
 * listen_owner.c - who holds a port, for the message that says it is busy.
 *
 *     /proc/net/tcp, tcp6 --port--> inode --/proc/PID/fd--> PID --> command
 *
 * All of it is best effort: other users' descriptors cannot be read without
 * privilege, and a holder in another pid namespace is not in /proc at all; then
 * the message does without.  Nothing here can fail a start.
 *
 * What a stranger would get wrong: a listener on every interface holds the port of
 * each address of its family, and one on "::" may hold IPv4's as well.
 *
 * Why not NETLINK_SOCK_DIAG: it gives the same inode, and the walk through
 * /proc/PID/fd is needed with it too.
 *
 * Tests: tests/base/test_listen.c.
 */
#include <config.h>

#include "listen_owner.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "our_fd.h"

#define TCP_STATE_LISTEN 0x0a /* in the column "st" of /proc/net/tcp */
#define PROCESSES_MAX    8192 /* looked through; a start must not take seconds for a hint */
#define MAPPED           htonl(0xffff) /* the third word of an IPv4 address among those of IPv6 */
#define COMMAND_MAX      100  /* bytes of a program's name shown */

/* Has every address of a's family, or of both, b among them? */
static bool
is_wildcard_for(const uint32_t a[4], const uint32_t b[4])
{
	return !a[0] && !a[1] && !a[3] && (!a[2] || (a[2] == MAPPED && !b[0] && !b[1] && b[2] == MAPPED));
}

/* One line's local address against the wanted one; IPv4 is mapped. */
static bool
address_matches(const char *hex, const struct sockaddr *sa)
{
	uint32_t words[4] = { 0, 0, MAPPED }, want[4] = { 0, 0, MAPPED };
	size_t   count = strlen(hex) / 8;

	if (count != 1 && count != 4)
		return false;
	for (size_t i = 0; i < count; i++) {
		char word[9] = { 0 };

		memcpy(word, hex + 8 * i, 8);
		words[4 - count + i] = (uint32_t)strtoul(word, NULL, 16);
	}
	if (sa->sa_family == AF_INET)
		memcpy(&want[3], &((const struct sockaddr_in *)(const void *)sa)->sin_addr, 4);
	else
		memcpy(want, &((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr, 16);
	return is_wildcard_for(words, want) || is_wildcard_for(want, words) || memcmp(words, want, sizeof(want)) == 0;
}

static unsigned long
inode_in(const char *table, unsigned port, const struct sockaddr *sa)
{
	unsigned long inode = 0, found = 0;
	unsigned      local, state;
	char          line[512], address[40];
	FILE         *f = our_fd_fopen(table);

	while (f && !found && fgets(line, sizeof(line), f)) {
		/* sl: local:port remote:port st tx:rx tr:when retrnsmt uid timeout inode */
		if (sscanf(line, " %*u: %32[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*x:%*x %*x:%*x %*x %*u %*u %lu", address, &local,
			   &state, &inode) == 4 &&
		    state == TCP_STATE_LISTEN && local == port && address_matches(address, sa))
			found = inode;
	}
	if (f)
		our_fd_fclose(f);
	return found;
}

static bool
holds(const char *pid, const char *wanted)
{
	char           path[300], target[64];
	DIR           *dir;
	struct dirent *e;
	ssize_t        n;
	bool           found = false;

	snprintf(path, sizeof(path), "/proc/%s/fd", pid);
	dir = our_fd_opendir(path);
	while (dir && !found && (e = readdir(dir)) != NULL) {
		n = readlinkat(dirfd(dir), e->d_name, target, sizeof(target) - 1);
		if (n > 0) {
			target[n] = '\0';
			found = strcmp(target, wanted) == 0;
		}
	}
	if (dir)
		our_fd_closedir(dir);
	return found;
}

static pid_t
pid_of(unsigned long inode)
{
	char           wanted[64];
	DIR           *dir = our_fd_opendir("/proc");
	struct dirent *e;
	pid_t          found = 0;

	snprintf(wanted, sizeof(wanted), "socket:[%lu]", inode);
	for (int seen = 0; dir && !found && seen < PROCESSES_MAX && (e = readdir(dir)) != NULL;) {
		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		seen++;
		if (holds(e->d_name, wanted))
			found = (pid_t)atoi(e->d_name);
	}
	if (dir)
		our_fd_closedir(dir);
	return found;
}

void
listen_owner_pid(pid_t pid, char *buf, size_t size)
{
	char    path[64], command[COMMAND_MAX + 1];
	ssize_t n = 0;
	int     fd;

	if (pid <= 0)
		return;
	if (pid == getpid()) {
		snprintf(buf, size, "this process itself");
		return;
	}
	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	fd = our_fd_open(path, O_RDONLY, 0);
	if (fd >= 0) {
		n = read(fd, command, sizeof(command) - 1);
		our_fd_close(fd);
	}
	/* The program alone: arguments may hold passwords, and this is logged.
	 * Whatever could upset a terminal or a log line goes. */
	n = n > 0 ? (ssize_t)strnlen(command, (size_t)n) : 0;
	for (ssize_t i = 0; i < n; i++)
		if (!isprint((unsigned char)command[i]))
			command[i] = ' ';
	if (n > 0)
		snprintf(buf, size, "process %d (%.*s)", (int)pid, (int)n, command);
	else
		snprintf(buf, size, "process %d", (int)pid);
}

pid_t
listen_owner_process(const struct sockaddr *sa)
{
	int           saved = errno;
	unsigned      port = ntohs(((const struct sockaddr_in *)(const void *)sa)->sin_port);
	unsigned long inode = inode_in("/proc/thread-self/net/tcp", port, sa);
	pid_t         pid;

	if (!inode)
		inode = inode_in("/proc/thread-self/net/tcp6", port, sa);
	pid = inode ? pid_of(inode) : 0;
	errno = saved;
	return pid;
}

void
listen_owner_tcp(const struct sockaddr *sa, char *buf, size_t size)
{
	int saved = errno;

	listen_owner_pid(listen_owner_process(sa), buf, size);
	errno = saved;
}
