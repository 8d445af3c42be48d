/*
 * utc.h - a date from seconds since 1970, without libc's time zones.
 */
#ifndef BASE_UTC_H
#define BASE_UTC_H

#include <stdint.h>

struct utc {
	int64_t year;
	int     month, day;  /* from 1 */
	int     weekday;     /* 0 is Sunday */
	int     hour, minute, second;
};

/* Seconds below 0 are taken for 0.  Signal-safe. */
void utc_from_unix(int64_t seconds, struct utc *ret);

#endif
