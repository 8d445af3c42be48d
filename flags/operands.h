/*
 * operands.h - words of a command line that are no options.
 *
 * Daemons take none.  The commands of componentctl do: what they look at, and programs to run.
 */
#ifndef FLAGS_OPERANDS_H
#define FLAGS_OPERANDS_H

#include <stdbool.h>
#include <stddef.h>

struct component_flags;

/*
 * flags_operands - takes so many of them from now on
 *
 *   name     "program command", as it is written, in the place of the spec's; borrowed
 *   shown    "TARGET [KIND]", for --help, the man page and errors; borrowed
 *   first    the first one ends the options: what is behind it belongs to another program
 *
 * Before component_flags_parse().
 */
void flags_operands(struct component_flags *f, const char *name, const char *shown, size_t least, size_t most, bool first);

/* COMPONENT_CONFIG is not read: it names the config file of daemons, perhaps for a whole pod.  Before component_flags_parse(). */
void flags_config_own(struct component_flags *f);

/* After it: words of argv, NULL at the end; f's. */
char **flags_operand_words(const struct component_flags *f);

#endif
