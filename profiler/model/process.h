/*
 * process.h - the process that is looked at: this one, or another one from outside.
 *
 * What reads mappings, memory, auxiliary vector and files of a process asks here which one it is.  In
 * a daemon that is the daemon itself, always.  A tool looks at one other process, as long as it runs.
 *
 *   threads  process_look_at() before anything else of the profiler; the rest: any
 *   signals  process_other() and process_memory_id() only
 *   source   profiler/model/process.c
 */
#ifndef MODEL_PROCESS_H
#define MODEL_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define PROCESS_PATH_MAX 64 /* bytes with NUL */

/* From now on it is that one.  0; -ESRCH: there is none; -ENOEXEC: its program is for another processor than
 * this one's; -EACCES or another negative errno: the kernel keeps it from us. */
int           process_look_at(pid_t pid);
/* Its id; 0: this process. */
pid_t         process_other(void);
/* "/proc/self/NAME", or "/proc/PID/NAME"; NAME has at most 40 bytes. */
const char   *process_path(const char *name, char buf[PROCESS_PATH_MAX]);
/* For process_vm_readv(2): whose memory it is.  The calling thread's: the process' first one may have ended. */
pid_t         process_memory_id(void);
/* As getauxval(3). */
unsigned long process_auxv(unsigned long type);

#endif
