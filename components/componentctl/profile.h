/*
 * profile.h - the commands that look into a program: profile, trace, dump, memory.
 */
#ifndef COMPONENTCTL_PROFILE_H
#define COMPONENTCTL_PROFILE_H

#include "command.h"

extern const struct command profile_command, trace_command, dump_command, memory_command;

#endif
