/*
 * process_start.h - when a process began, which tells it from a later one of the same number.
 */
#ifndef BASE_PROCESS_START_H
#define BASE_PROCESS_START_H

#include <stdint.h>

/* In ticks since the machine's start, by a stat file of /proc ("/proc/self/stat"), of the process pid.
 * A negative errno; -EXDEV: that file is of another number, since /proc is another pid namespace's. */
int64_t process_start(const char *path, int32_t pid);
/* When this one began, by the clock of the day, ns; 0: not known.  The same each time, in any thread: the clocks are
 * compared once. */
int64_t process_started_ns(void);
/* How long ago that was, ns, whatever the clock of the day was set to since; 0: not known. */
int64_t process_up_ns(void);

#endif
