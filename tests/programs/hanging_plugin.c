/* hanging_plugin.c - a plugin whose constructor never ends, and so holds the loader's lock. */
#include <config.h>

#include <unistd.h>

__attribute__((constructor)) static void
never_loaded(void)
{
	for (;;)
		pause();
}
