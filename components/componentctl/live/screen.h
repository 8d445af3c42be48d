/*
 * screen.h - a terminal that is drawn anew each second, and its keys.
 *
 *     screen_open() ... screen_draw(text) ... screen_suspend(), screen_resume() ... screen_close()
 *
 * What a stranger would get wrong: each way out restores the terminal, by a signal as well; who opens it
 * blocks signals and reads them, so that none ends the program in between.
 *
 *   threads  one
 *   source   components/componentctl/live/screen.c
 */
#ifndef COMPONENTCTL_SCREEN_H
#define COMPONENTCTL_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <termios.h>

struct screen {
	struct termios before;
	bool           is_open;
};

/* False: standard input or output is no terminal. */
bool     screen_open(struct screen *s);
/* The text from the first line on, as much as fits, and that line behind it, whatever fits; nothing else stays. */
void     screen_draw(const char *text, size_t size, const char *last);
/* Lines, at least 1. */
unsigned screen_lines(void);
/* As before; and back. */
void     screen_suspend(struct screen *s);
void     screen_resume(struct screen *s);
void     screen_close(struct screen *s);

#endif
