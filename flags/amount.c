/*
 * amount.c - whole numbers with units: "512KiB" is 524288, "1h30m" 5400000000000; and back.
 *
 * Everything is done in whole numbers, fractions too: "1.5h" is 1 hour and 5/10 of
 * one, which must come out even, or it is refused.  A double would lose nanoseconds
 * from 104 days on, and bytes from 8 PiB on, without saying so.
 *
 * What would surprise: a fraction is reduced against its unit before they are
 * multiplied (add_amount), so that "0.000000001h" overflows nowhere.
 *
 * Tests: tests/flags/test_value.c.
 */
#include <config.h>

#include "amount.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#define FRACTION_DIGITS_MAX 18 /* of "1.5s"; more cannot be exact in 64 bits */
#define SIZES_SHOWN         6  /* units at the head of sizes[] that are written; the rest is read alone */

struct unit {
	const char *name;
	uint64_t    value;
};

/* In falling order: "1h30m" is read as such, "30m1h" is a slip. */
static const struct unit durations[] = {
	{ "h", 3600000000000 }, { "m", 60000000000 }, { "s", 1000000000 },
	{ "ms", 1000000 }, { "us", 1000 }, { "ns", 1 },
};

static const struct unit sizes[] = {
	{ "EiB", 1ull << 60 }, { "PiB", 1ull << 50 }, { "TiB", 1ull << 40 },
	{ "GiB", 1ull << 30 }, { "MiB", 1ull << 20 }, { "KiB", 1ull << 10 },
	/* As Kubernetes writes them. */
	{ "Ei", 1ull << 60 }, { "Pi", 1ull << 50 }, { "Ti", 1ull << 40 },
	{ "Gi", 1ull << 30 }, { "Mi", 1ull << 20 }, { "Ki", 1ull << 10 },
	{ "EB", 1000000000000000000 }, { "PB", 1000000000000000 }, { "TB", 1000000000000 },
	{ "GB", 1000000000 }, { "MB", 1000000 }, { "kB", 1000 }, { "B", 1 },
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

int
amount_scan_digits(const char **p, uint64_t *ret)
{
	const char *s = *p;
	uint64_t    n = 0;

	if (!isdigit((unsigned char)*s) || (s[0] == '0' && isdigit((unsigned char)s[1])))
		return -EINVAL;
	for (; isdigit((unsigned char)*s); s++)
		if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, (uint64_t)(*s - '0'), &n))
			return -ERANGE;
	*p = s;
	*ret = n;
	return 0;
}

/* "90", "1.5": whole and fraction / scale, moved over. */
static int
scan_amount(const char **p, uint64_t *ret_whole, uint64_t *ret_fraction, uint64_t *ret_scale)
{
	const char *s = *p;
	uint64_t    fraction = 0, scale = 1;
	int         digits = 0;
	int         r;

	r = amount_scan_digits(&s, ret_whole);
	if (r < 0)
		return r;
	if (*s == '.') {
		s++;
		if (!isdigit((unsigned char)*s))
			return -EINVAL;
		for (; isdigit((unsigned char)*s); s++) {
			if (++digits > FRACTION_DIGITS_MAX)
				return -EDOM;
			fraction = fraction * 10 + (uint64_t)(*s - '0');
			scale *= 10;
		}
		while (scale > 1 && fraction % 10 == 0) {
			fraction /= 10;
			scale /= 10;
		}
	}
	*p = s;
	*ret_fraction = fraction;
	*ret_scale = scale;
	return 0;
}

