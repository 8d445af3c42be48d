/*
 * flags.h - options of a program: one table row is the whole truth.
 *
 * A row names an option, its variable, its section and its help.  The command
 * line, the environment, the config file, --help, --dump-options, the man page
 * and the shell completion are all made from the rows.  The default of an option
 * is what its variable holds when the row is added.
 *
 * A value comes from the first of these that has one:
 *
 *     command line > environment > config file > component default > default
 *
 * An empty value ("--x=", an empty variable, an empty YAML scalar, which is what
 * templates render for a value that nobody set) means "not given here".  The
 * environment of --some-flag of my-daemon is MY_DAEMON_SOME_FLAG, then
 * COMPONENT_SOME_FLAG, then the variables of the row's env member; none is read
 * in a set-user-ID start.  The key in the config file is the option's name.
 *
 * This is also the door for a daemon that wants nothing but the options:
 *
 *     static bool verbose;
 *     static const struct component_flag rows[] = {
 *             COMPONENT_FLAG_BOOL("verbose", &verbose, "Say more.", .section = "Output"),
 *             COMPONENT_FLAG_END
 *     };
 *
 *     component_flags_new(&spec, &f, &err);
 *     component_flags_add(f, rows, &err);
 *     r = component_flags_parse(f, argc, argv, &err);
 *     if (r < 0) { fprintf(stderr, "%s\n", err.text); return component_flags_exit_status(f); }
 *     if (r > 0) { fputs(component_flags_output(f), stdout); return 0; }
 *
 * Threads: one thread at a time for one struct component_flags; variables are
 * written by parse and reload alone, numbers and strings in one store each.
 * Signals: nothing here may be called from a handler.  Fork: the child has its
 * own copy of everything; nothing is shared.
 */
#ifndef COMPONENT_FLAGS_H
#define COMPONENT_FLAGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <component/duration.h>
#include <component/each.h>
#include <component/error.h>
#include <component/export.h>

COMPONENT_BEGIN

struct component_flags;

enum component_flag_type {
	COMPONENT_FLAG_TYPE_END, /* closes a table */
	COMPONENT_FLAG_TYPE_BOOL,
	COMPONENT_FLAG_TYPE_INT,      /* int64_t */
	COMPONENT_FLAG_TYPE_NUMBER,   /* double */
	COMPONENT_FLAG_TYPE_SIZE,     /* uint64_t, bytes; "512KiB" */
	COMPONENT_FLAG_TYPE_DURATION, /* int64_t, nanoseconds: duration.h; "1h30m" */
	COMPONENT_FLAG_TYPE_STRING,   /* const char *, owned by the flags object */
	COMPONENT_FLAG_TYPE_LIST,     /* struct component_list */
	COMPONENT_FLAG_TYPE_ENUM,     /* int, index into choices */
	COMPONENT_FLAG_TYPE_ADDRESS,  /* const char *, checked by the address parser */
};

/*
 * Strings of a list flag; owned by the flags object.  Strings and lists that a
 * reload replaces stay readable until the next reload.
 */
struct component_list {
	const char *const *items;
	size_t             count;
};

enum component_flag_bits {
	COMPONENT_FLAG_SECRET     = 1 << 0, /* value redacted wherever it would be shown */
	COMPONENT_FLAG_HIDDEN     = 1 << 1, /* only in --help-all */
	COMPONENT_FLAG_BOOL_WORD  = 1 << 2, /* a following word "true" or "false" is its value */
	COMPONENT_FLAG_RELOADABLE = 1 << 3, /* a reload may change it */
	COMPONENT_FLAG_OPTIONAL   = 1 << 4, /* "--x" may stand alone, which changes nothing; a value is written "--x=N", never "--x N" */
};

/*
 * One row.  Write it with the macros below; leave unnamed members zero.  Members
 * are named in any order.  All strings are borrowed
 * until component_flags_free(); the row itself is copied.
 */
