/*
 * profiling_rows.c - the options about profiling, and the server they ask for.
 *
 * Apart from the part (profiling.c) so that a daemon that uses nothing but
 * component_flags_parse() can have the same rows beside its own.
 *
 *     rows --> struct component_profiling_rows --> wanted? --> component_profiler_options
 *
 * Whether profiling is enabled is settled by the rows alone: an address given by
 * PPROF_BIND_ADDRESS switches it on through the row's "enables", one given by
 * --profiling-bind-address does not.
 *
 * What a stranger would get wrong: --profile-port and --profiling-bind-address are
 * one setting.  Given at one level (both on the command line, say) they contradict
 * each other and that is an error; at two, the nearer level wins as everywhere.
 *
 * --profiling-enable-file is not read here but for door (c), once: to follow it takes a loop
 * (enable_file.c).  What it says stands above the rows, as "said".
 *
 * Why --debug-socket-path works without --enable-pprof: it is a request of its own
 * for a server, one with a file mode for a lock; only a spoken "off" overrules it.
 *
 * Tests: tests/components/when_enabled.t, tests/components/profiling.t, tests/components/entry_points.t.
 */
#include <config.h>

#include "profiling_rows.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <component/ports.h>
#include <component/profiler.h>

#include "profiler.h"
#include "rates.h"
#include "record.h"

#define SECTION         "Profiling"
#define SECONDS_MAX     604800    /* a week; a window's samples are kept in memory */
#define REQUESTS_MAX    4096      /* each has a connection and a collector's memory */
#define MEMORY_MIN      (1 << 20) /* bytes: below 1 MiB no stack table of use fits */

static const char *const on_error_choices[] = { "fatal", "warn", NULL };
/* In the order of enum component_unwinder. */
static const char *const unwinder_choices[] = { "auto", "frame-pointer", "tables", "libunwind", NULL };

/* What options.def says in its own words: of a row's kind and life, and the variables of kinds. */
#define BITS_START   0
#define BITS_CHANGE  0
#define BITS_RELOAD  COMPONENT_FLAG_RELOADABLE
#define ROW_(type, name, variable, life, bits_, ...) \
	COMPONENT_FLAG_##type(name, variable, __VA_ARGS__, .bits = BITS_##life | (bits_)),
#define ROW_BOOL(name, variable, life, ...)    ROW_(BOOL, name, variable, life, COMPONENT_FLAG_BOOL_WORD, __VA_ARGS__)
#define ROW_COUNT(name, variable, life, ...)   ROW_(INT, name, variable, life, 0, __VA_ARGS__, .min = 1)
#define ROW_INT(name, variable, life, ...)     ROW_(INT, name, variable, life, 0, __VA_ARGS__)
#define ROW_SIZE(name, variable, life, ...)    ROW_(SIZE, name, variable, life, 0, __VA_ARGS__)
#define ROW_STRING(name, variable, life, ...)  ROW_(STRING, name, variable, life, 0, __VA_ARGS__)
#define ROW_ADDRESS(name, variable, life, ...) ROW_(ADDRESS, name, variable, life, 0, __VA_ARGS__)
#define ROW_LIST(name, variable, life, ...)    ROW_(LIST, name, variable, life, 0, __VA_ARGS__)
#define ROW_ENUM(name, variable, life, ...)    ROW_(ENUM, name, (int *)(variable), life, 0, __VA_ARGS__)

static int
rows_add(struct component_profiling_rows *p, struct component_error *err)
{
	struct component_flag rows[] = {
#define FLAG(member, kind, life, name, ...)   ROW_##kind(name, &p->member, life, __VA_ARGS__)
#define OPTION(member, kind, life, name, ...) ROW_##kind(name, &p->options.member, life, __VA_ARGS__)
#define MEMBER(...)
#include "options.def"
		COMPONENT_FLAG_END
	};

	for (size_t i = 0; rows[i].name; i++)
		if (!rows[i].section)
			rows[i].section = SECTION;
	return component_flags_add(p->flags, rows, err);
}

