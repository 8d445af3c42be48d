/*
 * hunts.c - a daemon that is ill in the way that --fault says, to try docs/hunts.md on.
 *
 * It counts the visits of users.  Somebody visits every two milliseconds, and what then goes
 * wrong is a function of its own: a fault is a word in faults[], a number and a function.
 */
#include <component/component.h>

#include <stdlib.h>
#include <string.h>

#define USERS      400000
#define VISIT_NS   COMPONENT_MILLISECONDS(2)
#define PAGE_BYTES 4096

enum fault { NONE, HOT, LEAK };
static const char *const faults[] = { "none", "hot", "leak", NULL };
static int fault = NONE;

struct user {
	unsigned id, visits;
};
static struct user users[USERS];

struct visit {
	struct visit *before;
	char          page[PAGE_BYTES];
};
static struct visit *last_visit;

/* Looks through all of them, where a table would know. */
__attribute__((noinline)) static struct user *
find_user(unsigned id)
{
	for (size_t i = 0; i < USERS; i++)
		if (users[i].id == id)
			return &users[i];
	return NULL;
}

/* Keeps what nobody asks for again. */
__attribute__((noinline)) static void
remember_visit(unsigned id)
{
	struct visit *v = malloc(sizeof(*v));

	if (!v)
		return;
	memset(v->page, (int)id, sizeof(v->page));
	v->before = last_visit;
	last_visit = v;
}

static void
handle_visit(struct component *c, void *arg)
{
	static unsigned at = USERS; /* from the end: those have to be looked for longest */
	struct user    *u;

	(void)c;
	(void)arg;
	if (at == 0)
		at = USERS;
	at--;
	u = &users[at];
	if (fault == HOT)
		u = find_user(u->id);
	if (fault == LEAK)
		remember_visit(u->id);
	u->visits++;
}

static int
start(struct component *c, struct component_error *err)
{
	(void)err;
	for (unsigned i = 0; i < USERS; i++)
		users[USERS - 1 - i].id = i;
	return component_timer_add(c, 0, VISIT_NS, handle_visit, NULL, NULL);
}

static void
stop(struct component *c)
{
	unsigned long visits = 0;

	for (size_t i = 0; i < USERS; i++)
		visits += users[i].visits;
	component_log(c, COMPONENT_LOG_INFO, "visits counted", COMPONENT_KV("visits", visits));
}

int
main(int argc, char **argv)
{
	static const struct component_flag flags[] = {
		COMPONENT_FLAG_ENUM("fault", &fault, "What is wrong with it.", .section = "Hunts", .choices = faults),
		COMPONENT_FLAG_END
	};
	static const struct component_spec spec = COMPONENT_SPEC(.name = "hunts",
		.summary = "Is ill, so that one can look for the cause.", .version = "1.0", .flags = flags, .start = start, .stop = stop);

	return component_main(&spec, argc, argv);
}
