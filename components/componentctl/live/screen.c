/*
 * screen.c - a terminal that is drawn anew each second.
 *
 * By ECMA-48's control sequences, which all terminals in use know, on the alternate screen: what was
 * there before is there again afterwards.
 *
 * Tests: tests/componentctl/top.t
 */
#include <config.h>

#include "screen.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define LINES_USUAL 24
#define COLUMNS_USUAL 80

#define ENTER "\033[?1049h\033[?25l" /* the alternate screen, without a cursor */
#define LEAVE "\033[?25h\033[?1049l"
#define HOME  "\033[H"
#define REST_OF_LINE "\033[K"
#define REST_OF_SCREEN "\033[J"

static struct winsize
size_now(void)
{
	struct winsize w = { .ws_row = 0 };

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) < 0 || !w.ws_row || !w.ws_col)
		w = (struct winsize){ .ws_row = LINES_USUAL, .ws_col = COLUMNS_USUAL };
	return w;
}

unsigned
screen_lines(void)
{
	return size_now().ws_row;
}

void
screen_resume(struct screen *s)
{
	struct termios now = s->before;

	/* Keys at once and unseen; Ctrl-C and Ctrl-Z stay what they are. */
	now.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	now.c_cc[VMIN] = 1;
	now.c_cc[VTIME] = 0;
	tcsetattr(STDIN_FILENO, TCSADRAIN, &now);
	fputs(ENTER, stdout);
	fflush(stdout);
}

void
screen_suspend(struct screen *s)
{
	fputs(LEAVE, stdout);
	fflush(stdout);
	tcsetattr(STDIN_FILENO, TCSADRAIN, &s->before);
}

bool
screen_open(struct screen *s)
{
	s->is_open = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && tcgetattr(STDIN_FILENO, &s->before) == 0;
	if (s->is_open)
		screen_resume(s);
	return s->is_open;
}

void
screen_close(struct screen *s)
{
	if (s->is_open)
		screen_suspend(s);
	s->is_open = false;
}

/* Bytes of a line that fill so many columns; what follows in a character of UTF-8 takes none. */
static size_t
fitting(const char *line, size_t size, unsigned columns)
{
	size_t   n = 0;
	unsigned used = 0;

	while (n < size && (used < columns || ((unsigned char)line[n] & 0xc0) == 0x80)) {
		used += ((unsigned char)line[n] & 0xc0) != 0x80;
		n++;
	}
	return n;
}

static void
line_draw(const char *line, size_t size, unsigned columns)
{
	fwrite(line, 1, fitting(line, size, columns), stdout);
	fputs(REST_OF_LINE, stdout);
}

void
screen_draw(const char *text, size_t size, const char *last)
{
	struct winsize w = size_now();
	const char    *end = text + size;

	fputs(HOME, stdout);
	for (unsigned row = 1; row < w.ws_row && text < end; row++) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		size_t      line = newline ? (size_t)(newline - text) : (size_t)(end - text);

		line_draw(text, line, w.ws_col);
		fputs("\r\n", stdout);
		text += line + (newline != NULL);
	}
	line_draw(last, strlen(last), w.ws_col);
	fputs(REST_OF_SCREEN, stdout);
	fflush(stdout);
}