/* One for each collector that has a rate. */
static int
rates_add(struct component_profiling_rows *p, struct component_error *err)
{
	static const enum component_flag_type types[] = { [COLLECTOR_NUMBER] = COMPONENT_FLAG_TYPE_INT,
		[COLLECTOR_BYTES] = COMPONENT_FLAG_TYPE_SIZE, [COLLECTOR_NS] = COMPONENT_FLAG_TYPE_DURATION };
	int r = 0;

	for (size_t i = 0; i < collector_count && r == 0; i++) {
		const struct collector_rate *rate = collectors[i]->rate;
		struct component_flag        rows[2] = { { .value.integer = &p->rates[i] }, COMPONENT_FLAG_END };

		if (!rate)
			continue;
		p->rates[i] = rates_of_options(&p->options, rate);
		rows[0].name = rate->option;
		rows[0].type = types[rate->unit];
		rows[0].help = rate->help;
		rows[0].section = SECTION;
		rows[0].argument = rate->unit == COLLECTOR_NUMBER ? "N" : NULL;
		rows[0].max = rate->max;
		rows[0].bits = COMPONENT_FLAG_RELOADABLE;
		r = component_flags_add(p->flags, rows, err);
	}
	return r;
}

bool
profiling_rows_given(const struct component_profiling_rows *p, const char *row)
{
	return component_flags_given(p->flags, row);
}

/* How near to the person at the keyboard a value was said: command line 3,
 * environment 2, file 1, else 0. */
static int
level(const struct component_profiling_rows *p, const char *row)
{
	const char *source = component_flags_source(p->flags, row);

	if (!source || !profiling_rows_given(p, row))
		return 0;
	return strncmp(source, "env:", 4) == 0 ? 2 : strncmp(source, "file:", 5) == 0 ? 1 : 3;
}

/* Does a file give both, one of them as its default is?  That is how a dump looks, and the other one counts. */
static bool
is_dumped(const struct component_profiling_rows *p)
{
	return level(p, "profile-port") == 1 && level(p, "profiling-bind-address") == 1 &&
	       (p->port == p->default_port || strcmp(p->options.address, p->default_address) == 0);
}

/* Does --profile-port count? */
static bool
is_by_port(const struct component_profiling_rows *p)
{
	if (p->resolved || !profiling_rows_given(p, "profile-port"))
		return false;
	return level(p, "profile-port") > level(p, "profiling-bind-address") ||
	       (is_dumped(p) && p->port != p->default_port);
}

/* The address that counts, and the row it came from. */
const char *
profiling_rows_address(const struct component_profiling_rows *p, char *buf, size_t size)
{
	if (is_by_port(p)) {
		snprintf(buf, size, "127.0.0.1:%d", p->port < 0 ? 0 : (int)p->port);
		return "profile-port";
	}
	snprintf(buf, size, "%s", p->options.address);
	return "profiling-bind-address";
}

static bool
has_socket(const struct component_profiling_rows *p)
{
	return p->options.debug_socket_path && *p->options.debug_socket_path;
}

bool
profiling_rows_enabled(const struct component_profiling_rows *p)
{
	return p->said == ENABLE_NONE ? p->enable : p->said == ENABLE_ON;
}

bool
profiling_rows_is_fatal(const struct component_profiling_rows *p)
{
	return p->on_error == PROFILING_ON_ERROR_FATAL && (p->enable || p->said != ENABLE_ON);
}

/* Does anybody want a server, by TCP or by the socket alone? */
bool
profiling_rows_wanted(const struct component_profiling_rows *p)
{
	char address[PROFILING_ADDRESS_MAX];

	profiling_rows_address(p, address, sizeof(address));
	if (profiling_rows_enabled(p))
		return strcmp(address, "0") != 0 || has_socket(p);
	return has_socket(p) && !profiling_rows_given(p, "enable-pprof") && p->said == ENABLE_NONE;
}

/* "option '--profiling-bind-address'", "environment variable PPROF_BIND_ADDRESS",
 * "/etc/x.yaml:3" or "the default of --profiling-bind-address". */
