/*
 * config_read.h - the bytes of a config file.
 */
#ifndef FLAGS_CONFIG_READ_H
#define FLAGS_CONFIG_READ_H

#include "text.h"

#define CONFIG_BYTES_MAX (1024 * 1024) /* a file of options is some kilobytes */

/*
 * Adds the whole file to t.  Returns 0 or a negative errno: -EFBIG above
 * CONFIG_BYTES_MAX, -EISDIR, -EMEDIUMTYPE for what is no file (a pipe, a device).
 */
int config_read(const char *path, struct text *t);

#endif
