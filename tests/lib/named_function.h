/*
 * named_function.h - functions of a known name and of some size, so that an address
 * inside them is theirs: for stacks that tests make by hand.
 */
#ifndef TESTS_NAMED_FUNCTION_H
#define TESTS_NAMED_FUNCTION_H

#define FUNCTION(name)                                  \
	__attribute__((noinline, noclone)) int name(int n); \
	int name(int n)                                     \
	{                                                   \
		volatile int a = n;                         \
		for (int i = 0; i < n; i++)                 \
			a += i ^ (a << 3);                  \
		return a + __LINE__;                        \
	}

#endif
