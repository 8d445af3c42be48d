/*
 * custom.h - profiles that the program keeps itself, see <component/profiler.h>.
 */
#ifndef COLLECT_CUSTOM_CUSTOM_H
#define COLLECT_CUSTOM_CUSTOM_H

#include "collector.h"

#define CUSTOM_PROFILES_MAX 64        /* of a process */
#define CUSTOM_VALUES_MAX   (1 << 20) /* of a profile: 24 MiB of table */
#define CUSTOM_NAME_MAX     64        /* bytes, with the NUL */

/* Collectors like those of collectors.def; they stay until the process ends. */
const struct collector *custom_find(const char *name);
/* Those there are, sorted by name; how many. */
size_t custom_list(const struct collector *ret[CUSTOM_PROFILES_MAX]);

#endif
