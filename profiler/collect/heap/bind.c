/*
 * bind.c - proves that the hooks are in charge, or says why not: none are linked, the
 * program is static, another copy of us has them, a name is not ours, a call does not arrive.
 *
 * What a stranger would get wrong:
 * - A symbol that resolves to us is not proof enough: tools that translate code
 *   (valgrind, asked to) put their own in the place of ours.  So each function is called once and must
 *   be seen to arrive.
 * - Half of the family is worse than nothing: with malloc ours and free another's,
 *   that free gets blocks it does not know.  All or none.
 *
 * Tests: tests/hooks/interposition.t, tests/heap/limited_process.t.
 */
#include <config.h>

#include "bind.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi.h"
#include "address_owner.h"
#include "lock.h"
#include "operators.h"
#include "set.h"
#include "which_core.h"

/* Not there in a static program. */
#pragma weak _DYNAMIC

static bool           decided;
static char           status[512];
static char           in_force[512];

static void __attribute__((format(printf, 1, 2)))
say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(status, sizeof(status), format, args);
	va_end(args);
}

static const char *
object_name(const void *symbol)
{
	Dl_info info;

	if (!symbol || !dladdr(symbol, &info) || !info.dli_fname || !info.dli_fname[0])
		return "another object";
	return info.dli_fname;
}

/* Does every name lead to our hook, wherever it is called from? */
static bool
names_are_ours(void)
{
	static const int names[] = { HOOKS_malloc, HOOKS_calloc, HOOKS_realloc, HOOKS_free };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *name = component_hooks.names[names[i]];
		void       *symbol = dlsym(RTLD_DEFAULT, name);

		if (symbol == component_hooks.own[names[i]] || hooks_is_plt_entry(symbol))
			continue; /* where a PLT entry leads, calls_arrive() shows */
		say("heap sampling is off: %s() belongs to %s; load libcomponent's hooks before it, or do without it",
			name, object_name(symbol));
		return false;
	}
	return true;
}

static int
probe_begin(struct hooks_call *c)
{
	c->thread->unused++;
	return HOOKS_PASS;
}

/* Volatile: a compiler may leave out malloc() and free() in a pair. */
static void *(*volatile call_malloc)(size_t) = malloc;
static void *(*volatile call_calloc)(size_t, size_t) = calloc;
static void *(*volatile call_realloc)(void *, size_t) = realloc;
static void (*volatile call_free)(void *) = free;

/* Do calls arrive?  Other threads that allocate meanwhile are asked and passed on. */
static bool
calls_arrive(void)
{
	struct hooks_thread *t = component_hooks.thread();
	void                *a, *b;

	component_hooks.begin = probe_begin;
	component_hooks.reallocate = probe_begin;
	t->unused = 0;
	t->rate = 0;
	hooks_set_heap_state(HOOKS_ON);
	t->left = -1;
	a = call_malloc(1);
	t->left = -1;
	b = call_calloc(1, 1);
	t->left = -1;
	a = call_realloc(a, 2);
	if (a && b)
		heap_operators_probe(t);
	hooks_set_heap_state(HOOKS_OFF);
	call_free(a);
	call_free(b);
	t->left = -1;
	if (t->unused >= 3)
		return true;
	say("heap sampling is off: calls of malloc() do not reach libcomponent's hooks; "
	    "another tool has taken its place");
	return false;
}

/* Why there are no hooks to call, or NULL. */
static const char *
hooks_lacking(void)
{
	if (!ARCH_HAVE_HOOKS)
		return HOOKS_UNKNOWN;
	if (&component_hooks ? component_hooks.kind == HOOKS_STATIC_STUB : !_DYNAMIC)
		return "the program is linked with -static, where malloc cannot be hooked";
	if (!&component_hooks)
		return "the program is not linked with -lcomponent_hooks "
		       "(pkg-config --libs libcomponent) nor started with libcomponent-preload.so";
	return HOOKS_HAVE(outranked) ? NULL : "the hooks linked into the program are of another version";
}

bool
heap_bind(void)
{
	const char *lacking;

	if (decided)
		return heap_hot.bound;
	decided = true;
	lacking = hooks_lacking();
	if (lacking) {
		say("heap sampling is off: %s", lacking);
		return heap_hot.bound;
	}
	if (!hooks_claim()) {
		say("heap sampling is off: another copy of libcomponent in this process has the hooks: %s",
			object_name(component_hooks.owner));
		return heap_hot.bound;
	}
	component_hooks.resolve();
	if (HOOKS_HAVE(counts))
		component_hooks.counts = 1;
	if (!names_are_ours() || !calls_arrive())
		return heap_hot.bound;
	if (heap_lock_init() < 0) {
		say("heap sampling is off: no memory for its lock");
		decided = false; /* there may be some later */
		return heap_hot.bound;
	}
	if (heap_set_init(HOOKS_HAVE(filter) ? component_hooks.filter : NULL) < 0) {
		say("heap sampling is off: no memory for its tables");
		decided = false;
		return heap_hot.bound;
	}
	heap_hot.bound = true;
	snprintf(in_force, sizeof(in_force), "hooks are in force; malloc() behind them is that of %s",
		object_name(component_hooks.next[HOOKS_malloc]));
	say("%s", component_hooks.second_copy ? "a second copy of libcomponent's hooks is loaded and stands aside" : "");
	return heap_hot.bound;
}

const char *
heap_bind_status(void)
{
	return status;
}

const char *
heap_bind_in_force(void)
{
	return in_force;
}
