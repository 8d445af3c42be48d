/*
 * test_listen.c - from an address to sockets that listen.
 *
 * Real sockets on loopback, always with port 0 first: which addresses a form
 * covers, who is named when a port is busy, what becomes of files at a unix
 * socket's path, and which inherited sockets are taken.
 */
#include <config.h>

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "listen.h"
#include "skip.h"

static int listens_at_once_more = -1; /* it is bound, and listens before the second connection that is tried */
static int takes_its_place = -1;      /* it is bound there when the first connection has been refused */

/* In place of libc's. */
int
connect(int fd, const struct sockaddr *sa, socklen_t size)
{
	static int tried;
	int        r, error;

	if (listens_at_once_more >= 0 && tried++ == 1)
		listen(listens_at_once_more, 1);
	r = (int)syscall(SYS_connect, fd, sa, size);
	error = errno;
	if (takes_its_place >= 0) {
		unlink(((const struct sockaddr_un *)(const void *)sa)->sun_path);
		assert_int_equal(bind(takes_its_place, sa, size), 0);
		takes_its_place = -1;
	}
	errno = error;
	return r;
}

/* Of one block, as freeaddrinfo(3) takes it. */
static struct addrinfo *
answer(const char *address, struct addrinfo *next)
{
	struct addrinfo    *a = calloc(1, sizeof(*a) + sizeof(struct sockaddr_in));
	struct sockaddr_in *in = (void *)(a + 1);

	in->sin_family = AF_INET;
	inet_pton(AF_INET, address, &in->sin_addr);
	a->ai_family = AF_INET;
	a->ai_addr = (void *)in;
	a->ai_addrlen = sizeof(*in);
	a->ai_next = next;
	return a;
}

/* In place of libc's, for three names: one has an address twice, as from two lines of /etc/hosts, and two have ten. */
int
getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **ret)
{
	int (*next)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
	char address[16];

	*ret = NULL;
	if (!strcmp(node, "twice.test")) {
		*ret = answer("127.0.0.1", answer("127.0.0.1", NULL));
		return 0;
	}
	if (!strcmp(node, "many.test") || !strcmp(node, "far.test")) {
		for (int i = 10; i > 0; i--) {
			snprintf(address, sizeof(address), "%s.%d", *node == 'f' ? "240.0.0" : "127.0.0", i);
			*ret = answer(address, *ret);
		}
		return 0;
	}
	*(void **)&next = dlsym(RTLD_NEXT, "getaddrinfo");
	return next(node, service, hints, ret);
}

static int
open_text(const char *text, struct listen_set *set, struct component_error *err)
{
	struct address a;
	char           why[ADDRESS_WHY_MAX];

	if (address_parse(text, &a, why, sizeof(why)) < 0)
		fail_msg("%s: %s", text, why);
	return listen_open(&a, set, err);
}

static void
must_open(const char *text, struct listen_set *set)
{
	struct component_error err = COMPONENT_ERROR_INIT;

	if (open_text(text, set, &err) < 0)
		fail_msg("%s: %s", text, err.text);
}

static void
must_say(const struct component_error *err, const char *part)
{
	if (!strstr(err->text, part))
		fail_msg("\"%s\" does not say \"%s\"", err->text, part);
}

/* 0 if a connection can be made, else the negative errno. */
static int
try4(const char *host, unsigned port)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	int                fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), r;

	inet_pton(AF_INET, host, &in.sin_addr);
	r = connect(fd, (struct sockaddr *)&in, sizeof(in)) < 0 ? -errno : 0;
	close(fd);
	return r;
}

static int
try6(unsigned port)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port) };
	int                 fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0), r;

	in6.sin6_addr = in6addr_loopback;
	r = fd < 0 || connect(fd, (struct sockaddr *)&in6, sizeof(in6)) < 0 ? -errno : 0;
	if (fd >= 0)
		close(fd);
	return r;
}

