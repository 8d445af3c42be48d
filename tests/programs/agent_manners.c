/* agent_manners.c WHAT - does one of the things that programs do with their process, and prints all that can be seen of it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void
show_numbers(void)
{
	int  a = open("/dev/null", O_RDONLY), b = dup(0), c = socket(AF_UNIX, SOCK_STREAM, 0), ends[2] = { -1, -1 };
	int  r = pipe(ends);
	DIR *d = opendir("/");

	printf("numbers %d %d %d %d %d %d\n", a, b, c, r, ends[0], ends[1]);
	printf("folder %d\n", d ? dirfd(d) : -1);
	fflush(stdout);
	close(a);
	close(b);
	close(c);
	close(ends[0]);
	close(ends[1]);
	if (d)
		closedir(d);
}

static void
show_status(pid_t pid)
{
	int status = 0;

	printf("waited %d ", waitpid(pid, &status, 0) == pid);
	printf("%d %d\n", status, waitpid(-1, &status, WNOHANG) < 0 ? errno : 0);
	fflush(stdout);
}

static void
show_signals(void)
{
	sigset_t blocked;
	stack_t  stack;

	sigprocmask(SIG_BLOCK, NULL, &blocked);
	for (int i = 1; i < 32; i++) {
		struct sigaction a;

		if (sigaction(i, NULL, &a) == 0)
			printf("%d %d %d %d\n", i, sigismember(&blocked, i), a.sa_handler == SIG_IGN, a.sa_handler == SIG_DFL);
	}
	sigaltstack(NULL, &stack);
	printf("stack %d pending %d\n", stack.ss_flags, sigpending(&blocked));
}

static volatile sig_atomic_t got;

static void
on_signal(int number)
{
	got = number;
}

static void
own_signals(void)
{
	static const int numbers[] = { SIGUSR1, SIGPROF, SIGURG, SIGALRM, SIGCHLD, SIGPIPE };

	show_signals();
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		got = 0;
		signal(numbers[i], on_signal);
		raise(numbers[i]);
		printf("%d came %d\n", numbers[i], (int)got);
	}
}

static void
forks(void)
{
	pid_t pid = fork();
	char *words[] = { "sh", "-c", "echo spawned $#; exit 5", NULL };
	int   r;

	if (pid == 0) {
		show_numbers();
		_exit(3);
	}
	show_status(pid);
	pid = vfork();
	if (pid == 0) {
		execv("/bin/sh", words);
		_exit(127);
	}
	show_status(pid);
	r = posix_spawn(&pid, "/bin/sh", NULL, NULL, words, environ);
	show_status(pid);
	printf("spawn %d\n", r);
	fflush(stdout);
	printf("system %d\n", system("exit 4"));
	show_numbers();
}

static void
becomes_daemon(void)
{
	int  ends[2];
	char c;

	if (pipe(ends))
		return;
	fflush(stdout);
	switch (fork()) {
	case 0:
		printf("daemon %d ", daemon(1, 1));
		printf("leads %d\n", getsid(0) == getpid() || getppid() != 0);
		show_numbers();
		_exit(0);
	default:
		close(ends[1]);
		printf("end %zd\n", read(ends[0], &c, 1));
		show_status(-1);
	}
}

static void
leaves_root(char *folder)
{
	printf("chroot %d chdir %d\n", chroot(folder), chdir("/"));
	show_numbers();
	printf("setgid %d setuid %d uid %d\n", setgid(65534), setuid(65534), (int)(getuid() != 0));
	printf("again %d\n", setuid(0) == 0 ? 0 : errno);
	show_numbers();
}

static void
closes_all(void)
{
	printf("close_range %ld\n", syscall(436, 3u, ~0u, 0u));
	show_numbers();
	for (int i = 3; i < 1024; i++)
		close(i);
	show_numbers();
}

static void
limits(void)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	printf("limit %ld %ld\n", (long)limit.rlim_cur, (long)limit.rlim_max);
	limit.rlim_cur = 64;
	printf("%d\n", setrlimit(RLIMIT_NOFILE, &limit));
	show_numbers();
	for (int n = 0;; n++)
		if (open("/dev/null", O_RDONLY) < 0) {
			printf("%d opened, %s\n", n, strerror(errno));
			break;
		}
}

static void
at_each_line(void)
{
	char line[16];

	while (fgets(line, sizeof(line), stdin))
		show_numbers();
}

int
main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";
	char       *again[] = { argv[0], "numbers", argv[2], NULL };

	if (!strcmp(what, "numbers"))
		show_numbers();
	else if (!strcmp(what, "signals"))
		own_signals();
	else if (!strcmp(what, "forks"))
		forks();
	else if (!strcmp(what, "daemon"))
		becomes_daemon();
	else if (!strcmp(what, "root"))
		leaves_root(argv[2]);
	else if (!strcmp(what, "closes"))
		closes_all();
	else if (!strcmp(what, "limits"))
		limits();
	else if (!strcmp(what, "lines"))
		at_each_line();
	else if (!strcmp(what, "abort"))
		abort();
	else if (!strcmp(what, "clears") && !clearenv())
		execv(argv[0], again);
	else
		return 2;
	return 7;
}
