/*
 * doctor.h - the command that says what is in the way of looking into a program.
 */
#ifndef COMPONENTCTL_DOCTOR_H
#define COMPONENTCTL_DOCTOR_H

#include "command.h"

extern const struct command doctor_command;

#endif
