/*
 * symbols_victim.c - a small library with all that our reader looks at: exported and
 * local functions, an alias, calls through stubs.  test_hostile.c breaks it.
 */
#include <config.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int victim_work(int n);
int victim_more(int n);
int __victim_alias(int n) __attribute__((alias("victim_work"), visibility("default")));

static __attribute__((noinline)) int
local_helper(int n)
{
	volatile int a = n;

	while (n-- > 0)
		a += n * a;
	return a;
}

__attribute__((visibility("default"))) int
victim_work(int n)
{
	return local_helper(n) + (int)getpid();
}

__attribute__((visibility("default"))) int
victim_more(int n)
{
	const char *home = getenv("HOME");

	return victim_work(n) + (home ? (int)strlen(home) : 0);
}
