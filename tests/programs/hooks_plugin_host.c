/*
 * hooks_plugin_host.c - a C program that opens a C++ plugin, RTLD_LOCAL, and runs it.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

int
main(int argc, char **argv)
{
	void *core = dlsym(RTLD_DEFAULT, "component_profiler_set_heap_rate");
	void *plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	int (*run)(int (*)(uint64_t)) = plugin ? (int (*)(int (*)(uint64_t)))dlsym(plugin, "throws_run") : NULL;
	int r = core && run ? run((int (*)(uint64_t))core) : 98;

	printf("%s %d %s\n", r ? "wrong" : "fine", r, r == 98 ? dlerror() : "");
	return r;
}