static void
name_source(const struct component_profiling_rows *p, const char *row, char *buf, size_t size)
{
	const char *source = component_flags_source(p->flags, row);

	if (source && strncmp(source, "env:", 4) == 0)
		snprintf(buf, size, "environment variable %s", source + 4);
	else if (source && strncmp(source, "file:", 5) == 0)
		snprintf(buf, size, "%s", source + 5);
	else if (profiling_rows_given(p, row))
		snprintf(buf, size, "option '--%s'", row);
	else
		snprintf(buf, size, "the default of --%s", row);
}

/* Whether and where it serves, to see whether that has changed.  NULL: no memory. */
char *
profiling_rows_text(const struct component_profiling_rows *p)
{
	char  address[PROFILING_ADDRESS_MAX], *text = NULL;
	bool  wanted = profiling_rows_wanted(p);

	profiling_rows_address(p, address, sizeof(address));
	if (asprintf(&text, "%d\n%s\n%s\n", wanted, wanted && profiling_rows_enabled(p) ? address : "0",
		    has_socket(p) ? p->options.debug_socket_path : "") < 0)
		text = NULL;
	return text;
}

/* Why there is no server, and what to do about it. */
static int
explain(int r, enum profiler_fault fault, const char *why, struct component_error *err)
{
	why = *why ? why : strerror(-r);
	if (fault == PROFILER_FAULT_ELSEWHERE)
		component_error_set(err, "cannot serve profiles: %s (disable with --enable-pprof=false)", why);
	else if (fault == PROFILER_FAULT_DEBUG_SOCKET)
		component_error_set(err, "%s (set --debug-socket-path or COMPONENT_DEBUG_SOCKET_PATH to another path, "
			"or leave it empty)", why);
	else
		component_error_set(err, "%s (set --profiling-bind-address or COMPONENT_PROFILING_BIND_ADDRESS, "
			"use port 0 for any free port, or disable with --enable-pprof=false)", why);
	return r;
}

/* The options of the rows, with what the rows make of them, to the server that runs or to a new one. */
static int
apply(const struct component_profiling_rows *p, bool enable, bool runs, struct component_error *err)
{
	struct component_profiler_options o = p->options;
	struct component_error            why = COMPONENT_ERROR_INIT;
	enum profiler_fault               fault = PROFILER_FAULT_ELSEWHERE;
	char                              address[PROFILING_ADDRESS_MAX], named[PROFILING_ADDRESS_MAX], id[RECORD_ID_MAX];
	int                               r;

	name_source(p, profiling_rows_address(p, address, sizeof(address)), named, sizeof(named));
	o.address = enable ? address : "0";
	o.how_named = named;
	o.allowed_hosts = p->allowed_hosts.items;
	o.redact = component_flags_secrets(p->flags);
	record_id_make(program_invocation_short_name, id);
	o.record_id = p->registry ? id : NULL;
	r = runs ? profiler_change(&o, &fault, &why) : profiler_start(&o, p->rates, &fault, &why);
	return r < 0 ? explain(r, fault, why.text, err) : r;
}

int
profiling_rows_start(const struct component_profiling_rows *p, bool enable, struct component_error *err)
{
	return apply(p, enable, false, err);
}

int
profiling_rows_change(const struct component_profiling_rows *p, bool enable, struct component_error *err)
{
	return apply(p, enable, true, err);
}

int
profiling_rows_change_rates(const struct component_profiling_rows *from, const struct component_profiling_rows *to)
{
	int r = 0;

	for (size_t i = 0; i < collector_count && r == 0; i++)
		if (to->rates[i] != from->rates[i])
			r = profiler_set_rate(collectors[i], to->rates[i]);
	return r;
}

static int
check_together(struct component_flags *f, void *arg, struct component_error *err)
{
	struct component_profiling_rows *p = arg;
	struct component_error           why = COMPONENT_ERROR_INIT;
	int                              r = 0;

	/* Not whether the address can be had: the daemon itself may have it now. */
	if (component_flags_given(f, "check-config") && component_profiler_check_token_file(p->options.token_file, &why) < 0)
		r = component_flags_fault(f, "profiling-token-file", err, "%s", why.text);
	if (!p->resolved && profiling_rows_given(p, "profile-port") && !is_dumped(p) &&
	    level(p, "profile-port") == level(p, "profiling-bind-address"))
		r = component_flags_fault(f, "profile-port", err, "cannot be combined with "
			"--profiling-bind-address=%s; write the port there", p->options.address);
	return r;
}