static bool
have_ipv6(void)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
	int                 fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool                have;

	in6.sin6_addr = in6addr_loopback;
	have = fd >= 0 && bind(fd, (struct sockaddr *)&in6, sizeof(in6)) == 0;
	if (fd >= 0)
		close(fd);
	return have;
}

static void
a_free_port_is_told_with_address_and_url(void **state)
{
	struct listen_set set;
	char              want[64];

	(void)state;
	must_open("127.0.0.1:0", &set);
	assert_int_equal(set.count, 1);
	assert_int_not_equal(set.sockets[0].port, 0);
	assert_true(set.sockets[0].loopback);
	assert_false(set.sockets[0].is_unix);
	snprintf(want, sizeof(want), "127.0.0.1:%u", set.sockets[0].port);
	assert_string_equal(set.sockets[0].address, want);
	snprintf(want, sizeof(want), "http://127.0.0.1:%u", set.sockets[0].port);
	assert_string_equal(set.sockets[0].url, want);
	assert_int_equal(try4("127.0.0.1", set.sockets[0].port), 0);
	listen_close(&set);
	assert_int_equal(set.count, 0);
}

static void
a_port_alone_is_every_interface_of_both_families(void **state)
{
	struct listen_set set;
	char              want[64];

	(void)state;
	must_open(":0", &set);
	assert_int_equal(set.count, 1);
	assert_false(set.sockets[0].loopback);
	assert_int_equal(try4("127.0.0.1", set.sockets[0].port), 0);
	if (have_ipv6())
		assert_int_equal(try6(set.sockets[0].port), 0);
	snprintf(want, sizeof(want), "http://localhost:%u", set.sockets[0].port);
	assert_string_equal(set.sockets[0].url, want);
	listen_close(&set);
}

static void
zeros_are_ipv4_alone(void **state)
{
	struct listen_set set;

	(void)state;
	must_open("0.0.0.0:0", &set);
	assert_false(set.sockets[0].loopback);
	assert_int_equal(try4("127.0.0.1", set.sockets[0].port), 0);
	if (have_ipv6())
		assert_int_equal(try6(set.sockets[0].port), -ECONNREFUSED);
	listen_close(&set);
}

static void
ipv6_colons_are_both_families_and_loopback6_is_one(void **state)
{
	struct listen_set set;

	(void)state;
	if (!have_ipv6())
		SKIP("this kernel has no IPv6");
	must_open("[::]:0", &set);
	assert_int_equal(try4("127.0.0.1", set.sockets[0].port), 0);
	assert_int_equal(try6(set.sockets[0].port), 0);
	listen_close(&set);
	must_open("[::1]:0", &set);
	assert_true(set.sockets[0].loopback);
	assert_int_equal(try6(set.sockets[0].port), 0);
	assert_int_equal(try4("127.0.0.1", set.sockets[0].port), -ECONNREFUSED);
	listen_close(&set);
}

static void
localhost_is_both_families_on_one_port(void **state)
{
	struct listen_set set;

	(void)state;
	must_open("localhost:0", &set);
	assert_int_equal(try4("127.0.0.1", set.sockets[0].port), 0);
	if (have_ipv6()) {
		assert_int_equal(set.count, 2);
		assert_int_equal(set.sockets[0].port, set.sockets[1].port);
		assert_int_equal(try6(set.sockets[0].port), 0);
		assert_string_equal(set.note, "");
	}
	listen_close(&set);
}

static void
a_name_needs_one_free_address_and_notes_the_other(void **state)
{
	struct listen_set taken, set;
	char              text[64];

	(void)state;
	if (!have_ipv6())
		SKIP("this kernel has no IPv6");
	must_open("[::1]:0", &taken);
	snprintf(text, sizeof(text), "localhost:%u", taken.sockets[0].port);
	must_open(text, &set);
	assert_int_equal(set.count, 1);
	assert_non_null(strstr(set.note, "[::1]:"));
	assert_non_null(strstr(set.note, "Address already in use"));
	listen_close(&set);
	listen_close(&taken);
}

