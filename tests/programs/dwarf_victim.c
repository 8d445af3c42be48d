/*
 * dwarf_victim.c - a small library with lines, inlined functions, ranges and several
 * files in its debug information; test_dwarf.c breaks it.
 */
#include <config.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int dwarf_work(int n);
int dwarf_more(int n, const char *text);

static inline __attribute__((always_inline)) int
innermost(int n)
{
	volatile int a = n;

	return a * a + 1;
}

static inline __attribute__((always_inline)) int
between(int n)
{
	int s = 0;

	for (int i = 0; i < n; i++)
		s += innermost(i) - innermost(n);
	return s;
}

__attribute__((noinline, visibility("default"))) int
dwarf_work(int n)
{
	int s = between(n);

	if (__builtin_expect(s == 12345, 0))
		abort();
	for (int i = 0; i < n; i++)
		s += i % 3 ? between(i) : innermost(i);
	return s + (int)getpid();
}

__attribute__((noinline, visibility("default"))) int
dwarf_more(int n, const char *text)
{
	char buf[64];

	strncpy(buf, text, sizeof(buf) - 1);
	buf[sizeof(buf) - 1] = '\0';
	return dwarf_work(n) + (int)strlen(buf) + between(buf[0]);
}
