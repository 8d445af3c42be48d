/*
 * restricted_process.c - a daemon that takes something away from itself, before or after its
 * profiler starts: tests/whole/restricted_process.t.
 *
 *     restricted_process docker|strict|systemd|chroot|chroot-eperm|chroot-enosys|no-proc|masked|setuid|forks before|after
 *
 * Prints "url URL", then works until its stdin ends, and then "fine".  With forks it makes a child for each line,
 * and prints how it ended.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <component/profiler.h>

#define NOBODY 65534

static atomic_bool stop;

static void *
burn_and_allocate(void *arg)
{
	volatile unsigned spin = 0;
	char             *kept[64] = { NULL };

	for (unsigned n = 0; !atomic_load(&stop); n++) {
		for (unsigned i = 0; i < 20000; i++)
			spin += i;
		free(kept[n % 64]);
		kept[n % 64] = malloc(4096 + n % 4096);
		if (kept[n % 64])
			memset(kept[n % 64], (int)n, 4096);
	}
	for (int i = 0; i < 64; i++)
		free(kept[i]);
	return arg;
}

static void
fail(const char *what)
{
	printf("cannot %s: %s\n", what, strerror(errno));
	exit(77);
}

/* ---- seccomp ---- */

/* Of what Docker's default profile denies to a container without capabilities, all
 * that a profiler may want. */
#define DOCKER_DENIES                                                                   \
	SYS_perf_event_open, SYS_process_vm_readv, SYS_process_vm_writev, SYS_ptrace,    \
		SYS_kcmp, SYS_bpf, SYS_userfaultfd, SYS_unshare, SYS_setns, SYS_mount,     \
		SYS_open_by_handle_at, SYS_name_to_handle_at, SYS_syslog, SYS_acct,        \
		SYS_keyctl, SYS_add_key, SYS_request_key, SYS_quotactl, SYS_personality

static const int docker_denies[] = { DOCKER_DENIES };
/* And what a tighter one leaves out, for a kernel that has never had it. */
static const int strict_denies[] = {
	DOCKER_DENIES, SYS_timer_create, SYS_timer_settime, SYS_timer_delete, SYS_timer_getoverrun, SYS_membarrier,
	SYS_sched_setscheduler, SYS_sched_setparam, SYS_setpriority, SYS_mlock, SYS_mlockall, SYS_rt_sigqueueinfo,
	SYS_rt_tgsigqueueinfo, SYS_statx, SYS_fallocate, SYS_get_mempolicy, SYS_readlinkat, SYS_memfd_create,
	SYS_sysinfo, SYS_getcpu, SYS_splice, SYS_pidfd_open, SYS_pidfd_send_signal, SYS_openat2, SYS_close_range,
	SYS_faccessat2, SYS_clone3,
};

/* What systemd's SystemCallFilter=@system-service does not have, and with ~@resources less,
 * of what a profiler may want.  Who calls one of them is ended, unless a SystemCallErrorNumber= is set. */
static const int systemd_ends[] = {
	SYS_perf_event_open, SYS_ptrace, SYS_bpf, SYS_mount, SYS_open_by_handle_at, SYS_syslog, SYS_acct, SYS_quotactl,
	SYS_pkey_alloc, SYS_sched_setscheduler, SYS_sched_setparam, SYS_sched_setattr, SYS_sched_setaffinity,
	SYS_setpriority, SYS_ioprio_set, SYS_mbind, SYS_set_mempolicy, SYS_migrate_pages, SYS_move_pages,
};

/* What a program that forks may have on its list: its own calls and glibc's, and those that docs/operating.md
 * names for the first line of its table, for a CPU profile of a program that has filtered itself, and for fork. */
static const int fork_allows[] = {
	SYS_read, SYS_write, SYS_clone, SYS_clone3, SYS_set_robust_list, SYS_wait4, SYS_exit_group, SYS_rt_sigreturn,
	SYS_futex, SYS_mmap, SYS_munmap, SYS_madvise, SYS_rt_sigprocmask,
	SYS_close, SYS_fcntl, SYS_newfstatat, SYS_fstat, SYS_getpid,
};

/* What becomes of the calls that are listed, and of others. */
static void
filter(const int *listed, size_t count, unsigned what, unsigned others, unsigned flags)
{
	struct sock_filter code[200];
	struct sock_fprog  program = { .filter = code };
	size_t             n = 0;

	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < count; i++)
		code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)listed[i],
			(unsigned char)(count - i), 0);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, others);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, what);
	program.len = (unsigned short)n;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program))
		fail("filter system calls");
}