static void
a_name_that_has_an_address_twice_is_served_once_there(void **state)
{
	struct listen_set set;

	(void)state;
	must_open("twice.test:0", &set);
	assert_int_equal(set.count, 1);
	assert_string_equal(set.note, "");
	assert_int_equal(try4("127.0.0.1", set.sockets[0].port), 0);
	listen_close(&set);
}

static void
addresses_for_which_there_is_no_room_are_told(void **state)
{
	struct component_error err = COMPONENT_ERROR_INIT;
	struct listen_set      set;

	(void)state;
	must_open("many.test:0", &set);
	assert_int_equal(set.count, LISTEN_MAX);
	assert_string_equal(set.note, "many.test:0: this name has 2 more addresses, which are not served; name those that are wanted");
	listen_close(&set);
	assert_true(open_text("far.test:0", &set, &err) < 0); /* those are nobody's */
	must_say(&err, "; 2 more addresses of that name were not tried");
}

static void
an_ipv4_address_among_those_of_ipv6_is_ipv4s(void **state)
{
	struct listen_set set;

	(void)state;
	if (!have_ipv6())
		SKIP("this kernel has no IPv6");
	must_open("[::ffff:127.0.0.1]:0", &set);
	assert_true(set.sockets[0].loopback);
	assert_int_equal(try4("127.0.0.1", set.sockets[0].port), 0);
	assert_int_equal(try6(set.sockets[0].port), -ECONNREFUSED);
	listen_close(&set);
}