int
profiling_rows_init(struct component_profiling_rows *p, struct component_flags *f, unsigned port, struct component_error *err)
{
	static const struct component_profiler_options usual = COMPONENT_PROFILER_OPTIONS_INIT;
	int                                            r;

	p->flags = f;
	p->options = usual;
	p->port = p->default_port = port;
	snprintf(p->default_address, sizeof(p->default_address), "127.0.0.1:%u", port);
	p->options.address = p->default_address;
	r = rows_add(p, err);
	if (r == 0)
		r = rates_add(p, err);
	return r < 0 ? r : component_flags_add_check(f, check_together, p);
}

/* ---- door (c) ---- */

int
component_profiling_add(struct component_flags *f, unsigned port, struct component_profiling_rows **ret,
	struct component_error *err)
{
	struct component_profiling_rows *p = calloc(1, sizeof(*p));
	int                         r;

	if (!p)
		return -ENOMEM;
	r = profiling_rows_init(p, f, port ? port : COMPONENT_PORT_DEFAULT, err);
	if (r < 0)
		free(p);
	else
		*ret = p;
	return r;
}

static void
log_warning(const struct component_profiling_rows *p, const char *text)
{
	if (p->options.log)
		p->options.log(p->options.log_arg, COMPONENT_LOG_WARNING, text, NULL, 0);
}

int
profiling_rows_ask_file(struct component_profiling_rows *p, struct component_error *err)
{
	const char *key;
	int         r = 0;

	if (!p->asked && p->enable_file && *p->enable_file) {
		r = enable_file_read(p->enable_file, &p->said, &key, err);
		p->asked = r == 0;
	}
	return r;
}

/* Nobody is to wait for what does not come. */
static void
ask_file_and_say(struct component_profiling_rows *p)
{
	static const char *const says[] = { "nothing", "on", "off" }; /* by enum enable_word */
	struct component_error   why = COMPONENT_ERROR_INIT;

	if (!p->enable_file || !*p->enable_file)
		return;
	if (profiling_rows_ask_file(p, &why) < 0)
		log_warning(p, why.text);
	component_error_set(&why, "--profiling-enable-file=%s says %s, and is not read again: this program has no loop of the "
		"library's; restart it to follow a change", p->enable_file, says[p->said]);
	log_warning(p, why.text);
}

/* Those of the flags that nobody else has: each once. */
static void
log_flags(const struct component_profiling_rows *p)
{
	const char *text;

	for (size_t i = 0; p->owns_flags && (text = component_flags_warning(p->flags, i)); i++)
		log_warning(p, text);
}

int
component_profiling_begin(struct component_profiling_rows *p, component_log_fn *log, void *log_arg, struct component_error *err)
{
	struct component_error why = COMPONENT_ERROR_INIT;
	int                    r;

	if (p->started && component_profiler_running())
		return 0; /* a daemon that sets itself up once more */
	p->options.log = log;
	p->options.log_arg = log_arg;
	log_flags(p);
	ask_file_and_say(p);
	if (!profiling_rows_wanted(p))
		return 0;
	r = profiling_rows_start(p, profiling_rows_enabled(p), &why);
	if (r >= 0) {
		p->started = true;
		return r;
	}
	profiler_foresee_end();
	if (!profiling_rows_is_fatal(p)) {
		log_warning(p, why.text);
		return 0;
	}
	component_error_set(err, "%s", why.text);
	return r;
}

void
component_profiling_end(struct component_profiling_rows *p)
{
	if (!p)
		return;
	if (p->started && component_profiler_running())
		component_profiler_stop();
	else if (p->owns_flags)
		profiler_foresee_end();
	if (p->owns_flags)
		component_flags_free(p->flags); /* puts defaults into p */
	free(p->argv);
	free(p);
}