struct component_flag {
	const char              *name;    /* "enable-pprof": a-z, 0-9, '-' */
	enum component_flag_type type;
	union {
		void                  *any;
		bool                  *boolean;
		int64_t               *integer;
		double                *number;
		uint64_t              *size;
		const char           **string;
		struct component_list *list;
		int                   *choice;
	} value;
	const char        *help;     /* one or more sentences */
	const char        *section;  /* heading in --help */
	const char        *argument; /* word shown after '=', NULL for the type's */
	int64_t            min, max; /* inclusive, in the variable's unit, each for itself:
	                              * without max there is no upper limit, without min the
	                              * lower one is 0, or none where max is below 0 or 0 */
	const char *const *choices;  /* of an enum, NULL at the end */
	const char        *words;    /* names for values, "off=0 debug=4", any case; or NULL */
	const char        *env;      /* alias variables, blank-separated; own ones need no mention */
	const char        *alias;    /* other option names, blank-separated */
	const char        *deprecated; /* former option names, blank-separated: work, and warn */
	const char        *key;      /* alias key in the config file, "profiling.enabled" */
	const char        *enables;  /* a bool row switched on by an alias variable of this one
	                              * that is neither empty nor "0", unless that row is given */
	const char        *needs;    /* a bool row without which this one has no effect: one warning;
	                              * blank-separated after it, rows that do instead of it */
	char               letter;   /* short option, 0 for none */
	unsigned           bits;     /* enum component_flag_bits */
};

/*
 * The rows of a table, closed by COMPONENT_FLAG_END:
 *
 *     COMPONENT_FLAG_INT("workers", &opt.workers, "Threads that work.",
 *             .section = "Work", .min = 1, .max = 64, .letter = 'w')
 *
 * name, address of the variable, help, then any other members by name (section is
 * wanted).  A variable of the wrong type does not compile.  In C++ a value with a comma is
 * in parentheses, and no value is a local variable.
 */
#define COMPONENT_FLAG_BOOL(name_, variable, ...) \
	COMPONENT_FLAG_ROW_(name_, BOOL, boolean, bool, bool, variable, __VA_ARGS__)
#define COMPONENT_FLAG_INT(name_, variable, ...) \
	COMPONENT_FLAG_ROW_(name_, INT, integer, int64_t, int64_t, variable, __VA_ARGS__)
#define COMPONENT_FLAG_NUMBER(name_, variable, ...) \
	COMPONENT_FLAG_ROW_(name_, NUMBER, number, double, double, variable, __VA_ARGS__)
#define COMPONENT_FLAG_SIZE(name_, variable, ...) \
	COMPONENT_FLAG_ROW_(name_, SIZE, size, uint64_t, uint64_t, variable, __VA_ARGS__)
#define COMPONENT_FLAG_DURATION(name_, variable, ...) \
	COMPONENT_FLAG_ROW_(name_, DURATION, integer, int64_t, int64_t, variable, __VA_ARGS__)
#define COMPONENT_FLAG_STRING(name_, variable, ...) \
	COMPONENT_FLAG_ROW_(name_, STRING, string, const char *, const_char_pointer, variable, __VA_ARGS__)
#define COMPONENT_FLAG_LIST(name_, variable, ...) \
	COMPONENT_FLAG_ROW_(name_, LIST, list, struct component_list, component_list, variable, __VA_ARGS__)
#define COMPONENT_FLAG_ENUM(name_, variable, ...) \
	COMPONENT_FLAG_ROW_(name_, ENUM, choice, int, int, variable, __VA_ARGS__)
#define COMPONENT_FLAG_ADDRESS(name_, variable, ...) \
	COMPONENT_FLAG_ROW_(name_, ADDRESS, string, const char *, const_char_pointer, variable, __VA_ARGS__)

#ifdef __cplusplus
#define COMPONENT_FLAG_END component_flag()
#define COMPONENT_FLAG_ROW_(name_, type_, member, ctype, wanted, variable_, ...)                  \
	COMPONENT_SET_(component_flag, component_flag_##member(name_, COMPONENT_FLAG_TYPE_##type_, variable_), \
		.help = __VA_ARGS__)