static void
deny(const int *denied, size_t count, unsigned what)
{
	filter(denied, count, what, SECCOMP_RET_ALLOW, SECCOMP_FILTER_FLAG_TSYNC);
}

static void
confine(const char *how)
{
	char empty[] = "/tmp/component-confined-XXXXXX";

	if (strcmp(how, "docker") == 0) {
		deny(docker_denies, sizeof(docker_denies) / sizeof(int), SECCOMP_RET_ERRNO | EPERM);
	} else if (strcmp(how, "strict") == 0) {
		deny(strict_denies, sizeof(strict_denies) / sizeof(int), SECCOMP_RET_ERRNO | ENOSYS);
	} else if (strcmp(how, "systemd") == 0) {
		deny(systemd_ends, sizeof(systemd_ends) / sizeof(int), SECCOMP_RET_KILL_PROCESS);
	} else if (strncmp(how, "chroot", 6) == 0) {
		if (!mkdtemp(empty) || chdir(empty) || rmdir(empty) || chroot("."))
			fail("change the root");
		if (how[6])
			deny(docker_denies, sizeof(docker_denies) / sizeof(int),
				SECCOMP_RET_ERRNO | (strcmp(how, "chroot-eperm") ? ENOSYS : EPERM));
	} else if (strcmp(how, "no-proc") == 0) {
		if (mount("none", "/proc", "tmpfs", 0, NULL))
			fail("mount over /proc");
	} else if (strcmp(how, "masked") == 0) {
		/* one of its threads blocks every signal already */
	} else if (strcmp(how, "forks") == 0) {
		/* only the first thread, when it has no more to start */
	} else if (geteuid() == 0) {
		if (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY))
			fail("become another user");
	} else if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)) { /* what becoming another user does */
		fail("become undumpable");
	}
}

/* Bare output: nothing here may need more than is on the list. */
static void
fork_for_each_line(void)
{
	char  byte, text[64];
	int   status, n;
	pid_t pid;

	while (read(STDIN_FILENO, &byte, 1) > 0) {
		pid = fork();
		if (pid == 0)
			_exit(0);
		if (pid < 0 || waitpid(pid, &status, 0) != pid)
			_exit(5);
		n = snprintf(text, sizeof(text), "child %d\n", status);
		if (write(STDOUT_FILENO, text, (size_t)n) != n)
			_exit(6);
	}
	_exit(write(STDOUT_FILENO, "fine\n", 5) != 5);
}

int
main(int argc, char **argv)
{
	struct component_profiler_options options = COMPONENT_PROFILER_OPTIONS_INIT;
	struct component_error            err = COMPONENT_ERROR_INIT;
	char                              url[600], byte;
	pthread_t                         t[2];
	sigset_t                          all, before;

	if (argc < 3)
		return 2;
	setvbuf(stdout, NULL, _IONBF, 0);
	sigfillset(&all);
	if (strcmp(argv[1], "masked") == 0)
		pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_create(&t[0], NULL, burn_and_allocate, NULL);
	if (strcmp(argv[1], "masked") == 0) {
		pthread_setname_np(t[0], "shut-thread");
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	}
	if (strcmp(argv[2], "before") == 0)
		confine(argv[1]);
	options.address = "127.0.0.1:0";
	if (component_profiler_start_options(&options, &err) < 0) {
		printf("not started: %s\n", err.text);
		return 3;
	}
	component_profiler_set_heap_rate(4096);
	if (strcmp(argv[2], "before") != 0)
		confine(argv[1]);
	pthread_create(&t[1], NULL, burn_and_allocate, NULL);
	component_profiler_url(url, sizeof(url));
	if (strcmp(argv[1], "forks") == 0)
		filter(fork_allows, sizeof(fork_allows) / sizeof(int), SECCOMP_RET_ALLOW, SECCOMP_RET_KILL_PROCESS, 0);
	printf("url %s\n", url);
	if (strcmp(argv[1], "forks") == 0)
		fork_for_each_line();
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	/* Off and on again, as an operator would. */
	if (component_profiler_stop() < 0 || component_profiler_start("127.0.0.1:0") < 0 || component_profiler_stop() < 0)
		return 4;
	atomic_store(&stop, true);
	pthread_join(t[0], NULL);
	pthread_join(t[1], NULL);
	printf("fine\n");
	return 0;
}
