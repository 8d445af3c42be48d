/*
 * under_run.h - what "componentctl run" and the agent say to each other.
 *
 *     run ── variable RUN_VARIABLE="FD APP_PORT ID" ──▶ agent
 *     run ◀── a line to FD, "up URL" or "off WHY", and its end ── agent
 */
#ifndef PRELOAD_UNDER_RUN_H
#define PRELOAD_UNDER_RUN_H

#define RUN_VARIABLE "COMPONENT_RUN"
#define RUN_UP       "up"
#define RUN_OFF      "off"

/* The agent writes the port into the room that this is in the environment, or takes the variable out. */
#define RUN_PORT_VARIABLE "DAPR_PROFILE_PORT"
#define RUN_PORT_UNKNOWN  "00000"

#endif
