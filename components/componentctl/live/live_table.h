/*
 * live_table.h - componentctl top: what is hottest, again each second.
 *
 *   source   components/componentctl/live/live_table.c, screen.c, live_threads.c
 */
#ifndef COMPONENTCTL_LIVE_TABLE_H
#define COMPONENTCTL_LIVE_TABLE_H

#include "command.h"

extern const struct command top_command;

#endif