static uint64_t
common_divisor(uint64_t a, uint64_t b)
{
	while (b > 0) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* Adds amount times unit to *sum.  -ERANGE: too large, -EDOM: not a whole number. */
static int
add_amount(uint64_t *sum, uint64_t whole, uint64_t fraction, uint64_t scale, uint64_t unit)
{
	uint64_t divisor = common_divisor(fraction, scale), a, b;

	fraction /= divisor;
	scale /= divisor;
	divisor = common_divisor(unit, scale);
	if (scale != divisor)
		return -EDOM;
	if (__builtin_mul_overflow(whole, unit, &a) || __builtin_mul_overflow(fraction, unit / divisor, &b) ||
	    __builtin_add_overflow(a, b, &a) || __builtin_add_overflow(*sum, a, sum))
		return -ERANGE;
	return 0;
}

static int
find_unit(const struct unit *units, size_t count, const char *name, size_t size)
{
	for (size_t i = 0; i < count; i++)
		if (strlen(units[i].name) == size && memcmp(units[i].name, name, size) == 0)
			return (int)i;
	return -1;
}

/* Every unit there is, since each of them is somebody's habit; and for one that is nearly written, what it may mean. */
static int
refuse_size(struct text *why, const char *text, const char *unit)
{
	char letter = (char)toupper((unsigned char)*unit);

	text_add(why, "not a size; ");
	/* "64K", "64kb": of 1024 or of 1000 is not for us to say. */
	if (*unit && strchr("KMGTPE", letter) && strlen(unit) <= strlen("KiB"))
		text_add(why, "write '%.*s%ciB' (1024) or '%.*s%cB' (1000); ", (int)(unit - text), text, letter,
			(int)(unit - text), text, letter == 'K' ? 'k' : letter);
	text_add(why, "a size is bytes, or a number and KiB, MiB, GiB, TiB, PiB, EiB, also without B (powers of 1024), or "
		"B, kB, MB, GB, TB, PB, EB (powers of 1000), such as 512KiB");
	return -EINVAL;
}

int
amount_parse_size(const struct component_flag *row, const char *text, struct flag_value *ret, struct text *why)
{
	const char *s = text;
	uint64_t    whole, fraction, scale, sum = 0;
	int         unit = -1;
	int         r;

	(void)row;
	r = scan_amount(&s, &whole, &fraction, &scale);
	if (r == -EINVAL)
		return refuse_size(why, text, text + strlen(text));
	if (r == 0 && *s) {
		unit = find_unit(sizes, COUNT(sizes), s, strlen(s));
		if (unit < 0)
			return refuse_size(why, text, s);
	}
	if (r == 0)
		r = add_amount(&sum, whole, fraction, scale, unit < 0 ? 1 : sizes[unit].value);
	if (r == -EDOM)
		return text_refuse(why, -EINVAL, "not a whole number of bytes; write it in a smaller unit");
	if (r < 0)
		return text_refuse(why, -ERANGE, "does not fit in 64 bits; write a smaller size");
	ret->size = sum;
	return 0;
}

/* One number and unit after another, each unit smaller than the one before. */
static int
scan_duration(const char *s, uint64_t *ret)
{
	int last = -1;

	do {
		uint64_t whole, fraction, scale;
		size_t   size;
		int      unit, r;

		r = scan_amount(&s, &whole, &fraction, &scale);
		if (r < 0)
			return r;
		size = strcspn(s, "0123456789");
		unit = find_unit(durations, COUNT(durations), s, size);
		/* The two code points that print as a micro sign. */
		if (unit < 0 && size == 3 && (memcmp(s, "\xc2\xb5s", 3) == 0 || memcmp(s, "\xce\xbcs", 3) == 0))
			unit = find_unit(durations, COUNT(durations), "us", 2);
		if (unit <= last)
			return -EINVAL;
		r = add_amount(ret, whole, fraction, scale, durations[unit].value);
		if (r < 0)
			return r;
		last = unit;
		s += size;
	} while (*s);
	return 0;
}

int
amount_parse_duration(const struct component_flag *row, const char *text, struct flag_value *ret, struct text *why)
{
	const char *s = text + (text[0] == '-');
	uint64_t    sum = 0;
	int         r;

	(void)row;
	if (strcmp(text, "0") == 0) {
		ret->integer = 0;
		return 0;
	}
	if (s[strspn(s, "0123456789")] == '\0' && *s && strlen(s) < 10) {
		text_add(why, "has no unit; write '%ss', or '%sms' for milliseconds", text, text);
		return -EINVAL;
	}
	r = scan_duration(s, &sum);
	if (r == -EINVAL)
		return text_refuse(why, r, "not a duration; write numbers and units (h, m, s, ms, us or \xc2\xb5s, ns), such as 30s, 1h30m or 500ms");
	if (r == -EDOM)
		return text_refuse(why, -EINVAL, "finer than a nanosecond; write fewer digits");
	if (r < 0 || sum > INT64_MAX)
		return text_refuse(why, -ERANGE, "longer than 292 years; write a shorter duration");
	ret->integer = text[0] == '-' ? -(int64_t)sum : (int64_t)sum;
	return 0;
}

void
amount_format_size(uint64_t n, struct text *t)
{
	for (size_t i = 0; n > 0 && i < SIZES_SHOWN; i++)
		if (n % sizes[i].value == 0) {
			text_add(t, "%llu%s", (unsigned long long)(n / sizes[i].value), sizes[i].name);
			return;
		}
	text_add(t, "%llu", (unsigned long long)n);
}

void
amount_format_duration(int64_t ns, struct text *t)
{
	uint64_t left = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;

	text_add(t, "%s", ns < 0 ? "-" : left == 0 ? "0s" : "");
	for (size_t i = 0; i < COUNT(durations); i++) {
		uint64_t n = left / durations[i].value;

		left %= durations[i].value;
		if (n > 0)
			text_add(t, "%llu%s", (unsigned long long)n, durations[i].name);
	}
}
