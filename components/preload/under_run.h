/*
 * under_run.h - what "componentctl run" and the agent say to each other.
 *
 *     run ── variable RUN_VARIABLE="FD APP_PORT PARENT ID FILTERS" ──▶ agent
 *     run ◀── a line to FD, "up URL" or "off WHY", and its end ── agent
 *
 * PARENT is the number of the program's first process, whose children are followed, or 0: then nothing of it
 * stays in the environment.  FD has three characters and becomes RUN_NO_FD when it was used: what
 * is of that number in an exec'd process is not ours.  FILTERS has three, too: the first process writes there how many
 * seccomp filters it began under.  What a child has more is its own, also after it has run another program.
 */
#ifndef PRELOAD_UNDER_RUN_H
#define PRELOAD_UNDER_RUN_H

#define RUN_VARIABLE "COMPONENT_RUN"
#define RUN_NO_FD    "-01"
#define RUN_NO_FILTERS "-01" /* not known */
#define RUN_UP       "up"
#define RUN_OFF      "off"

/* The agent writes the port into the room that this is in the environment, or takes the variable out. */
#define RUN_PORT_VARIABLE "DAPR_PROFILE_PORT"
#define RUN_PORT_UNKNOWN  "00000"

#endif
