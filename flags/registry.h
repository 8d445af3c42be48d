/*
 * registry.h - all rows of a program and what was said about each of them.
 *
 * An entry is a row and a setting per level; the highest one that is set wins.  A
 * round is one attempt to fill the levels that people write (file, environment,
 * command line).  Only a round without a fault reaches the entries.
 */
#ifndef FLAGS_REGISTRY_H
#define FLAGS_REGISTRY_H

#include <component/flags.h>

#include "operands.h"
#include "text.h"
#include "value.h"
#include "words.h"

#define EXIT_STATUS_PROGRAM 1  /* a fault of the program's own tables, no memory */
#define EXIT_STATUS_USAGE   2  /* LSB: invalid argument */
#define EXIT_STATUS_CONFIG  78 /* EX_CONFIG of sysexits.h */

/* Lowest first. */
enum flag_level {
	LEVEL_DEFAULT,
	LEVEL_COMPONENT,
	LEVEL_FILE,
	LEVEL_ENV,
	LEVEL_LINE,
	LEVEL_COUNT
};

/* What a built-in row does instead of holding a value. */
enum flag_action {
	ACTION_NONE,
	ACTION_CONFIG, /* a value like others, but not from the config file */
	ACTION_HELP,
	ACTION_HELP_ALL,
	ACTION_VERSION,
	ACTION_COMPLETION,
	ACTION_MAN,
	ACTION_CHECK,
	ACTION_DUMP,
};

struct flag_setting {
	bool              set;
	struct flag_value value;
	char             *source; /* "env:NAME"; NULL where the level says it all */
};

struct flag_entry {
	struct component_flag row;
	enum flag_action      action;
	struct flag_setting   at[LEVEL_COUNT];
};

struct flag_round {
	struct flag_setting (*at)[LEVEL_COUNT]; /* one for each entry */
	size_t       count;
	struct lines errors;      /* without the program's name */
	struct lines warnings;
	size_t       file_errors; /* of errors: those the config file is to blame for */
	bool         config_found; /* the file was there; in the round of the last reload, which holds the values before it: whether it was then */
	char        *config_path; /* absolute, so that a reload finds it after chdir() */
};

struct flag_check {
	component_flags_check_fn *fn;
	void                     *arg;
};

struct component_flags {
	struct component_flags_spec spec;
	struct flag_entry *entries;
	size_t             count;
	struct flag_check *checks;
	size_t             check_count;
	struct flag_round  round;   /* of the last parse or reload that went well: warnings;
	                             * and what the entries held before it */
	bool               undone;  /* round holds what was taken back */
	struct flag_round  refused; /* by a check of the last reload, until the next one */
	struct flag_round *current; /* the one whose checks are running */
	char              *config_path;
	bool               config_found; /* the values in force are from it: a reload misses it, then */
	bool               parsed;
	bool               foreign; /* read out of somebody else's command line, extract.c */
	bool               config_own; /* by the program's own variable, not by COMPONENT_CONFIG */
	int                exit_status;
	struct text        output;
	const char       **secrets;
	struct lines       secret_names;
	/* Variables of the built-in rows. */
	struct {
		const char *help, *config;
		bool        help_all, check, man;
		int         version, dump, completion;
	} builtin;
	const struct flag_entry *wanted; /* the first of --help and the like */
	struct {
		const char *shown; /* NULL: none are taken */
		size_t      least, most, count;
		bool        first;
		char      **words; /* count of them, and NULL */
	} operands;
	/* Seams for tests. */
	const char *const *environment; /* NULL: environ, as it is at that moment */
	bool         secure; /* AT_SECURE: the environment is somebody else's */
	unsigned     width;  /* columns of --help; 0: look at COLUMNS and the terminal */
};

/* How a name on the command line or in a file matches a row. */
enum flag_match { MATCH_NAME, MATCH_ALIAS, MATCH_DEPRECATED, MATCH_NO };

/* flags.c */
bool flag_was_given(const struct flag_entry *e);
/* The winning setting. */
const struct flag_setting *flag_setting_of(const struct flag_entry *e, enum flag_level *ret_level);
/* "flag", "env:X", ...: never NULL. */
const char *flag_source_of(const struct flag_entry *e);

