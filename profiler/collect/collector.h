/*
 * collector.h - a kind of profile as those see it who serve it: one value, filled in by the
 * file that collects.
 *
 * Nobody outside asks which kind it is; what is special about one is a member here.  A new
 * kind is such a value and a row in collectors.def.
 *
 *   members  NULL, 0 and false are "no such thing", unless it says otherwise
 *   threads  any, several at once; never a signal handler
 *   errors   0 or a negative errno; nothing is returned then
 */
#ifndef COLLECT_COLLECTOR_H
#define COLLECT_COLLECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "product.h"

#define COLLECTORS_MAX     32  /* rows of the table */
#define COLLECTORS_ALL_MAX 128 /* with those of families */

enum collector_unit { COLLECTOR_NUMBER, COLLECTOR_BYTES, COLLECTOR_NS };

/* How often it samples: an option, a line of "rates", a member of the public options. */
struct collector_rate {
	const char *option; /* "heap-profile-rate" */
	const char *help;   /* of the option, sentences */
	enum collector_unit unit;
	int64_t     max;    /* 0: none */
	int64_t   (*get)(void);
	int       (*set)(int64_t rate); /* 0: off; -ENOTSUP: status() says why */
	size_t      option_at; /* of its 64 bits in struct component_profiler_options; 0: it has none there */
	int64_t     usual;     /* then */
};

/* What a request asks of a snapshot or of a window that is closed. */
struct collect_params {
	bool gc;      /* gc=1 */
	bool own;     /* the library's threads, too */
	bool each;    /* threads one by one, PRODUCT_DUMP */
	bool text;    /* for debug=1, which says more of the process than a profile has room for */
	bool idle;    /* waiting, too */
};

/* What a sampler has done since the process began, off and on: each only grows. */
struct collector_figures {
	uint64_t samples;    /* taken */
	uint64_t lost;       /* of them, those that no profile has */
	uint64_t handler_ns; /* the time of its signal handler, waits for a processor included */
};

struct cpu_sampler;
struct windows;

struct collector {
	const char *name;
	const char *alias;       /* a second name */
	const char *alias_text;  /* of the index's line for it */
	const char *path;        /* one more route, of another place than /debug/pprof/ */
	const char *description;
	bool        beside;      /* Go has none of that name: a line below the index's table, with description */
	unsigned    products;    /* enum product_type, what can be made of it; 0: a page and no more */
	enum product_text text;  /* its debug=1 */
	struct profile_type types[PROFILE_TYPES_MAX]; /* of its profile, which collector_profile() begins */

	/* A snapshot of now; of two of them a delta can be made, unless no_delta. */
	int       (*snapshot)(const struct collector *c, const struct collect_params *params, struct product *ret);
	bool        no_delta;
	bool        takes_gc, takes_own;
	/* Or a window, between open and close; the one that closes or cancels it frees it. */
	int       (*open)(void **ret_window);
	int       (*close)(void *window, const struct collect_params *params, struct product *ret);
	void      (*cancel)(void *window);
	/* What close() would return now; the window stays open. */
	int       (*so_far)(void *window, const struct collect_params *params, struct product *ret);
	/* Whose lock FORK_WINDOWS holds, and whose forked() a child calls; NULL: none, or a fork slot
	 * of its own (cpu.c). */
	struct windows *windows;
	int         seconds;     /* of a window where nobody says */
	bool        fractions;   /* its seconds may be 1.5 */
	bool        takes_idle;
	const char *cannot;      /* before the reason when one of these fails: "Could not enable X" */

	size_t    (*count)(const struct collector *c); /* the index's Count column */
	const char *status_name; /* "heap and allocs"; NULL: as name; "": another one tells it on the index */
	const char *(*status)(void); /* why there is nothing, or ""; constant */
	const char *(*in_force)(void); /* what it stands on where status() is "", for programs; or NULL */
	void      (*less)(char *buf, size_t size); /* what is missing of it, or "" */
	/* "", or why it is empty and what would switch it on; constant. */
	const char *(*missing)(void);

	const struct collector_rate *rate; /* set when a server starts, and to 0 when it stops */
	/* For the windows and dumps of others. */
	const struct cpu_sampler *cpu; /* cpu_sampler.h */
	void      (*figures)(struct collector_figures *ret);
	int       (*in_use)(uint64_t *ret); /* bytes of live blocks, while its rate is not 0 */
	int       (*tell_waits)(bool on);   /* waits and wake-ups to events/wait.h, whatever its rate is */
	/* Each thread that is known to wait for a lock just now. */
	void      (*each_waiter)(void (*found)(void *arg, pid_t tid, const struct dump_lock *lock, bool timed), void *arg);
	uint32_t  (*creator)(pid_t tid);    /* the stack that made the thread, no reference taken; 0: not known.  Signal-safe */

	int       (*start)(void); /* with a server; what fails, status() tells */
	void      (*stop)(void);
	void      (*forget)(void); /* what was kept for the next snapshot */
	void      (*forked)(void); /* in a child; signal-safe */
};

/* Collectors that the program makes while it runs; they stay until it ends. */
struct collector_family {
	const struct collector *(*find)(const char *name);
	size_t                  (*list)(const struct collector **ret, size_t max); /* how many */
};

#define ROW(name)    extern const struct collector collect_##name;
#define FAMILY(name) extern const struct collector_family collect_##name;
#include "collectors.def"
#undef ROW
#undef FAMILY

/* The rows. */
extern const struct collector *const collectors[];
extern const size_t                  collector_count;

/* By name or alias, also of families; NULL. */
const struct collector *collector_find(const char *name);
/* Rows and families, by name; how many. */
size_t collector_list(const struct collector *ret[COLLECTORS_ALL_MAX]);
/* The first row that has this member; NULL. */
#define COLLECTOR_WITH(member) \
	__extension__({ \
		const struct collector *with = NULL; \
		for (size_t nth = 0; nth < collector_count && !with; nth++) \
			if (collectors[nth]->member) \
				with = collectors[nth]; \
		with; \
	})
/* How many types its profiles have. */
static inline unsigned
collector_type_count(const struct collector *c)
{
	unsigned n = 0;

	while (n < PROFILE_TYPES_MAX && c->types[n].type)
		n++;
	return n;
}

/* An empty profile of it, with its name and types. */
static inline void
collector_profile(const struct collector *c, struct profile *p)
{
	profile_init(p, c->name);
	p->type_count = collector_type_count(c);
	for (unsigned i = 0; i < p->type_count; i++)
		p->types[i] = c->types[i];
}

/* Is it collected over a time? */
static inline bool
collector_is_windowed(const struct collector *c)
{
	return c->open != NULL;
}

#endif
