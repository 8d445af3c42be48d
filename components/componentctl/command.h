/*
 * command.h - what componentctl can be told to do: a row each, in componentctl.c's table.
 */
#ifndef COMPONENTCTL_COMMAND_H
#define COMPONENTCTL_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include <component/error.h>
#include <component/flags.h>

struct command {
	const char *name;
	const char *operands;     /* "TARGET [KIND]" */
	const char *summary;      /* one sentence */
	size_t      least, most;  /* operands */
	bool        first;        /* the first operand ends the options: what follows is another program's */
	const struct component_flag *flags;
	/* operands has NULL at the end.  The exit status; or a negative errno with err filled:
	 * -EINVAL is a fault of usage (2), the others a failure (1). */
	int (*run)(char **operands, struct component_error *err);
};

extern const struct command annotate_command, disable_command, enable_command, list_command, run_command, sd_command,
	stop_command;

#endif
