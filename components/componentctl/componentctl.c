/*
 * componentctl.c - main(): which command, its options and its exit status.
 *
 *     componentctl COMMAND [OPTION]... [OPERAND]... ──▶ commands[] ──▶ component_flags_parse() ──▶ run()
 *
 * Each command has options of its own, and with them --help, --version and all that options have.
 *
 * Tests: tests/componentctl/usage.t, tests/componentctl/list.t.
 */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "doctor.h"
#include "live_table.h"
#include "nearest.h"
#include "operands.h"
#include "profile.h"

#define NAME         "componentctl"
#define STATUS_USAGE 2

static const struct command *const commands[] = {
	&run_command, &list_command, &stop_command, &enable_command, &disable_command, &sd_command, &annotate_command,
#ifdef HAVE_LIBCURL
	&profile_command, &top_command, &trace_command, &dump_command, &memory_command, &doctor_command,
#endif
};
#define COMMANDS (sizeof(commands) / sizeof(commands[0]))
/* Those that a build without libcurl does not have. */
static const char *const looking[] = { "profile", "top", "trace", "dump", "memory", "doctor" };

static int
print(const char *text, FILE *to)
{
	size_t size = strlen(text);

	fputs(text, to);
	if (size && text[size - 1] != '\n')
		fputc('\n', to);
	return 0;
}

static void
help(FILE *to)
{
	fprintf(to, "Usage: " NAME " COMMAND [OPTION]... [OPERAND]...\n"
		"Finds programs that serve profiles on this machine, and looks into them.\n\nCommands:\n");
	for (size_t i = 0; i < COMMANDS; i++)
		fprintf(to, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
	fprintf(to, "\n'" NAME " help COMMAND' shows the options of a command.\n"
		"'" NAME " --version' prints the version, '" NAME " --completion=bash' a completion for bash.\n");
}

/* In roff, as the pages of the commands that flags make. */
static void
man(void)
{
	printf(".TH \"COMPONENTCTL\" 1 \"\" \"" NAME " " PACKAGE_VERSION "\" \"User Commands\"\n"
		".SH NAME\n" NAME " \\- finds programs that serve profiles on this machine, and looks into them\n"
		".SH SYNOPSIS\n.B " NAME "\nCOMMAND [\\fIOPTION\\fR]... [\\fIOPERAND\\fR]...\n.SH COMMANDS\n");
	for (size_t i = 0; i < COMMANDS; i++)
		printf(".TP\n\\fB%s\\fR %s\n%s See \\fB" NAME "\\-%s\\fR(1).\n", commands[i]->name,
			commands[i]->operands ? commands[i]->operands : "", commands[i]->summary, commands[i]->name);
	printf(".SH EXIT STATUS\n0, 1 for a failure, 2 for a fault of usage; \\fBrun\\fR has its program's, and \\fBdoctor\\fR 1 "
		"for a warning.\n");
}

/* For bash: first the commands, then the options of that command, which its help knows. */
static void
completion(void)
{
	printf("# bash completion of " NAME "\n_" NAME "()\n{\n\tlocal cur=${COMP_WORDS[COMP_CWORD]} words=''\n\tCOMPREPLY=()\n"
		"\tif [[ $COMP_CWORD -eq 1 ]]; then\n\t\twords='");
	for (size_t i = 0; i < COMMANDS; i++)
		printf("%s%s", i ? " " : "", commands[i]->name);
	printf("'\n\telif [[ $cur == -* ]]; then\n"
		"\t\twords=$(\"${COMP_WORDS[0]}\" \"${COMP_WORDS[1]}\" --help-all 2>/dev/null | grep -oE -- '^ +(-., |    )--[a-z-]+' | grep -oE -- '--[a-z-]+')\n"
		"\telse\n\t\tcompopt -o default 2>/dev/null\n\t\treturn\n\tfi\n"
		"\tmapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n}\ncomplete -F _" NAME " " NAME "\n");
}

static const struct command *
find(const char *word)
{
	struct nearest n;

	for (size_t i = 0; i < COMMANDS; i++)
		if (!strcmp(word, commands[i]->name))
			return commands[i];
	for (size_t i = 0; i < sizeof(looking) / sizeof(looking[0]); i++)
		if (!strcmp(word, looking[i])) {
			fprintf(stderr, NAME ": this build has no command '%s', as there was no libcurl; install its headers (Debian: "
				"libcurl4-openssl-dev), and run configure and make again\n", word);
			return NULL;
		}
	nearest_begin(&n, word);
	for (size_t i = 0; i < COMMANDS; i++)
		nearest_try(&n, commands[i]->name, strlen(commands[i]->name));
	fprintf(stderr, NAME ": there is no command '%s'", word);
	if (*n.word)
		fprintf(stderr, "; did you mean '%s'?\n", n.word);
	else
		fprintf(stderr, "; '" NAME " --help' lists them\n");
	return NULL;
}

static int
failed(int r, const struct component_error *err)
{
	fprintf(stderr, NAME ": %s\n", *err->text ? err->text : strerror(-r));
	return r == -EINVAL ? STATUS_USAGE : EXIT_FAILURE;
}

/* argv[0] is the command's name. */
static int
run(const struct command *c, int argc, char **argv)
{
	char                        name[64], page[64];
	struct component_flags_spec spec = COMPONENT_FLAGS_SPEC(.name = page, .summary = c->summary, .version = PACKAGE_VERSION);
	struct component_error      err = COMPONENT_ERROR_INIT;
	struct component_flags     *f = NULL;
	int                         r, status;

	snprintf(name, sizeof(name), NAME " %s", c->name);
	snprintf(page, sizeof(page), NAME "-%s", c->name);
	r = component_flags_new(&spec, &f, &err);
	if (r < 0) {
		status = failed(r, &err);
		goto out;
	}
	flags_operands(f, name, c->operands, c->least, c->most, c->first);
	flags_config_own(f);
	r = c->flags ? component_flags_add(f, c->flags, &err) : 0;
	if (r == 0)
		r = component_flags_parse(f, argc, argv, &err);
	if (r > 0) {
		status = print(component_flags_output(f), stdout);
	} else if (r < 0) {
		print(err.text, stderr);
		status = component_flags_exit_status(f);
	} else {
		r = c->run(flags_operand_words(f), &err);
		status = r < 0 ? failed(r, &err) : r;
	}
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, NAME ": cannot write to standard output: %s\n", strerror(errno));
		status = status ? status : EXIT_FAILURE;
	}
out:
	component_flags_free(f);
	return status;
}

int
main(int argc, char **argv)
{
	static char           option[] = "--help";
	const struct command *c;

	if (argc == 3 && !strcmp(argv[1], "help")) {
		argv[1] = argv[2];
		argv[2] = option;
	}
	if (argc < 2) {
		help(stderr);
		return STATUS_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
		help(stdout);
		return 0;
	}
	if (!strcmp(argv[1], "--version")) {
		printf(NAME " " PACKAGE_VERSION "\n");
		return 0;
	}
	if (!strcmp(argv[1], "--generate-man")) {
		man();
		return 0;
	}
	if (!strcmp(argv[1], "--completion=bash")) {
		completion();
		return 0;
	}
	c = find(argv[1]);
	return c ? run(c, argc - 1, argv + 1) : STATUS_USAGE;
}
