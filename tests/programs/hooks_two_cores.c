/*
 * hooks_two_cores.c - a program with libcomponent that loads a plugin with a copy of its own;
 * both sample the heap, locks and threads.  -DPLUGIN is that plugin.
 *
 * Arguments: the plugin, and who is first: "program" or "plugin".
 */
#include <component/profiler.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int two_cores_start(const char *who);

static void *
load(void *arg)
{
	char *kept[1000] = { NULL };

	for (int i = 0; i < 50000; i++) {
		char **at = &kept[i % 1000];

		free(*at);
		*at = i % 3 ? malloc((size_t)i % 3000 + 1) : realloc(malloc(10), (size_t)i % 700 + 1);
		if (!*at)
			return arg;
		**at = 1;
	}
	for (int i = 0; i < 1000; i++)
		free(kept[i]);
	return NULL;
}

static int
load_here_and_there(void)
{
	pthread_t other;
	void     *r = NULL;

	return pthread_create(&other, NULL, load, &other) || load(&other) || pthread_join(other, &r) || r;
}

/* Answers what it could not switch on. */
#ifdef PLUGIN
int
two_cores_start(const char *who)
#else
static int
start(const char *who)
#endif
{
	int r = component_profiler_start("127.0.0.1:0");
	int heap = component_profiler_set_heap_rate(4096), mutex = component_profiler_set_mutex_fraction(1);

	printf("%s %d %d %d\n", who, r, heap < 0, mutex < 0);
	fflush(stdout);
	return load_here_and_there();
}

#ifndef PLUGIN
int
main(int argc, char **argv)
{
	void *plugin;
	int (*other)(const char *);
	int   bad;

	if (argc < 3)
		return 2;
	bad = strcmp(argv[2], "program") == 0 && start("program");
	plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	other = plugin ? (int (*)(const char *))dlsym(plugin, "two_cores_start") : NULL;
	if (!other) {
		printf("%s\n", dlerror());
		return 3;
	}
	bad |= other("plugin") || start("program");
	component_profiler_stop();
	bad |= load_here_and_there();
	dlclose(plugin);
	bad |= load_here_and_there();
	printf("%s\n", bad ? "wrong" : "fine");
	return bad;
}
#endif
