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
 * Why --debug-socket-path works without --enable-pprof: it is a request of its own
 * for a server, one with a file mode for a lock; only a spoken "off" overrules it.
 *
 * Tests: tests/matrix.t, tests/profiling.t, tests/doors.t.
 */
#include <config.h>

#include "profiling_rows.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <component/ports.h>
#include <component/profiler.h>

#include "rates.h"

#define SECTION         "Profiling"
#define SECONDS_MAX     604800    /* a week; a window's samples are kept in memory */
#define REQUESTS_MAX    4096      /* each has a connection and a collector's memory */
#define MEMORY_MIN      (1 << 20) /* bytes: below 1 MiB no stack table of use fits */

static const char *const on_error_choices[] = { "fatal", "warn", NULL };
/* In the order of enum component_unwinder. */
static const char *const unwinder_choices[] = { "auto", "frame-pointer", "tables", "libunwind", NULL };

static int
rows_add(struct component_profiling_rows *p, struct component_error *err)
{
	/* clang-format off */
	const struct component_flag rows[] = {
		COMPONENT_FLAG_BOOL("enable-pprof", &p->enable,
			"Serve runtime profiles at host:port/debug/pprof/.",
			.section = SECTION, .alias = "enable-profiling", .env = "ENABLE_PROFILING",
			.key = "profiling.enabled", .bits = COMPONENT_FLAG_BOOL_WORD | COMPONENT_FLAG_RELOADABLE),
		COMPONENT_FLAG_ADDRESS("profiling-bind-address", &p->bind_address,
			"Where to serve profiles, for example 127.0.0.1:6060, :6060, [::1]:6060 or unix:/run/x.sock. "
			"No effect unless profiling is enabled.",
			.section = SECTION, .env = "PPROF_BIND_ADDRESS", .key = "profiling.address",
			.enables = "enable-pprof", .needs = "enable-pprof", .bits = COMPONENT_FLAG_RELOADABLE),
		COMPONENT_FLAG_INT("profile-port", &p->profile_port,
			"Short for --profiling-bind-address=127.0.0.1:N; 0 and -1 are any free port. Does not enable profiling.",
			.section = SECTION, .argument = "N", .min = -1, .max = COMPONENT_PORT_MAX,
			.bits = COMPONENT_FLAG_RELOADABLE),
		COMPONENT_FLAG_STRING("profiling-port-file", &p->port_file,
			"Write the address in use to this file once listening.",
			.section = SECTION, .argument = "FILE"),
		COMPONENT_FLAG_INT("profiling-max-seconds", &p->max_seconds,
			"Longest profile or trace a client may ask for.",
			.section = SECTION, .argument = "SECONDS", .min = 1, .max = SECONDS_MAX,
			.bits = COMPONENT_FLAG_RELOADABLE),
		COMPONENT_FLAG_INT("profiling-max-requests", &p->max_requests,
			"Profiles collected at the same time; more are answered 503. Windows may overlap, of CPU profiles too.",
			.section = SECTION, .argument = "N", .min = 1, .max = REQUESTS_MAX,
			.bits = COMPONENT_FLAG_RELOADABLE),
		COMPONENT_FLAG_ENUM("profiling-on-error", &p->on_error,
			"What to do when the profiling address cannot be used at start: stop, or go on without profiling.",
			.section = SECTION, .choices = on_error_choices),
		COMPONENT_FLAG_STRING("profiling-token-file", &p->token_file,
			"Require the token in this file for every request that comes over TCP.",
			.section = SECTION, .argument = "FILE", .bits = COMPONENT_FLAG_RELOADABLE),
		COMPONENT_FLAG_LIST("profiling-allowed-host", &p->allowed_hosts,
			"Names, with * as wildcard, by which clients may reach a loopback address besides localhost and "
			"this machine's own; others are refused, against DNS rebinding.",
			.section = SECTION, .argument = "NAME,...", .bits = COMPONENT_FLAG_RELOADABLE),
		COMPONENT_FLAG_SIZE("profiling-memory", &p->memory,
			"Most memory that stacks may take; what does not fit is counted as [stack table full].",
			.section = SECTION, .min = MEMORY_MIN, .max = INT64_MAX, .bits = COMPONENT_FLAG_RELOADABLE),
		COMPONENT_FLAG_SIZE("profiling-symbol-memory", &p->symbol_memory,
			"Most memory that names and lines may take while a profile is written; what does not fit is "
			"left out, and a comment says so.",
			.section = SECTION, .min = MEMORY_MIN, .max = INT64_MAX, .bits = COMPONENT_FLAG_RELOADABLE),
		COMPONENT_FLAG_ENUM("profiling-unwinder", &p->unwinder,
			"How stacks are walked: auto (the best that this build has), tables, frame-pointer, or, for CPU "
			"profiles and dumps, libunwind (Debian: libunwind8).",
			.section = SECTION, .choices = unwinder_choices),
		COMPONENT_FLAG_END
	};
	/* clang-format on */

	return component_flags_add(p->flags, rows, err);
}