static inline component_flag
component_flag_boolean(const char *name, component_flag_type type, bool *variable)
{
	component_flag row = component_flag();

	row.name = name;
	row.type = type;
	row.value.boolean = variable;
	return row;
}
static inline component_flag
component_flag_integer(const char *name, component_flag_type type, int64_t *variable)
{
	component_flag row = component_flag();

	row.name = name;
	row.type = type;
	row.value.integer = variable;
	return row;
}
static inline component_flag
component_flag_number(const char *name, component_flag_type type, double *variable)
{
	component_flag row = component_flag();

	row.name = name;
	row.type = type;
	row.value.number = variable;
	return row;
}
static inline component_flag
component_flag_size(const char *name, component_flag_type type, uint64_t *variable)
{
	component_flag row = component_flag();

	row.name = name;
	row.type = type;
	row.value.size = variable;
	return row;
}
static inline component_flag
component_flag_string(const char *name, component_flag_type type, const char **variable)
{
	component_flag row = component_flag();

	row.name = name;
	row.type = type;
	row.value.string = variable;
	return row;
}
static inline component_flag
component_flag_list(const char *name, component_flag_type type, component_list *variable)
{
	component_flag row = component_flag();

	row.name = name;
	row.type = type;
	row.value.list = variable;
	return row;
}
static inline component_flag
component_flag_choice(const char *name, component_flag_type type, int *variable)
{
	component_flag row = component_flag();

	row.name = name;
	row.type = type;
	row.value.choice = variable;
	return row;
}
#else
#define COMPONENT_FLAG_END { .name = NULL, .type = COMPONENT_FLAG_TYPE_END }
/* Inside the macros.  help is the first of the variable arguments. */
#define COMPONENT_FLAG_ROW_(name_, type_, member, ctype, wanted, variable, ...) \
	{ .name = name_, .type = COMPONENT_FLAG_TYPE_##type_, \
	  .value = { .member = _Generic((variable), ctype *: (variable), default: component_flag_wants_##wanted) }, \
	  .help = __VA_ARGS__ }
/* What the compiler names when it refuses a variable of another type; nowhere defined. */
extern const struct this_row_wants_the_address_of_a_bool { char none; } component_flag_wants_bool;
extern const struct this_row_wants_the_address_of_an_int64_t { char none; } component_flag_wants_int64_t;
extern const struct this_row_wants_the_address_of_a_double { char none; } component_flag_wants_double;
extern const struct this_row_wants_the_address_of_a_uint64_t { char none; } component_flag_wants_uint64_t;
extern const struct this_row_wants_the_address_of_a_const_char_pointer { char none; } component_flag_wants_const_char_pointer;
extern const struct this_row_wants_the_address_of_a_component_list { char none; } component_flag_wants_component_list;
extern const struct this_row_wants_the_address_of_an_int { char none; } component_flag_wants_int;
#endif

/* What a program is, for help, man page and environment prefix.  Strings are
 * borrowed until component_flags_free(). */
struct component_flags_spec {
	size_t      size;     /* COMPONENT_FLAGS_SPEC fills it */
	const char *name;     /* "backend-controller": prefix BACKEND_CONTROLLER_ */
	const char *summary;  /* one sentence */
	const char *version;  /* "1.2.3" */
	const char *bugs;     /* where to report bugs, or NULL */
};

#define COMPONENT_FLAGS_SPEC(...) COMPONENT_SIZED_(component_flags_spec, __VA_ARGS__)

/*
 * component_flags_new - an empty set of options
 *
 * Adds the rows that every program has: --help, --help-all, --version, --config,
 * --check-config, --dump-options, and hidden --completion and --generate-man.
 *
 *   returns  0 and *ret; -EINVAL when the name is missing or is not made of
 *            a-z, 0-9, '-', '_' and '.'; -ENOMEM
 *   owns     *ret is the caller's: component_flags_free()
 *   threads  any; no state is shared between objects
 *   signals  not from a handler
 *   fork     the child may go on using and must free its copy
 *   source   flags/flags.c
 */
COMPONENT_API int  component_flags_new(const struct component_flags_spec *spec, struct component_flags **ret, struct component_error *err);

/*
 * component_flags_add - one more table
 *
 * Keeps what the variables hold now as the defaults.  Faults of tables (missing
 * help, a name taken twice, an impossible default, ...) are reported by
 * component_flags_parse(), those of all tables at once.
 *
 *   rows     ends with COMPONENT_FLAG_END; copied, its strings and variables are
 *            borrowed until component_flags_free()
 *   returns  0; -EBUSY after parsing; -EINVAL without f or rows; -ENOMEM
 *   owns     nothing passes
 *   threads  one at a time for one f
 *   signals  not from a handler
 *   fork     concerns the calling process only
 *   source   flags/flags.c
 */
COMPONENT_API int  component_flags_add(struct component_flags *f, const struct component_flag *rows, struct component_error *err);

/*
 * component_flags_set_default - another default for a row already added
 *
 * The "component default": above the row's own, below everything a person says.
 *
 *   value    as on the command line; copied; not empty
 *   returns  0; -ENOENT no such row; -EINVAL or -ERANGE with err naming the value
 *            and what to write; -EBUSY after parsing; -ENOMEM
 *   owns     nothing passes
 *   threads  one at a time for one f
 *   signals  not from a handler
 *   fork     concerns the calling process only
 *   source   flags/flags.c
 */
COMPONENT_API int  component_flags_set_default(struct component_flags *f, const char *name, const char *value, struct component_error *err);

/*
 * component_flags_check_fn - a rule about several options
 *
 * Runs after all values are known, on parse and on reload; the variables hold the
 * new values then, and component_flags_given() and _source() speak of them.  When
 * it fails the variables get their old values back.
 *
 *   err      gets one line or more, each naming the options and the way out; they
 *            join the other errors.  Never NULL
 *   returns  0, or a negative errno with err filled
 */
typedef int component_flags_check_fn(struct component_flags *f, void *arg, struct component_error *err);

/*
 * component_flags_add_check - have a rule checked
 *
 *   arg      given to fn; borrowed until component_flags_free()
 *   returns  0; -EINVAL without f or fn; -EBUSY after parsing; -ENOMEM
 *   owns     nothing passes
 *   threads  one at a time for one f; fn runs on the thread that parses or reloads
 *   signals  not from a handler
 *   fork     concerns the calling process only
 *   source   flags/flags.c
 */
COMPONENT_API int  component_flags_add_check(struct component_flags *f, component_flags_check_fn *fn, void *arg);

/*
 * component_flags_warn - a warning of one's own, for use in a check
 *
 *   returns  nothing; the line is listed by component_flags_warning()
 *   owns     nothing passes
 *   threads  one at a time for one f
 *   signals  not from a handler
 *   fork     concerns the calling process only
 *   source   flags/flags.c
 */
COMPONENT_API void component_flags_warn(struct component_flags *f, const char *format, ...)
	COMPONENT_PRINTF(2, 3);

/*
 * component_flags_fault - what a check finds wrong with the value of one option
 *
 * Adds a line to err that names where the value came from, the option, a variable or
 * a line of the config file, shows the value unless the row is SECRET, and ends with
 * the text: "option '--qps': '0': write a number above 0".  For use in a check, which
 * then has the exit status of a bad config file where all faults are the file's.
 *
 *   err      may be NULL
 *   returns  -EINVAL, for the check to return
 *   owns     nothing passes
 *   threads  one at a time for one f
 *   signals  not from a handler
 *   fork     concerns the calling process only
 *   source   flags/fault.c
 */
COMPONENT_API int  component_flags_fault(struct component_flags *f, const char *name, struct component_error *err,
	const char *format, ...) COMPONENT_PRINTF(4, 5);

/*
 * component_flags_parse - command line, environment and config file into the rows' variables
 *
 * Reads everything, then reports every error, one a line, and "Try 'x --help' for
 * more information." at the end.  On an error no variable has changed.  Prints
 * nothing.  Uses getopt_long(3), whose optind, opterr, optopt and optarg are put
 * back.
 *
 *   argv     not changed; need not outlive the call
 *   returns  0: go on
 *            1: --help and the like: print component_flags_output(), exit 0
 *            -EINVAL: print err->text, exit component_flags_exit_status()
 *            -EALREADY: parsed before; -ENOMEM
 *   owns     strings and lists in the variables belong to f
 *   threads  one in the process at a time, as getopt_long(3) wants
 *   signals  not from a handler
 *   fork     concerns the calling process only
 *   source   flags/parse.c
 */
COMPONENT_API int  component_flags_parse(struct component_flags *f, int argc, char **argv, struct component_error *err);

/*
 * component_flags_extract - our options out of a command line that is somebody else's
 *
 * For a daemon that reads its options by itself and shall have these besides.  Takes
 * "--name=value", "--name value" and, of a bool, "--name", "--no-name" and "--name true"
 * of the rows of f, as far as "--", and leaves all other words as they were, in their
 * order.  Letters are the daemon's, and so are --help, --version, --config and the others
 * that component_flags_new() has added: in their place are --profiling-help,
 * --profiling-config=FILE and --profiling-dump-options.  Environment and config file are
 * read as by component_flags_parse(), and the rules of rows are checked.  optind is 0 afterwards
 * where it was 1: getopt(3) then begins anew.  A daemon that reads optind before it calls getopt(3)
 * sets it to 1 first.
 *
 *   argc     gets the number of words that are left
 *   argv     of main(), with NULL behind the last word; changed only when 0 is returned
 *   returns  0: go on; 1 and errors as component_flags_parse()
 *   owns     as component_flags_parse()
 *   threads  as component_flags_parse()
 *   signals  not from a handler
 *   fork     concerns the calling process only
 *   source   flags/extract.c
 */
COMPONENT_API int  component_flags_extract(int *argc, char **argv, struct component_flags *f, struct component_error *err);

/*
 * component_flags_reload - environment and config file once more
 *
 * Only RELOADABLE rows change; where another row would, a warning says that it
 * needs a restart.  On a fault nothing changes.  What the command line gave stays.
 *
 *   returns  0; -EINVAL with every error in err, as parse does; -ENOMEM
 *   owns     strings and lists of before the reload live until the next one
 *   threads  one at a time for one f; other threads may read the variables of
 *            numbers, enums and strings meanwhile, not those of lists
 *   signals  not from a handler
 *   fork     concerns the calling process only
 *   source   flags/parse.c
 */
COMPONENT_API int  component_flags_reload(struct component_flags *f, struct component_error *err);

/*
 * component_flags_undo - take back what the last good reload has changed
 *
 * For a program that finds out only then that it cannot use a value.  Variables,
 * sources and warnings are those of before; once for each reload, later ones do
 * nothing.
 *
 *   returns  nothing; there is nothing that can fail
 *   owns     strings and lists that were taken back live until the next reload
 *   threads  as component_flags_reload()
 *   signals  not from a handler
 *   fork     concerns the calling process only
 *   source   flags/parse.c
 */
COMPONENT_API void component_flags_undo(struct component_flags *f);

/*
 * component_flags_dump - what --dump-options prints, as things are now
 *
 *   json     true: the JSON form
 *   returns  text from malloc(), the caller's; NULL: out of memory
 *   threads  one at a time for one f
 *   signals  not from a handler
 *   fork     concerns the calling process only
 *   source   flags/dump.c
 */
COMPONENT_API char *component_flags_dump(struct component_flags *f, bool json);

/*
 * component_flags_visit - each option by its name, with its value and where that came from
 *
 *   fn       value: as it would be written behind "="; that of a SECRET row is "(redacted)", if it
 *            has one.  source: as component_flags_source() says.  Both are borrowed for the call
 *   returns  0; -ENOMEM, and some may have been visited
 *   threads  one at a time for one f
 *   signals  not from a handler
 *   fork     concerns the calling process only
 *   source   flags/dump.c
 */
typedef void component_flags_visit_fn(void *arg, const char *name, const char *value, const char *source);
COMPONENT_API int component_flags_visit(struct component_flags *f, component_flags_visit_fn *fn, void *arg);

/*
 * component_flags_output      - text that --help and the like want on standard output
 * component_flags_exit_status - 0, or after a failed parse: 2 bad option or variable,
 *                               78 bad config file, 1 a fault of the program itself
 * component_flags_source      - where a value came from: "flag", "env:NAME",
 *                               "file:PATH:LINE", "component default", "default";
 *                               NULL: no such row
 * component_flags_given       - was it given by a person (flag, env, file)?
 * component_flags_warning     - warnings of the last parse, failed or not, or of the
 *                               last good reload, one by one; NULL after the last
 * component_flags_secrets     - names of SECRET rows, aliases too, NULL at the end
 * component_flags_free        - the object and all strings it put into variables;
 *                               string and list variables get their defaults back
 *
 *   returns  as said; never NULL from _output (then empty) and _secrets
 *   owns     f keeps what is returned; _warning and _source until the next parse or
 *            reload, the others until free.  free(NULL) is fine
 *   threads  one at a time for one f
 *   signals  not from a handler
 *   fork     concerns the calling process only
 *   source   flags/flags.c
 */
COMPONENT_API const char *component_flags_output(const struct component_flags *f);
COMPONENT_API int  component_flags_exit_status(const struct component_flags *f);
COMPONENT_API const char *component_flags_source(const struct component_flags *f, const char *name);
COMPONENT_API bool component_flags_given(const struct component_flags *f, const char *name);
COMPONENT_API const char *component_flags_warning(const struct component_flags *f, size_t i);
COMPONENT_API const char *const *component_flags_secrets(const struct component_flags *f);
COMPONENT_API void component_flags_free(struct component_flags *f);

COMPONENT_END

#endif
