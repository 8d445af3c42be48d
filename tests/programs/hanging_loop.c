/*
 * hanging_loop.c - a daemon whose loop hangs in a timer's callback, for BLOCK_MS.
 *
 * Says "loop blocked" before and "loop goes on" after.  What answers meanwhile
 * answers from a thread of its own.  Used by tests/project/commands.t.
 */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include <component/component.h>

static void
hang(struct component *c, void *arg)
{
	const char     *ms = getenv("BLOCK_MS");
	long            n = ms ? atol(ms) : 0;
	struct timespec left = { n / 1000, n % 1000 * 1000000 };

	(void)arg;
	component_log(c, COMPONENT_LOG_INFO, "loop blocked", NULL);
	while (nanosleep(&left, &left) != 0 && errno == EINTR)
		;
	component_log(c, COMPONENT_LOG_INFO, "loop goes on", NULL);
}

static int
start(struct component *c, struct component_error *err)
{
	(void)err;
	return component_timer_add(c, 0, 0, hang, NULL, NULL);
}

int
main(int argc, char **argv)
{
	static const struct component_spec spec = COMPONENT_SPEC(
		.name = "blocked", .summary = "Hangs in its loop.", .version = "0", .start = start);

	return component_main(&spec, argc, argv);
}