static void
sockets_are_closed_on_exec_nonblocking_and_above_two(void **state)
{
	struct listen_set set;
	int               status;
	pid_t             pid = fork();

	(void)state;
	if (pid == 0) {
		close(0);
		close(1);
		close(2);
		if (open_text("127.0.0.1:0", &set, NULL) < 0)
			_exit(10);
		if (set.sockets[0].fd < 3)
			_exit(11);
		if (!(fcntl(set.sockets[0].fd, F_GETFD) & FD_CLOEXEC))
			_exit(12);
		if (!(fcntl(set.sockets[0].fd, F_GETFL) & O_NONBLOCK))
			_exit(13);
		if (fcntl(0, F_GETFD) >= 0 || fcntl(1, F_GETFD) >= 0 || fcntl(2, F_GETFD) >= 0)
			_exit(14);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void
a_busy_port_names_who_holds_it(void **state)
{
	struct component_error err = COMPONENT_ERROR_INIT;
	struct listen_set      taken, set;
	char                   text[64], want[128];
	int                    ready[2], status, kept;
	pid_t                  pid;
	char                   byte;

	(void)state;
	must_open("127.0.0.1:0", &taken);
	snprintf(text, sizeof(text), "127.0.0.1:%u", taken.sockets[0].port);
	memset(&set, 0x5a, sizeof(set));
	assert_int_equal(open_text(text, &set, &err), -EADDRINUSE);
	snprintf(want, sizeof(want), "%s: Address already in use, held by this process itself", text);
	assert_string_equal(err.text, want);
	assert_int_equal(((unsigned char *)&set)[0], 0x5a);
	/* The wildcard collides with it too. */
	snprintf(text, sizeof(text), ":%u", taken.sockets[0].port);
	assert_int_equal(open_text(text, &set, &err), -EADDRINUSE);
	must_say(&err, "held by this process itself");

	/* Another process: a child that alone keeps the socket, by a number that is not ours. */
	assert_int_equal(pipe(ready), 0);
	kept = dup(taken.sockets[0].fd);
	pid = fork();
	if (pid == 0) {
		close(ready[1]);
		_exit(read(ready[0], &byte, 1) < 0);
	}
	close(kept);
	snprintf(text, sizeof(text), "127.0.0.1:%u", taken.sockets[0].port);
	listen_close(&taken);
	assert_int_equal(open_text(text, &set, &err), -EADDRINUSE);
	snprintf(want, sizeof(want), "held by process %d (", (int)pid);
	must_say(&err, want);
	must_say(&err, "test_listen)");
	close(ready[0]);
	close(ready[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
}

/* A listener on IPv4's address does not hold the port on ::1. */
static void
who_holds_a_port_of_ipv6_is_not_who_has_it_of_ipv4(void **state)
{
	struct listen_set taken, set;
	char              text[64], want[128];
	int               ready[2], status, kept;
	pid_t             pid;
	char              byte;

	(void)state;
	if (!have_ipv6())
		SKIP("this kernel has no IPv6");
	must_open("[::1]:0", &taken);
	assert_int_equal(pipe(ready), 0);
	kept = dup(taken.sockets[0].fd);
	pid = fork();
	if (pid == 0) {
		close(ready[1]);
		_exit(read(ready[0], &byte, 1) < 0);
	}
	close(kept);
	snprintf(text, sizeof(text), "localhost:%u", taken.sockets[0].port);
	listen_close(&taken);
	snprintf(want, sizeof(want), "held by process %d (", (int)pid);
	must_open(text, &set);
	close(ready[0]);
	close(ready[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (!strstr(set.note, want))
		fail_msg("\"%s\" does not say \"%s\"", set.note, want);
	listen_close(&set);
}

static void
what_cannot_be_had_says_why(void **state)
{
	struct component_error err = COMPONENT_ERROR_INIT;
	struct listen_set      set;

	(void)state;
	assert_int_equal(open_text("192.0.2.1:0", &set, &err), -EADDRNOTAVAIL);
	must_say(&err, "192.0.2.1:0: Cannot assign requested address; no interface of this machine");
	assert_int_equal(open_text("[fe80::1%nosuchif]:0", &set, &err), -ENODEV);
	must_say(&err, "[fe80::1%nosuchif]:0: no interface 'nosuchif' on this machine");
	assert_int_equal(open_text("no-such-host.invalid:0", &set, &err), -ENOENT);
	must_say(&err, "no-such-host.invalid:0: cannot resolve host 'no-such-host.invalid': ");
}

static char dir[] = "/tmp/component-test-XXXXXX";

static void
a_unix_socket_has_mode_0600_whatever_the_umask(void **state)
{
	static const mode_t masks[] = { 0, 022, 0177, 0777 };
	struct listen_set   set;
	struct stat         st;
	char                text[128];

	(void)state;
	snprintf(text, sizeof(text), "unix:%s/mode.sock", dir);
	for (size_t i = 0; i < sizeof(masks) / sizeof(masks[0]); i++) {
		mode_t before = umask(masks[i]);

		must_open(text, &set);
		assert_int_equal(umask(before), masks[i]);
		assert_int_equal(stat(text + 5, &st), 0);
		assert_int_equal(st.st_mode & 07777, 0600);
		assert_true(set.sockets[0].is_unix);
		assert_string_equal(set.sockets[0].address, text);
		listen_close(&set);
		assert_int_equal(stat(text + 5, &st), -1);
	}
}

static void
a_stale_socket_is_replaced_and_a_live_one_is_busy(void **state)
{
	struct component_error err = COMPONENT_ERROR_INIT;
	struct listen_set      set, other;
	char                   text[128];
	int                    stale;
	struct sockaddr_un     un = { .sun_family = AF_UNIX };

	(void)state;
	snprintf(text, sizeof(text), "unix:%s/stale.sock", dir);
	snprintf(un.sun_path, sizeof(un.sun_path), "%s/stale.sock", dir);
	stale = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(stale, (struct sockaddr *)&un, sizeof(un)), 0);
	close(stale);
	must_open(text, &set);
	assert_int_equal(open_text(text, &other, &err), -EADDRINUSE);
	must_say(&err, "Address already in use, held by this process itself");
	listen_close(&set);
}

/* As when two start there at the same time. */
static void
a_socket_that_is_bound_and_is_about_to_listen_is_busy(void **state)
{
	struct component_error err = COMPONENT_ERROR_INIT;
	struct listen_set      set;
	char                   text[128];
	struct stat            before, after;
	struct sockaddr_un     un = { .sun_family = AF_UNIX };
	int                    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), r;

	(void)state;
	snprintf(text, sizeof(text), "unix:%s/young.sock", dir);
	snprintf(un.sun_path, sizeof(un.sun_path), "%s/young.sock", dir);
	assert_int_equal(bind(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	assert_int_equal(lstat(un.sun_path, &before), 0);
	listens_at_once_more = fd;
	r = open_text(text, &set, &err);
	listens_at_once_more = -1;
	assert_int_equal(r, -EADDRINUSE);
	assert_int_equal(lstat(un.sun_path, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	close(fd);
	unlink(un.sun_path);
}

static void
a_socket_that_has_taken_a_stale_ones_place_stays(void **state)
{
	static const struct timespec long_ago[2] = { { .tv_sec = 1000000000 }, { .tv_sec = 1000000000 } };
	struct component_error       err = COMPONENT_ERROR_INIT;
	struct listen_set            set;
	char                         text[128];
	struct sockaddr_un           un = { .sun_family = AF_UNIX };
	int                          stale = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int                          fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)state;
	snprintf(text, sizeof(text), "unix:%s/taken.sock", dir);
	snprintf(un.sun_path, sizeof(un.sun_path), "%s/taken.sock", dir);
	assert_int_equal(bind(stale, (struct sockaddr *)&un, sizeof(un)), 0);
	close(stale);
	assert_int_equal(utimensat(AT_FDCWD, un.sun_path, long_ago, 0), 0);
	takes_its_place = fd;
	assert_int_equal(open_text(text, &set, &err), -EADDRINUSE);
	assert_int_equal(unlink(un.sun_path), 0);
	close(fd);
}

/* A socket that is bound and nobody listens at, or a file, in its place. */
static void
leave(const char *name, bool socket_there)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int                fd;

	snprintf(un.sun_path, sizeof(un.sun_path), "%s/%s", dir, name);
	fd = socket_there ? socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) : open(un.sun_path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	if (socket_there)
		assert_int_equal(bind(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	close(fd);
}

static bool
is_there(const char *name)
{
	char        path[256];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return lstat(path, &st) == 0;
}

static void
remove_left(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(unlink(path), 0);
}

static void
make_old(const char *name)
{
	static const struct timespec long_ago[2] = { { .tv_sec = 1000000000 }, { .tv_sec = 1000000000 } };
	char                         path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(utimensat(AT_FDCWD, path, long_ago, 0), 0);
}

static void
a_path_with_the_number_of_the_process_is_its_own_and_dead_ones_go(void **state)
{
	struct listen_set set;
	char              text[64], want[160], living[64];
	pid_t             dead = fork();

	(void)state;
	if (dead == 0)
		_exit(0);
	assert_int_equal(waitpid(dead, NULL, 0), dead);
	snprintf(text, sizeof(text), "w.%d.sock", (int)dead);
	snprintf(living, sizeof(living), "w.%d.sock", (int)getppid());
	leave(text, true);
	make_old(text);
	leave(living, true);
	make_old(living);
	leave("w.4194306.sock", true);
	leave("w.4194305.sock", false);
	make_old("w.4194305.sock");
	leave("w.4194305.sock.old", true);
	leave("w.04194305.sock", true);
	snprintf(want, sizeof(want), "unix:%s/w.%%p.sock", dir);
	must_open(want, &set);
	snprintf(want, sizeof(want), "unix:%s/w.%d.sock", dir, (int)getpid());
	assert_string_equal(set.sockets[0].address, want);
	assert_false(is_there(text));             /* a socket of nobody */
	assert_true(is_there(living));            /* its process lives, and may be about to listen */
	assert_true(is_there("w.4194305.sock")); /* no socket */
	assert_true(is_there("w.4194306.sock")); /* a young one: whoever made it may be starting */
	assert_true(is_there("w.4194305.sock.old"));
	assert_true(is_there("w.04194305.sock"));
	listen_close(&set);
	assert_false(is_there(want + strlen("unix:") + strlen(dir) + 1));
	remove_left(living);
	remove_left("w.4194305.sock");
	remove_left("w.4194306.sock");
	remove_left("w.4194305.sock.old");
	remove_left("w.04194305.sock");
}

static void
a_file_of_somebody_else_is_never_removed(void **state)
{
	struct component_error err = COMPONENT_ERROR_INIT;
	struct listen_set      set, mine;
	char                   text[128], aside[128];
	struct stat            st;
	int                    fd;

	(void)state;
	snprintf(text, sizeof(text), "unix:%s/file", dir);
	fd = open(text + 5, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	close(fd);
	assert_int_equal(open_text(text, &set, &err), -EEXIST);
	must_say(&err, "there is a file that is not a socket");
	assert_int_equal(stat(text + 5, &st), 0);
	unlink(text + 5);

	/* Ours was moved away and another one stands at its path: that one stays. */
	must_open(text, &mine);
	snprintf(aside, sizeof(aside), "%s/aside", dir);
	assert_int_equal(rename(text + 5, aside), 0);
	must_open(text, &set);
	listen_close(&mine);
	assert_int_equal(stat(text + 5, &st), 0);
	listen_close(&set);
	unlink(aside);

	snprintf(text, sizeof(text), "unix:%s/no/such/x.sock", dir);
	assert_int_equal(open_text(text, &set, &err), -ENOENT);
	must_say(&err, "its directory does not exist");
}

static void
an_abstract_socket_listens_and_warns(void **state)
{
	struct component_error err = COMPONENT_ERROR_INIT;
	struct listen_set      set, other;
	char                   text[128];

	(void)state;
	snprintf(text, sizeof(text), "unix:@component-test-%d", (int)getpid());
	must_open(text, &set);
	assert_string_equal(set.sockets[0].address, text);
	assert_non_null(strstr(set.note, "every user of this machine may connect"));
	assert_int_equal(open_text(text, &other, &err), -EADDRINUSE);
	must_say(&err, "held by this process itself");
	listen_close(&set);
	must_open(text, &set);
	listen_close(&set);
}

/* The child of a supervisor: two sockets from descriptor 3 on, and the variables. */
static void
as_activated(void (*body)(unsigned port))
{
	struct listen_set a, b;
	int               status, first, second;
	pid_t             pid;

	must_open("127.0.0.1:0", &a);
	must_open("127.0.0.1:0", &b);
	first = fcntl(a.sockets[0].fd, F_DUPFD, 100); /* not ours, so a child has them */
	second = fcntl(b.sockets[0].fd, F_DUPFD, 100);
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		char number[16];

		dup2(first, 3);
		dup2(second, 4);
		snprintf(number, sizeof(number), "%d", (int)getpid());
		setenv("LISTEN_PID", number, 1);
		setenv("LISTEN_FDS", "2", 1);
		setenv("LISTEN_FDNAMES", "http:profiling", 1);
		body(b.sockets[0].port);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	close(first);
	close(second);
	listen_close(&a);
	listen_close(&b);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void
take_by_name_and_number(unsigned port)
{
	struct component_error err = COMPONENT_ERROR_INIT;
	struct listen_set      set;
	char                   name[32];

	if (listen_inherited() != 2 || listen_claimed(4, name, sizeof(name)) || strcmp(name, "profiling") != 0)
		_exit(10);
	/* Twice: switching off and on again finds it still there. */
	for (int i = 0; i < 2; i++) {
		if (open_text(i ? "fd:4" : "fd:profiling", &set, &err) < 0)
			_exit(11);
		if (set.count != 1 || set.sockets[0].port != port || !set.sockets[0].loopback)
			_exit(12);
		if (set.sockets[0].fd <= 4 || !(fcntl(4, F_GETFD) & FD_CLOEXEC))
			_exit(13);
		listen_close(&set);
	}
	if (!listen_claimed(4, name, sizeof(name)) || listen_claimed(3, name, sizeof(name)))
		_exit(14);
	if (open_text("fd:5", &set, &err) != -ENOENT || !strstr(err.text, "fd:3 to fd:4"))
		_exit(15);
	if (open_text("fd:other", &set, &err) != -ENOENT || !strstr(err.text, "http:profiling"))
		_exit(16);
	dup2(open("/dev/null", O_RDONLY), 3);
	if (open_text("fd:3", &set, &err) != -ENOTSOCK || !strstr(err.text, "is not a socket"))
		_exit(17);
	/* A child that daemon(3) would leave behind may still have it. */
	if (fork() == 0)
		_exit(open_text("fd:profiling", &set, &err) < 0 ? 1 : 0);
	{
		int status;

		if (wait(&status) < 0 || status != 0)
			_exit(18);
	}
}

static void
refuse_what_is_meant_for_another_process(unsigned port)
{
	struct component_error err = COMPONENT_ERROR_INIT;
	struct listen_set      set;

	(void)port;
	setenv("LISTEN_PID", "1", 1);
	if (open_text("fd:profiling", &set, &err) != -ENOENT || !strstr(err.text, "meant for process 1"))
		_exit(20);
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	if (open_text("fd:3", &set, &err) != -ENOENT || !strstr(err.text, "LISTEN_FDS is not set"))
		_exit(21);
}

static void
inherited_sockets_are_found_by_name_and_number(void **state)
{
	(void)state;
	as_activated(take_by_name_and_number);
}

static void
inherited_sockets_of_another_process_are_refused(void **state)
{
	(void)state;
	as_activated(refuse_what_is_meant_for_another_process);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_free_port_is_told_with_address_and_url),
		cmocka_unit_test(a_port_alone_is_every_interface_of_both_families),
		cmocka_unit_test(zeros_are_ipv4_alone),
		cmocka_unit_test(ipv6_colons_are_both_families_and_loopback6_is_one),
		cmocka_unit_test(localhost_is_both_families_on_one_port),
		cmocka_unit_test(a_name_needs_one_free_address_and_notes_the_other),
		cmocka_unit_test(a_name_that_has_an_address_twice_is_served_once_there),
		cmocka_unit_test(addresses_for_which_there_is_no_room_are_told),
		cmocka_unit_test(an_ipv4_address_among_those_of_ipv6_is_ipv4s),
		cmocka_unit_test(sockets_are_closed_on_exec_nonblocking_and_above_two),
		cmocka_unit_test(a_busy_port_names_who_holds_it),
		cmocka_unit_test(who_holds_a_port_of_ipv6_is_not_who_has_it_of_ipv4),
		cmocka_unit_test(what_cannot_be_had_says_why),
		cmocka_unit_test(a_unix_socket_has_mode_0600_whatever_the_umask),
		cmocka_unit_test(a_stale_socket_is_replaced_and_a_live_one_is_busy),
		cmocka_unit_test(a_socket_that_is_bound_and_is_about_to_listen_is_busy),
		cmocka_unit_test(a_socket_that_has_taken_a_stale_ones_place_stays),
		cmocka_unit_test(a_path_with_the_number_of_the_process_is_its_own_and_dead_ones_go),
		cmocka_unit_test(a_file_of_somebody_else_is_never_removed),
		cmocka_unit_test(an_abstract_socket_listens_and_warns),
		cmocka_unit_test(inherited_sockets_are_found_by_name_and_number),
		cmocka_unit_test(inherited_sockets_of_another_process_are_refused),
	};
	int r;

	if (!mkdtemp(dir))
		return 99;
	r = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(dir);
	return r;
}
