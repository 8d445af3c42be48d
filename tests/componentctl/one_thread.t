#!/usr/bin/env python3
"""componentctl run: calls that go otherwise in a process of several threads go as without the agent's (components/preload/one_thread.c)."""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from ctl import *  # noqa: E402,F403
from pprof_reader import Profile  # noqa: E402

own_run()

# Does what its arguments say, a line each, and goes on.
CALLER = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#define USER 65534
int capset(void *head, const void *data);
int capget(void *head, void *data);
static int caps_of(unsigned bits, unsigned effective)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct   data[2] = { { effective, bits, 0 }, { 0, 0, 0 } };
	return capset(&head, data);
}
static int caps(unsigned bits) { return caps_of(bits, bits); }
static unsigned permitted(void)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct   data[2] = { { 0, 0, 0 } };
	return capget(&head, data) ? 0 : data[0].permitted;
}
static int join_mounts(void)
{
	int fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC), r = fd < 0 ? -1 : setns(fd, 0), saved = errno;
	close(fd);
	errno = saved;
	return r;
}
static void *sets_while_cancelled(void *arg)
{
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	pthread_cancel(pthread_self());
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	for (int i = 0; i < 20; i++) {
		caps(permitted() & ~(1u << (i % 8)));
		setresgid(-1, -1, -1);
	}
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	return arg;
}
/* Its own root and working directory: it may join, and back again, whatever other threads there are. */
static void *joins_alone(void *arg)
{
	(void)arg;
	return (void *)(long)(unshare(CLONE_FS) || join_mounts() || join_mounts());
}
/* A bare clone, which no handler of fork() sees; it has the program's number in a namespace of its own. */
static int as_bare_clone(pid_t number)
{
	unsigned long long args[10] = { [4] = SIGCHLD, [8] = (unsigned long)&number, [9] = 1 }; /* struct clone_args */
	int                status = -1;
	pid_t              pid = syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0);

	if (pid == 0) {
		pid = syscall(SYS_clone3, args, sizeof(args));
		if (pid == 0)
			_exit(getpid() == number ? unshare(CLONE_NEWUSER) != 0 : 2);
		_exit(pid < 0 || waitpid(pid, &status, 0) != pid ? 3 : WEXITSTATUS(status));
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid ? status : -1;
}
/* Ends the process for capget() and ioctl(). */
static int filter(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_capget, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { 5, code };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}
static void *sleeps(void *arg) { for (;;) pause(); return arg; }
static int done(const char *word)
{
	struct rlimit none = { 0, 0 };
	pthread_t     thread;
	char          line[8];
	static unsigned all;
	int           status = -1;

	if (!strcmp(word, "keep")) return all = permitted(), prctl(PR_SET_KEEPCAPS, 1);
	if (!strcmp(word, "user")) return setresuid(USER, USER, USER);
	if (!strcmp(word, "group")) return setresgid(USER, USER, USER);
	if (!strcmp(word, "groups")) return setgroups(0, NULL);
	if (!strcmp(word, "raise")) return caps(all);
	if (!strcmp(word, "drop")) return caps(0);
	if (!strcmp(word, "back")) return setuid(0);
	if (!strcmp(word, "newuser")) return unshare(CLONE_NEWUSER);
	if (!strcmp(word, "mounts")) return join_mounts();
	if (!strcmp(word, "no-threads")) return setrlimit(RLIMIT_NPROC, &none);
	if (!strcmp(word, "thread")) return -pthread_create(&thread, NULL, sleeps, NULL);
	if (!strcmp(word, "wait")) return puts("waits"), fflush(stdout), (fgets(line, sizeof(line), stdin), 0);
	if (!strcmp(word, "vfork")) {
		if (vfork() == 0)
			_exit(unshare(CLONE_NEWUSER) != 0);
		wait(&status);
		return status;
	}
	if (!strcmp(word, "settle")) return caps(permitted());
	if (!strcmp(word, "toggle")) {
		unsigned bits = permitted();
		for (int i = 0; i < 100; i++)
			if (caps_of(bits, 0) || caps_of(bits, bits))
				return -1;
		return 0;
	}
	if (!strcmp(word, "cancelled")) {
		void *result = NULL;
		pthread_create(&thread, NULL, sets_while_cancelled, NULL);
		pthread_join(thread, &result);
		return result == PTHREAD_CANCELED ? -1 : 0;
	}
	if (!strcmp(word, "worker")) {
		void *result = NULL;
		pthread_create(&thread, NULL, joins_alone, NULL);
		pthread_join(thread, &result);
		return (int)(long)result;
	}
	if (!strcmp(word, "same-pid"))
		return as_bare_clone(getpid());
	if (!strcmp(word, "filter")) return filter();
	if (!strcmp(word, "often")) {
		for (int i = 0; i < 100; i++)
			if (join_mounts())
				return -1;
		return 0;
	}
	abort();
}
int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		errno = 0;
		int r = done(argv[i]);

		printf("%s: %d, %s\n", argv[i], r, strerror(errno));
		fflush(stdout);
	}
	return 0;
}
"""
FILE = None


def plain(*words):
    """What it prints without the agent."""
    r = run(FILE, *words, env=environment())
    equal(r.returncode, 0, r.stderr)
    return r.stdout


def need_plain(*words):
    """Without the agent this user may do it all, here."""
    said = plain(*words)
    if ": -1, " in said:
        raise Skip("not allowed here: " + re.search(r".*: -1, .*", said).group())
    return said


@contextlib.contextmanager
def running(*words):
    """It waits, and its server is there; .said is what it has printed so far."""
    p = started_by_ctl("--app-id=caller", "--", FILE, *words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with p:
        p.port = int(re.search(r"on port (\d+)", said_at_start(p.stderr)).group(1))
        p.said = waits(p)
        p.pid_of = int(text_of("/proc/%d/task/%d/children" % (p.pid, p.pid)).split()[0])
        yield p
        p.stdin.close()
        equal(p.wait(DEADLINE), 0)


def waits(p):
    said = ""
    for line in p.stdout:
        if line == "waits\n":
            return said + line
        said += line
    raise AssertionError("it does not wait: " + said)


def go_on(p):
    p.stdin.write("\n")
    p.stdin.flush()


def asked(port, path):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE)
    with contextlib.closing(c):
        c.request("GET", "/debug/pprof/" + path)
        r = c.getresponse()
        return r.status, r.read()


def serves(port):
    status, body = asked(port, "goroutine?debug=1")
    equal(status, 200)
    contains(body.decode(), "goroutine profile: total ")


def threads_of(pid):
    """(name, credentials) of each."""
    found = []
    for tid in os.listdir("/proc/%d/task" % pid):
        with contextlib.suppress(OSError):  # it has just ended
            text = text_of("/proc/%d/task/%s/status" % (pid, tid))
            found.append((re.search(r"Name:\t(.*)", text).group(1), re.findall(r"^(?:Uid|Gid|Groups|Cap[A-Z][a-z]+):.*$", text, re.M)))
    return found


def all_are_alike(pid):
    found = threads_of(pid)
    need(len(found) > 1, "it has no thread of ours: %s" % found)
    equal(len({tuple(lines) for _, lines in found}), 1, found)
    return found[0][1]


@test
def capabilities_that_one_thread_keeps_let_it_change_its_groups_after_its_user():
    words = "keep", "user", "raise", "groups", "group", "drop", "wait"
    said = need_plain(*words)
    with running(*words) as p:
        equal(p.said, said.split("wait: ")[0])
        lines = all_are_alike(p.pid_of)
        contains(lines, "Uid:\t65534\t65534\t65534\t65534")
        contains(lines, "CapEff:\t0000000000000000")
        serves(p.port)


@test
def what_a_program_gives_up_by_capset_no_thread_keeps():
    words = "drop", "back", "wait"
    need_plain("drop")
    with running(*words) as p:
        equal(p.said, plain(*words).split("wait: ")[0])
        contains(all_are_alike(p.pid_of), "CapPrm:\t0000000000000000")
        serves(p.port)


@test
def what_it_cannot_have_again_it_is_refused_as_without():
    words = "user", "back", "wait"
    need_plain("user")
    with running(*words) as p:
        equal(p.said, plain(*words).split("wait: ")[0])
        serves(p.port)


@test
def a_user_namespace_of_its_own_can_be_had():
    need_plain("newuser")
    with running("newuser", "wait", "newuser", "wait") as p:
        equal(p.said, "newuser: 0, Success\nwaits\n")
        serves(p.port)
        go_on(p)
        equal(waits(p), "wait: 0, Success\n" + plain("newuser", "newuser").splitlines(True)[1] + "waits\n")
        serves(p.port)


@test
def a_mount_namespace_can_be_joined():
    need_plain("mounts")
    with running("mounts", "wait") as p:
        equal(p.said, "mounts: 0, Success\nwaits\n")
        serves(p.port)


@test
def a_program_with_threads_of_its_own_is_refused_as_without():
    said = plain("thread", "newuser")
    equal(said, "thread: 0, Success\nnewuser: -1, Invalid argument\n")
    with running("thread", "newuser", "wait") as p:
        equal(p.said, said + "waits\n")
        serves(p.port)


def window_beside(word, seconds, before=()):
    """Of the program that does that meanwhile: how long it was, in seconds."""
    need_plain(*before, word)
    with running(*before, "wait", word, "wait") as p:
        answer = in_background(asked, p.port, "profile?seconds=%d" % seconds)
        window_opens(p.pid_of)
        go_on(p)
        equal(waits(p), "wait: 0, Success\n%s: 0, Success\nwaits\n" % word)
        status, body = answer.result()
        equal(status, 200)
        serves(p.port)
        return Profile(body).all[10][0] / 1e9


@test
def an_open_window_ends_early_with_a_whole_profile():
    need(window_beside("newuser", 3600) < 3600, "it lasted")


@test
def capabilities_that_are_lowered_and_raised_again_end_no_window():
    need(window_beside("toggle", 2, before=["settle"]) >= 2, "it was cut short")


@test
def a_worker_with_a_root_of_its_own_joins_and_our_threads_stay():
    need(window_beside("worker", 2) >= 2, "it was cut short")


@test
def a_thread_that_is_to_be_cancelled_changes_its_groups_all_the_same():
    need_plain("cancelled")
    with running("cancelled", "wait") as p:
        equal(p.said, "cancelled: 0, Success\nwaits\n")
        serves(p.port)


@test
def a_child_of_a_bare_clone_with_the_same_number_has_none_of_our_threads():
    said = plain("same-pid")
    if said != "same-pid: 0, Success\n":
        raise Skip("no such child can be had here: " + said)
    with running("same-pid", "wait") as p:
        equal(p.said, said + "waits\n")
        serves(p.port)


@test
def a_filter_that_allows_no_look_at_credentials_does_not_end_it():
    words = "filter", "user", "mounts", "wait"
    with running(*words) as p:
        contains(p.said, "filter: 0, Success\n")
        equal(p.said.replace("waits\n", ""), plain("filter", "user", "mounts"))


@test
def who_asks_meanwhile_is_answered():
    need_plain("mounts")
    with running("wait", "often", "wait") as p:
        go_on(p)
        done = in_background(waits, p)
        statuses = [asked(p.port, "goroutine")[0] for _ in range(200)]
        equal(set(statuses) - {200, 503}, set())
        equal(done.result(), "wait: 0, Success\noften: 0, Success\nwaits\n")
        serves(p.port)


@test
def a_child_of_vfork_leaves_its_parents_threads_alone():
    with running("vfork", "wait") as p:
        equal(p.said, plain("vfork") + "waits\n")
        serves(p.port)


@test
def where_no_thread_can_be_started_again_the_program_goes_on_without_a_server():
    words = "no-threads", "keep", "user", "raise", "group", "drop", "wait"
    said = need_plain(*words)
    with running(*words) as p:
        equal(p.said, said.split("wait: ")[0])
        poll(lambda: len(threads_of(p.pid_of)) == 1, "no thread of ours")
        need(not is_listed(p.pid_of), "its record is left")


with tempdir() as folder:
    FILE = os.path.join(folder, "caller")
    with open(FILE + ".c", "w") as f:
        f.write(CALLER)
    r = run(*CC.split(), "-g", "-o", FILE, FILE + ".c", "-pthread")
    need(r.returncode == 0, r.stderr)
    os.chmod(folder, 0o755)
    main()
