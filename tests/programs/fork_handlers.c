/*
 * fork_handlers.c - a program whose own fork handlers allocate, lock and take profiles, while
 * other threads of it do so, too: tests/base/fork_handlers.t.
 *
 *     fork_handlers FOLDER FORKS
 *
 * Writes heap and goroutine profiles into FOLDER, named by who has written them: prepare,
 * parent, child.  Ends with 0 if every child did.
 */
#include <component/profiler.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 3
#define CHILD_SECONDS 600 /* a child that hangs is ended by its own alarm */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char     *folder;
static int             forks_done;
static atomic_bool     over;
static void *volatile  kept[64];

static void
allocate(void)
{
	for (int i = 0; i < 64; i++) {
		free(kept[i]);
		kept[i] = malloc((size_t)i * 100 + 1);
	}
}

static void
profile(const char *kind, const char *who)
{
	char path[4096];
	int  fd, r;

	snprintf(path, sizeof(path), "%s/%s-%s-%d", folder, who, kind, forks_done);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	r = fd < 0 ? -errno : component_profile_write(kind, fd, NULL);
	if (r < 0) {
		dprintf(STDERR_FILENO, "%s: %s: %s\n", who, kind, strerror(-r));
		_exit(3);
	}
	close(fd);
}

static void
work(const char *who)
{
	allocate();
	if (forks_done % 5 == 0) {
		profile("heap", who);
		profile("goroutine", who);
	}
}

static void
on_prepare(void)
{
	pthread_mutex_lock(&lock);
	work("prepare");
}

static void
on_parent(void)
{
	work("parent");
	pthread_mutex_unlock(&lock);
}

static void
on_child(void)
{
	alarm(CHILD_SECONDS);
	work("child");
	pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void
watch(void)
{
	pthread_atfork(on_prepare, on_parent, on_child);
}

static void *
busy(void *arg)
{
	void *p[32] = { NULL };

	for (unsigned i = 0; !over; i++) {
		free(p[i % 32]);
		p[i % 32] = malloc(i % 5000 + 1);
		if (i % 100 == 0) {
			pthread_mutex_lock(&lock);
			pthread_mutex_unlock(&lock);
		}
		if (i % 5000 == 0)
			usleep(1000);
	}
	for (int i = 0; i < 32; i++)
		free(p[i]);
	return arg;
}

int
main(int argc, char **argv)
{
	struct component_profiler_options options = COMPONENT_PROFILER_OPTIONS_INIT;
	struct component_error            err = COMPONENT_ERROR_INIT;
	pthread_t                         t[THREADS];
	int                               status, failed = 0;

	if (argc != 3)
		return 2;
	folder = argv[1];
	options.address = "127.0.0.1:0";
	options.heap_rate_bytes = 512;
	options.mutex_fraction = 1;
	options.block_rate_ns = 1;
	if (component_profiler_start_options(&options, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		return 2;
	}
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&t[i], NULL, busy, NULL))
			return 2;
	for (; forks_done < atoi(argv[2]); forks_done++) {
		pid_t pid = fork();

		if (pid == 0) {
			allocate();
			_exit(component_profiler_running());
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
			failed++;
	}
	over = true;
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	component_profiler_stop();
	printf("%d failed\n", failed);
	return failed != 0;
}