/* One for each collector that has a rate. */
static int
rates_add(struct component_profiling_rows *p, struct component_error *err)
{
	static const enum component_flag_type types[] = { [COLLECTOR_NUMBER] = COMPONENT_FLAG_TYPE_INT,
		[COLLECTOR_BYTES] = COMPONENT_FLAG_TYPE_SIZE, [COLLECTOR_NS] = COMPONENT_FLAG_TYPE_DURATION };
	struct component_profiler_options defaults = COMPONENT_PROFILER_OPTIONS_INIT;
	int                               r = 0;

	for (size_t i = 0; i < collector_count && r == 0; i++) {
		const struct collector_rate *rate = collectors[i]->rate;
		struct component_flag        rows[2] = { { .value.integer = &p->rates[i] }, COMPONENT_FLAG_END };

		if (!rate)
			continue;
		p->rates[i] = rates_of_options(&defaults, rate);
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

static int
socket_add(struct component_profiling_rows *p, struct component_error *err)
{
	const struct component_flag rows[] = {
		COMPONENT_FLAG_STRING("debug-socket-path", &p->socket_path,
			"Serve profiles and run-time switches on this unix socket too, mode 0600, no other protection.",
			.section = "Serving", .argument = "PATH", .bits = COMPONENT_FLAG_RELOADABLE),
		COMPONENT_FLAG_END
	};

	return component_flags_add(p->flags, rows, err);
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
	       (p->profile_port == p->default_port || strcmp(p->bind_address, p->default_address) == 0);
}

/* Does --profile-port count? */
static bool
is_by_port(const struct component_profiling_rows *p)
{
	if (p->resolved || !profiling_rows_given(p, "profile-port"))
		return false;
	return level(p, "profile-port") > level(p, "profiling-bind-address") ||
	       (is_dumped(p) && p->profile_port != p->default_port);
}

/* The address that counts, and the row it came from. */
const char *
profiling_rows_address(const struct component_profiling_rows *p, char *buf, size_t size)
{
	if (is_by_port(p)) {
		snprintf(buf, size, "127.0.0.1:%d", p->profile_port < 0 ? 0 : (int)p->profile_port);
		return "profile-port";
	}
	snprintf(buf, size, "%s", p->bind_address);
	return "profiling-bind-address";
}

static bool
has_socket(const struct component_profiling_rows *p)
{
	return p->socket_path && *p->socket_path;
}

/* Does anybody want a server, by TCP or by the socket alone? */
bool
profiling_rows_wanted(const struct component_profiling_rows *p)
{
	char address[PROFILING_ADDRESS_MAX];

	profiling_rows_address(p, address, sizeof(address));
	if (p->enable)
		return strcmp(address, "0") != 0 || has_socket(p);
	return has_socket(p) && !profiling_rows_given(p, "enable-pprof");
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
	if (asprintf(&text, "%d\n%s\n%s\n", wanted, wanted && p->enable ? address : "0", has_socket(p) ? p->socket_path : "") < 0)
		text = NULL;
	return text;
}

/* Why there is no server, and what to do about it. */
static void
explain(const char *why, struct component_error *err)
{
	static const char address[] = "cannot serve profiles on ";

	if (strncmp(why, address, strlen(address)) != 0)
		component_error_set(err, "cannot serve profiles: %s (disable with --enable-pprof=false)", why);
	else if (strstr(why, "--debug-socket-path"))
		component_error_set(err, "%s (set --debug-socket-path or COMPONENT_DEBUG_SOCKET_PATH to another path, "
			"or leave it empty)", why);
	else
		component_error_set(err, "%s (set --profiling-bind-address or COMPONENT_PROFILING_BIND_ADDRESS, "
			"use port 0 for any free port, or disable with --enable-pprof=false)", why);
}

typedef int options_fn(const struct component_profiler_options *o, struct component_error *err);

static int
with_options(const struct component_profiling_rows *p, bool enable, component_log_fn *log, void *log_arg, options_fn *fn,
	struct component_error *err)
{
	struct component_profiler_options o = COMPONENT_PROFILER_OPTIONS_INIT;
	struct component_error            why = COMPONENT_ERROR_INIT;
	char                              address[PROFILING_ADDRESS_MAX], named[PROFILING_ADDRESS_MAX];
	const char                       *row = profiling_rows_address(p, address, sizeof(address));
	const char                      **hosts;
	int                               r;

	/* The list has a count, the options want a NULL at the end. */
	hosts = calloc(p->allowed_hosts.count + 1, sizeof(*hosts));
	if (!hosts)
		return -ENOMEM;
	for (size_t i = 0; i < p->allowed_hosts.count; i++)
		hosts[i] = p->allowed_hosts.items[i];
	name_source(p, row, named, sizeof(named));
	o.address = enable ? address : "0";
	o.debug_socket_path = p->socket_path;
	o.token_file = p->token_file;
	o.port_file = p->port_file;
	o.allowed_hosts = hosts;
	o.redact = component_flags_secrets(p->flags);
	o.how_named = named;
	o.max_seconds = p->max_seconds;
	o.max_requests = p->max_requests;
	o.memory_bytes = p->memory;
	o.symbol_memory_bytes = p->symbol_memory;
	for (size_t i = 0; i < collector_count; i++)
		if (collectors[i]->rate && collectors[i]->rate->option_at)
			memcpy((char *)&o + collectors[i]->rate->option_at, &p->rates[i], sizeof(p->rates[i]));
	o.unwinder = (enum component_unwinder)p->unwinder;
	o.log = log;
	o.log_arg = log_arg;
	o.debug_page = p->debug_page;
	o.debug_page_arg = p->debug_page_arg;
	r = fn(&o, &why);
	free(hosts);
	if (r < 0)
		explain(*why.text ? why.text : strerror(-r), err);
	return r;
}

int
profiling_rows_start(const struct component_profiling_rows *p, bool enable, component_log_fn *log, void *log_arg,
	struct component_error *err)
{
	int r = with_options(p, enable, log, log_arg, component_profiler_start_options, err);

	for (size_t i = 0; i < collector_count && r == 0; i++)
		if (collectors[i]->rate && !collectors[i]->rate->option_at)
			profiler_set_rate(collectors[i], p->rates[i]); /* its status() says why not */
	return r;
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

int
profiling_rows_change(const struct component_profiling_rows *p, bool enable, struct component_error *err)
{
	return with_options(p, enable, NULL, NULL, component_profiler_change, err);
}

static int
check_together(struct component_flags *f, void *arg, struct component_error *err)
{
	struct component_profiling_rows *p = arg;
	struct component_error           why = COMPONENT_ERROR_INIT;
	int                              r = 0;

	/* Not whether the address can be had: the daemon itself may have it now. */
	if (component_flags_given(f, "check-config") && component_profiler_check_token_file(p->token_file, &why) < 0)
		r = component_flags_fault(f, "profiling-token-file", err, "%s", why.text);
	if (!p->resolved && profiling_rows_given(p, "profile-port") && !is_dumped(p) &&
	    level(p, "profile-port") == level(p, "profiling-bind-address"))
		r = component_flags_fault(f, "profile-port", err, "cannot be combined with "
			"--profiling-bind-address=%s; write the port there", p->bind_address);
	return r;
}

int
profiling_rows_init(struct component_profiling_rows *p, struct component_flags *f, unsigned port, struct component_error *err)
{
	struct component_profiler_options defaults = COMPONENT_PROFILER_OPTIONS_INIT;
	int                               r;

	p->flags = f;
	p->profile_port = p->default_port = port;
	snprintf(p->default_address, sizeof(p->default_address), "127.0.0.1:%u", port);
	p->bind_address = p->default_address;
	p->port_file = p->token_file = p->socket_path = "";
	p->max_seconds = defaults.max_seconds;
	p->max_requests = defaults.max_requests;
	p->memory = defaults.memory_bytes;
	p->symbol_memory = defaults.symbol_memory_bytes;
	r = rows_add(p, err);
	if (r == 0)
		r = rates_add(p, err);
	if (r == 0)
		r = socket_add(p, err);
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

int
component_profiling_begin(struct component_profiling_rows *p, component_log_fn *log, void *log_arg, struct component_error *err)
{
	return profiling_rows_wanted(p) ? profiling_rows_start(p, p->enable, log, log_arg, err) : 0;
}

void
component_profiling_end(struct component_profiling_rows *p)
{
	if (!p)
		return;
	if (component_profiler_running())
		component_profiler_stop();
	free(p);
}
