/*
 * skip.h - leaving a cmocka test out, with the reason, which tests/lib/tap-skips puts
 * where TAP wants it.  Only for what the kernel, the hardware or a sanitizer makes
 * impossible.
 */
#ifndef TESTS_SKIP_H
#define TESTS_SKIP_H

/* On a line of its own, whatever the program has printed. */
#define SKIP(why)                                \
	do {                                     \
		print_message("# skip: %s\n", why); \
		skip();                          \
	} while (0)

#endif
