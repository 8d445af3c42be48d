/*
 * end_windows.h - has a program answer its open windows before a signal ends it.
 *
 *   source   components/componentctl/processes/end_windows.c
 */
#ifndef COMPONENTCTL_END_WINDOWS_H
#define COMPONENTCTL_END_WINDOWS_H

#include <sys/types.h>

/* Where it serves, as its record says: "http://127.0.0.1:6060/...", "unix:/path".  Returns at once where the signal does not
 * end it or nobody measures, and after a second at the latest. */
void end_windows(pid_t pid, const char *url, int signal);

#endif
