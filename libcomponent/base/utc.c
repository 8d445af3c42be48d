/*
 * utc.c - a date of the Gregorian calendar from seconds since 1970.
 *
 * What a stranger would get wrong: gmtime_r(3) is not for a guest.  It takes the lock
 * of libc's time zones and reads TZ and /etc/localtime below it; a child that the
 * daemon forks meanwhile finds that lock taken for ever, and a descriptor more.
 *
 * Tests: tests/base/test_utc.c.
 */
#include <config.h>

#include "utc.h"

#include <inttypes.h>
#include <stdio.h>

#define DAY_SECONDS 86400

const char utc_days[] = "SunMonTueWedThuFriSat", utc_months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

void
utc_text(int64_t seconds, char buf[UTC_BYTES])
{
	struct utc at;

	utc_from_unix(seconds, &at);
	snprintf(buf, UTC_BYTES, "%04" PRId64 "-%02d-%02dT%02d:%02d:%02dZ", at.year, at.month, at.day, at.hour, at.minute,
		at.second);
}

void
utc_from_unix(int64_t seconds, struct utc *ret)
{
	int64_t days, shifted, era, day_of_era, year_of_era, day_of_year, month;

	if (seconds < 0)
		seconds = 0;
	days = seconds / DAY_SECONDS;
	shifted = days + 719468;    /* since 0000-03-01: the leap day is the last of its year */
	era = shifted / 146097;     /* of 400 years */
	day_of_era = shifted % 146097;
	year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
	day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
	month = (5 * day_of_year + 2) / 153; /* 0 is March */
	ret->day = (int)(day_of_year - (153 * month + 2) / 5 + 1);
	ret->month = (int)(month < 10 ? month + 3 : month - 9);
	ret->year = era * 400 + year_of_era + (ret->month <= 2);
	ret->weekday = (int)((days + 4) % 7); /* 1970 began with a Thursday */
	ret->hour = (int)(seconds / 3600 % 24);
	ret->minute = (int)(seconds / 60 % 60);
	ret->second = (int)(seconds % 60);
}
