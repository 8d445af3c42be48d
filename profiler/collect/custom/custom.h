/*
 * custom.h - profiles that the program keeps itself, see <component/profiler.h>.
 */
#ifndef COLLECT_CUSTOM_CUSTOM_H
#define COLLECT_CUSTOM_CUSTOM_H

#define CUSTOM_PROFILES_MAX 64        /* of a process */
#define CUSTOM_VALUES_MAX   (1 << 20) /* of a profile: 32 MiB of table */
#define CUSTOM_NAME_MAX     64        /* bytes, with the NUL */

#endif
