/*
 * options.c - a daemon that has nothing but options, to be looked at from
 * outside by tests/flags/output.t: a row of each type, one secret, one hidden, one list.
 *
 * It prints what it was given, one "name=value (source)" a line.
 */
#include <component/flags.h>

#include <inttypes.h>
#include <stdio.h>

static const char *const formats[] = { "text", "logfmt", "json", NULL };
static const char *const star[] = { "*" };

static bool                  pprof, leader = true;
static const char           *address = "127.0.0.1:6060", *token = "", *file = "";
static int64_t               port = -1, grace = COMPONENT_SECONDS(25), verbosity;
static uint64_t              rate = 512 * 1024;
static double                qps = 10;
static struct component_list controllers = { star, 1 };
static int                   format;

/* clang-format off */
static const struct component_flag rows[] = {
	COMPONENT_FLAG_BOOL("enable-pprof", &pprof, "Serve runtime profiles at host:port/debug/pprof/.",
		.section = "Profiling", .env = "ENABLE_PROFILING", .alias = "enable-profiling", .key = "profiling.enabled",
		.bits = COMPONENT_FLAG_BOOL_WORD),
	COMPONENT_FLAG_ADDRESS("profiling-bind-address", &address,
		"Where to serve profiles, for example 127.0.0.1:6060, :6060, [::1]:6060 or unix:/run/x.sock. "
		"No effect unless profiling is enabled.",
		.section = "Profiling", .env = "PPROF_BIND_ADDRESS", .key = "profiling.address", .enables = "enable-pprof",
		.needs = "enable-pprof"),
	COMPONENT_FLAG_INT("profile-port", &port, "Serve profiles on this port of 127.0.0.1.",
		.section = "Profiling", .min = -1, .max = 65535, .bits = COMPONENT_FLAG_HIDDEN),
	COMPONENT_FLAG_SIZE("heap-profile-rate", &rate, "Mean bytes between sampled allocations; 0 is off.",
		.section = "Profiling"),
	COMPONENT_FLAG_STRING("profiling-token", &token, "Require this token; it's \\kept as it is.",
		.section = "Profiling", .bits = COMPONENT_FLAG_SECRET),
	COMPONENT_FLAG_DURATION("graceful-shutdown-timeout", &grace, "How long to finish work after a stop signal.",
		.section = "Lifecycle"),
	COMPONENT_FLAG_LIST("controllers", &controllers, "Controllers to run.", .section = "Controllers"),
	COMPONENT_FLAG_NUMBER("rate-limiter-qps", &qps, "Retries a second over all keys.",
		.section = "Controllers", .min = 0, .max = 1000),
	COMPONENT_FLAG_BOOL("leader-elect", &leader, "Run only while holding the lock.",
		.section = "Controllers", .deprecated = "elect"),
	COMPONENT_FLAG_INT("v", &verbosity, "Verbosity; higher prints more.",
		.section = "Logging", .letter = 'v', .env = "LOG_LEVEL", .words = "error=0 info=0 debug=4"),
	COMPONENT_FLAG_ENUM("logging-format", &format, "Shape of log lines.",
		.section = "Logging", .choices = formats, .env = "LOG_FORMAT"),
	COMPONENT_FLAG_STRING("log-file", &file, "Append logs to this file.",
		.section = "Logging", .argument = "FILE"),
	COMPONENT_FLAG_END
};
/* clang-format on */

static const struct component_flags_spec spec = COMPONENT_FLAGS_SPEC(.name = "flags-program",
	.summary = "Has options and tells them.", .version = "1.2.3", .bugs = "the nearest desk");

int
main(int argc, char **argv)
{
	static struct component_error err = COMPONENT_ERROR_INIT;
	struct component_flags *f = NULL;
	const char             *warning;
	int                     r, status = 1;

	if (component_flags_new(&spec, &f, &err) < 0 || component_flags_add(f, rows, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		goto out;
	}
	r = component_flags_parse(f, argc, argv, &err);
	status = component_flags_exit_status(f);
	for (size_t i = 0; (warning = component_flags_warning(f, i)) != NULL; i++)
		fprintf(stderr, "warning: %s\n", warning);
	if (r < 0)
		fprintf(stderr, "%s\n", err.text);
	else if (r > 0)
		fputs(component_flags_output(f), stdout);
	else
		printf("enable-pprof=%d (%s)\nprofiling-bind-address=%s (%s)\nv=%" PRId64 " (%s)\nprofiling-token=%s\n", pprof,
			component_flags_source(f, "enable-pprof"), address, component_flags_source(f, "profiling-bind-address"),
			verbosity, component_flags_source(f, "v"), token);
out:
	component_flags_free(f);
	return status;
}
