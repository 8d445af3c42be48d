/* hello.c - a whole daemon: options, signals, logs, health and profiles come with it. */
#include <component/component.h>

static const char *who = "world";
static int64_t every = COMPONENT_SECONDS(1);
static const struct component_flag flags[] = {
	COMPONENT_FLAG_STRING("who", &who, "Whom to greet.", .section = "Hello", .bits = COMPONENT_FLAG_RELOADABLE),
	COMPONENT_FLAG_DURATION("every", &every, "Time between greetings.", .section = "Hello", .min = COMPONENT_MICROSECONDS(1)),
	COMPONENT_FLAG_END
};
static void greet(struct component *c, void *whom)
{
	component_log(c, COMPONENT_LOG_INFO, "hello", COMPONENT_KV("who", *(const char **)whom));
}
static int start(struct component *c, struct component_error *err)
{
	(void)err;
	return component_timer_add(c, 0, every, greet, &who, NULL);
}
int main(int argc, char **argv)
{
	static const struct component_spec spec = COMPONENT_SPEC(.name = "hello",
		.summary = "Greets somebody again and again.", .version = "1.0", .flags = flags, .start = start);
	return component_main(&spec, argc, argv);
}
