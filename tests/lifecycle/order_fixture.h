/*
 * order_fixture.h - what tests of the order of a component's life share: a component of three
 * parts, each of which notes what is asked of it, and fails when told.
 */
#ifndef TESTS_LIFECYCLE_ORDER_FIXTURE_H
#define TESTS_LIFECYCLE_ORDER_FIXTURE_H

#include "fixture.h"

/* What happened, a word each. */
static char     events[1024];
static unsigned fail_at; /* bits: which starts fail */

static inline void
note(const char *who, const char *what)
{
	size_t used = strlen(events);

	snprintf(events + used, sizeof(events) - used, "%s%s.%s", used ? " " : "", who, what);
}

static void (*in_last_stop)(struct component *c);

#define PART(letter, bit, is_last)                                                             \
	static int letter##_init(struct component *c, void **ret, struct component_error *err) \
	{                                                                                      \
		(void)c;                                                                       \
		(void)err;                                                                     \
		*ret = (void *)(uintptr_t) #letter;                                            \
		note(#letter, "init");                                                         \
		return 0;                                                                      \
	}                                                                                      \
	static int letter##_start(struct component *c, void *s, struct component_error *err)   \
	{                                                                                      \
		(void)c;                                                                       \
		assert_string_equal(s, #letter);                                               \
		note(#letter, "start");                                                        \
		if (!(fail_at & (bit)))                                                        \
			return 0;                                                              \
		component_error_set(err, "%s is broken", #letter);                             \
		return -EADDRINUSE;                                                            \
	}                                                                                      \
	static int letter##_reload(struct component *c, void *s, struct component_error *err)  \
	{                                                                                      \
		(void)c;                                                                       \
		(void)s;                                                                       \
		note(#letter, "reload");                                                       \
		if (!(fail_at & (bit)))                                                        \
			return 0;                                                              \
		component_error_set(err, "%s is broken", #letter);                             \
		return -EIO;                                                                   \
	}                                                                                      \
	static void letter##_stop(struct component *c, void *s)                                \
	{                                                                                      \
		(void)s;                                                                       \
		note(#letter, "stop");                                                         \
		if ((is_last) && in_last_stop)                                                 \
			in_last_stop(c);                                                       \
	}                                                                                      \
	static void letter##_free(void *s)                                                     \
	{                                                                                      \
		note(s, "free");                                                               \
	}                                                                                      \
	static const struct component_part part_##letter = {                                   \
		sizeof(part_##letter), #letter, letter##_init, letter##_start,                 \
		letter##_reload, letter##_stop, letter##_free, NULL, is_last,                  \
	}

#define FAIL_A 1u
#define FAIL_B 2u
#define FAIL_P 4u
#define FAIL_SPEC 8u
#define FAIL_SPEC_BACK 16u /* the second reload */

PART(a, FAIL_A, false);
PART(b, FAIL_B, false);
PART(p, FAIL_P, true);

static void (*in_start)(struct component *c);
static void (*in_stop)(struct component *c);

static inline int
spec_start(struct component *c, struct component_error *err)
{
	note("spec", "start");
	if (in_start)
		in_start(c);
	if (!(fail_at & FAIL_SPEC))
		return 0;
	component_error_set(err, "spec is broken");
	return -EIO;
}

static inline int
spec_reload(struct component *c, struct component_error *err)
{
	bool again = strstr(events, "spec.reload") != NULL;

	(void)c;
	note("spec", "reload");
	if (!(fail_at & FAIL_SPEC_BACK) || !again)
		return 0;
	component_error_set(err, "spec cannot go back");
	return -EIO;
}

static inline void
spec_stop(struct component *c)
{
	note("spec", "stop");
	if (in_stop)
		in_stop(c);
}

static int data;

static const struct component_spec spec = {
	.size = sizeof(spec), .name = "daemon", .summary = "A daemon.", .version = "1.2.3",
	.data = &data, .start = spec_start, .reload = spec_reload, .stop = spec_stop,
};

static inline struct component *
made(const char *const *options)
{
	struct component_error err = COMPONENT_ERROR_INIT;
	struct component      *c = NULL;

	events[0] = '\0';
	assert_int_equal(component_new(&spec, &c, &err), 0);
	assert_int_equal(component_use(c, &part_p, &err), 0);
	assert_int_equal(component_use(c, &part_a, &err), 0);
	assert_int_equal(component_use(c, &part_b, &err), 0);
	if (life_parse(c, &err, options) != 0)
		fail_msg("%s", err.text);
	return c;
}

static inline struct component *
started(const char *const *options)
{
	struct component_error err = COMPONENT_ERROR_INIT;
	struct component      *c = made(options);

	if (component_start(c, &err) != 0)
		fail_msg("%s", err.text);
	assert_int_equal(component_phase(c), COMPONENT_PHASE_RUNNING);
	events[0] = '\0';
	return c;
}

static inline int
fresh(void **state)
{
	fail_at = 0;
	in_start = NULL;
	in_stop = NULL;
	return life_setup(state);
}

#endif
