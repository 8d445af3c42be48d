/* unwind_plugin.c - a function without a frame pointer whose frame has FRAME bytes. */
#include <string.h>

int plugin_call(int (*call)(void *), void *arg);

int
plugin_call(int (*call)(void *), void *arg)
{
	volatile char room[FRAME];

	memset((char *)room, 1, sizeof(room));
	return call(arg) + room[FRAME / 2];
}
