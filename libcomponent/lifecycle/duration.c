/*
 * duration.c - a time as people write it on the command line: "1m30s".
 *
 * Tests: tests/lifecycle/test_order.c.
 */
#include <config.h>

#include "life.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"

void
life_duration_text(int64_t ns, char *buf, size_t size)
{
	int64_t hours = ns / (3600 * CLOCK_NS_PER_S), minutes = ns / (60 * CLOCK_NS_PER_S) % 60;
	int64_t ms = ns % (60 * CLOCK_NS_PER_S) / CLOCK_NS_PER_MS;
	char    fraction[8] = "";
	int     used = 0;

	buf[0] = '\0';
	if (hours)
		used += snprintf(buf + used, size - (size_t)used, "%" PRId64 "h", hours);
	if (minutes)
		used += snprintf(buf + used, size - (size_t)used, "%" PRId64 "m", minutes);
	if (used && ms == 0)
		return;
	if (!used && ms > 0 && ms < 1000) {
		snprintf(buf, size, "%" PRId64 "ms", ms);
		return;
	}
	if (ms % 1000) {
		snprintf(fraction, sizeof(fraction), ".%03d", (int)(ms % 1000));
		for (size_t i = strlen(fraction); fraction[i - 1] == '0'; i--)
			fraction[i - 1] = '\0';
	}
	snprintf(buf + used, size - (size_t)used, "%" PRId64 "%ss", ms / 1000, fraction);
}