/* names.c.  Is it a value that --dump-options shows, or something to do? */
bool flag_holds_value(const struct flag_entry *e);
/* --help-all and the like: no "--no-help-all". */
bool flag_is_bool_action(const struct flag_entry *e);
/* size bytes of name, '_' read as '-'; ret_match may be NULL. */
struct flag_entry *flags_find(const struct component_flags *f, const char *name, size_t size, enum flag_match *ret_match);
struct flag_entry *flags_find_key(const struct component_flags *f, const char *key);
struct flag_entry *flags_find_letter(const struct component_flags *f, char letter);
/* The name nearest to what somebody wrote there, in buf; "" if none is near. */
enum flag_place { PLACE_LINE, PLACE_ENV, PLACE_FILE };
const char *flags_nearest(const struct component_flags *f, enum flag_place place, const char *name, char *buf, size_t size);
/* BACKEND_CONTROLLER_ENABLE_PPROF of the two names, the second of size bytes. */
#define FLAG_VARIABLE_MAX 256 /* bytes; lint.c holds names to 64 */
void flag_variable(const char *prefix, const char *name, size_t size, char buf[FLAG_VARIABLE_MAX]);
/* Calls fn for each variable that is read for the row, the strongest first, until it
 * returns nonzero, which is returned.  own: made of the option's name. */
typedef int flag_env_fn(void *arg, const char *variable, bool own);
int flags_env_each(const struct component_flags *f, const struct flag_entry *e, flag_env_fn *fn, void *arg);

/* lint.c.  Every fault of every table; their number. */
size_t flags_lint(const struct component_flags *f, struct lines *faults);
/* Those that show without looking at other rows. */
size_t flags_lint_row(const struct flag_entry *e, struct lines *faults);

/* round.c */
int  flag_round_init(struct flag_round *round, const struct component_flags *f);
void flag_round_release(struct flag_round *round);
/* Takes text in at a level; label is "option '--x'" and the like.  An empty text is
 * not given.  Lists on the command line add up.  Faults go to round->errors. */
void flag_round_set(struct component_flags *f, struct flag_round *round, const struct flag_entry *e,
	enum flag_level level, const char *text, const char *label, const char *source);
/* Takes the value over (and leaves v without memory). */
void flag_round_put(struct component_flags *f, struct flag_round *round, const struct flag_entry *e,
	enum flag_level level, struct flag_value *v, const char *source);
void flag_round_fault(struct flag_round *round, enum flag_level level, const char *label,
	const struct component_flag *row, const char *value, const char *why);
struct flag_setting *flag_round_at(struct flag_round *round, const struct component_flags *f,
	const struct flag_entry *e, enum flag_level level);

/* The entry of a row that every program has, or NULL; its name is another in a foreign command line. */
struct flag_entry *flags_find_action(const struct component_flags *f, enum flag_action action);
/* line.c.  May it stand without a value? */
bool flag_takes_optional_argument(const struct flag_entry *e);

/* line.c, env.c, file.c: fill a level. */
int  flags_line_read(struct component_flags *f, struct flag_round *round, int argc, char **argv);
/* The value of a variable; "" and unset are NULL. */
const char *flags_env_get(const struct component_flags *f, const char *name);
void flags_env_read(struct component_flags *f, struct flag_round *round);
void flags_env_enable(struct component_flags *f, struct flag_round *round); /* after the file */
void flags_file_read(struct component_flags *f, struct flag_round *round);

/* help.c, man.c, completion.c, dump.c: write to f->output. */
int  flags_help_write(struct component_flags *f, bool all, const char *section, struct lines *errors);
void flags_version_write(struct component_flags *f, int form);
void flags_man_write(struct component_flags *f);
void flags_completion_write(struct component_flags *f, int shell);
void flags_dump_write(struct component_flags *f, int form);

/* help.c: the rows' sections in the order they are shown; NULL after the last. */
const char *flags_section(const struct component_flags *f, size_t i);
/* "--x=WORD" as --help shows it. */
void flags_usage_write(const struct flag_entry *e, struct text *t);
/* "(default 25s)" without the brackets; false if there is nothing to tell. */
bool flags_default_write(const struct flag_entry *e, struct text *t);

#endif
