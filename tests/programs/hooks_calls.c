/*
 * hooks_calls.c - calls every hooked name from everywhere and prints how many of
 * the calls the hooks saw.  Argument: the library to open.
 *
 * What it needs of ours is looked up while running, so that the same program can be
 * linked with libcomponent or started with the agent.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi.h"

#ifdef LINKED /* as in any program that uses the library: -Wl,--as-needed keeps it */
extern int component_profiler_start(const char *address);
int (*const uses)(const char *) = component_profiler_start;
#endif

extern int hooks_call_program(const char *name);
extern int hooks_call_before(const char *name);
extern int hooks_call_after(const char *name);

static int
leave_as_is(struct hooks_call *c, void **routine, void **arg)
{
	(void)c;
	(void)routine;
	(void)arg;
	return 1;
}

/* ---- waits: every call takes the slow way, and is made ---- */

static int
pass(struct hooks_wait *w)
{
	struct component_hooks *h = dlsym(RTLD_DEFAULT, "component_hooks");

	return ((hooks_wait_fn *)h->next[w->name])(w->args[0], w->args[1], w->args[2], w->args[3]);
}

static long
pass_call(struct hooks_wait *w)
{
	struct component_hooks *h = dlsym(RTLD_DEFAULT, "component_hooks");

	return ((hooks_call_fn *)h->next[w->name])(w->args[0], w->args[1], w->args[2], w->args[3], w->more[0],
		w->more[1], w->more[2]);
}

static long
pass_signal(uint32_t name, uintptr_t a, uintptr_t b, uintptr_t c)
{
	struct component_hooks *h = dlsym(RTLD_DEFAULT, "component_hooks");

	h->calls[name]++; /* the core's task: there is no slow way in the hooks */
	return ((long (*)(uintptr_t, uintptr_t, uintptr_t))h->next[name])(a, b, c);
}

static int
busy(void)
{
	return EBUSY;
}

static int
busy_c11(void)
{
	return 1;
}

static int
busy_sem(void)
{
	return -1;
}

static void
watch_waits(struct component_hooks *h)
{
	for (int i = 0; i < HOOKS_TRY_COUNT; i++)
		h->tries[i] = (void *)busy;
	h->tries[HOOKS_TRY_mtx_trylock] = (void *)busy_c11;
	h->tries[HOOKS_TRY_sem_trywait] = (void *)busy_sem;
	for (int i = 0; i < HOOKS_WAITING; i++)
		h->waiting[i] = 1;
	h->wait = h->unlock = pass;
	h->wait_state = h->wait_any = HOOKS_ON;
	h->call = pass_call;
	h->call_state = HOOKS_ON;
	h->map = pass_call;
	h->map_state = HOOKS_ON;
	h->signals = pass_signal;
	h->signal_state = HOOKS_ON;
}

static const char *
object_of(const void *symbol)
{
	Dl_info info;

	return symbol && dladdr(symbol, &info) ? info.dli_fname : "nothing";
}

/* How often a name was seen; an operator that comes through malloc's family, there. */
static uint64_t
seen(const struct component_hooks *h, uint32_t name)
{
	static const int family[] = { HOOKS_malloc, HOOKS_calloc, HOOKS_realloc, HOOKS_posix_memalign, HOOKS_aligned_alloc,
		HOOKS_memalign };
	uint64_t         n = 0;

	if (name < HOOKS__Znwm || name > HOOKS__ZnamSt11align_val_tRKSt9nothrow_t ||
		h->operators_by_name[name - HOOKS__Znwm] != HOOKS_OPERATORS_PASS)
		return h->calls[name];
	for (size_t i = 0; i < sizeof(family) / sizeof(family[0]); i++)
		n += h->calls[family[i]];
	return n + h->calls[name];
}

static void
call_from(struct component_hooks *h, const char *where, int (*call)(const char *))
{
	for (uint32_t i = 0; i < h->name_count; i++) {
		uint64_t before = seen(h, i);
		int      r;

		if (getenv("HOOKS_WITHOUT_OLD") && strstr(h->names[i], "_2_2_5"))
			continue;
		r = call(h->names[i]);
		printf("%s %s %d %llu\n", where, h->names[i], r, (unsigned long long)(seen(h, i) - before));
	}
}

int
main(int argc, char **argv)
{
	struct component_hooks *h = dlsym(RTLD_DEFAULT, "component_hooks");
	int (*set_rate)(uint64_t) = (int (*)(uint64_t))dlsym(RTLD_DEFAULT, "component_profiler_set_heap_rate");
	void *plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	int   r;

	if (!h || !set_rate || !plugin) {
		fprintf(stderr, "hooks %p core %p plugin %p %s\n", (void *)h, (void *)set_rate, plugin, dlerror());
		return 1;
	}
	r = set_rate(1);
	printf("rate %d\nnext %s\ncopy %u\n", r, object_of(h->next[HOOKS_malloc]),
		h->second_copy);
	h->thread_made = leave_as_is;
	h->thread_failed = (void (*)(void *))free;
	h->thread_state = HOOKS_ON;
	watch_waits(h);
	call_from(h, "program", hooks_call_program);
	call_from(h, "before", hooks_call_before);
	call_from(h, "after", hooks_call_after);
	call_from(h, "plugin", (int (*)(const char *))dlsym(plugin, "hooks_call_plugin"));
	h->thread_state = HOOKS_OFF;
	h->wait_state = h->wait_any = HOOKS_OFF;
	h->call_state = HOOKS_OFF;
	set_rate(0);
	dlclose(plugin);
	return 0;
}
