/*
 * port_file.h - "HOST:PORT\n" in a file, for scripts that asked for port 0.
 *
 *   source   profiler/serve/port_file.c
 */
#ifndef SERVE_PORT_FILE_H
#define SERVE_PORT_FILE_H

#include <component/error.h>

int  port_file_write(const char *path, const char *address, struct component_error *err);
void port_file_remove(const char *path, const char *address); /* only if it still says that */

#endif
