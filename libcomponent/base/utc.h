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

/* English whatever the program's locale is, three letters each: of weekday, of month - 1. */
extern const char utc_days[], utc_months[];

/* Seconds below 0 are taken for 0.  Signal-safe. */
void utc_from_unix(int64_t seconds, struct utc *ret);
/* "2026-01-31T12:00:00Z", as RFC 3339 has it. */
#define UTC_BYTES 40
void utc_text(int64_t seconds, char buf[UTC_BYTES]);

#endif
