/*
 * units.c - amounts and shares as go tool pprof writes them.
 *
 * Computed in doubles, by its steps and in its order, since the last digit is to be the same.  printf("%f") follows
 * the locale, which this program leaves at "C".
 *
 * Tests: tests/componentctl/profile.t, against every go tool pprof that is here.
 */
#include <config.h>

#include "units.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

struct unit {
	const char *name;
	const char *words; /* that mean it, with blanks around each */
	double      factor;
};

struct family {
	const struct unit *units;
	const char        *usual; /* of what is below the smallest */
	double             usual_factor;
};

static const struct unit bytes[] = {
	{ "B", " b byte ", 1 }, { "kB", " kb kbyte kilobyte ", 0x1p10 }, { "MB", " mb mbyte megabyte ", 0x1p20 },
	{ "GB", " gb gbyte gigabyte ", 0x1p30 }, { "TB", " tb tbyte terabyte ", 0x1p40 },
	{ "PB", " pb pbyte petabyte ", 0x1p50 }, { NULL, NULL, 0 },
};
static const struct unit times[] = {
	{ "ns", " ns nanosecond ", 1 }, { "us", " \xce\xbcs us microsecond ", 1e3 }, { "ms", " ms millisecond ", 1e6 },
	{ "s", " s sec second ", 1e9 }, { "hrs", " hour hr ", 3600e9 }, { NULL, NULL, 0 },
};
static const struct unit compute[] = {
	{ "n*GCU", " nanogcu ", 1e-9 }, { "u*GCU", " microgcu ", 1e-6 }, { "m*GCU", " milligcu ", 1e-3 },
	{ "GCU", " gcu ", 1 }, { "k*GCU", " kilogcu ", 1e3 }, { "M*GCU", " megagcu ", 1e6 },
	{ "G*GCU", " gigagcu ", 1e9 }, { "T*GCU", " teragcu ", 1e12 }, { "P*GCU", " petagcu ", 1e15 }, { NULL, NULL, 0 },
};
static const struct family families[] = {
	{ bytes, "B", 1 }, { times, "s", 1e9 }, { compute, "GCU", 1 }, { NULL, NULL, 0 },
};

static const struct unit *
find(const struct family *f, const char *name)
{
	char   word[24] = " ";
	size_t n = strlen(name);

	if (n + 3 > sizeof(word))
		return NULL;
	for (size_t i = 0; i < n; i++)
		word[1 + i] = (char)tolower((unsigned char)name[i]);
	n -= n > 2 && word[n] == 's';
	memcpy(word + 1 + n, " ", 2);
	for (const struct unit *u = f->units; u->name; u++)
		if (n && !strchr(name, ' ') && strstr(u->words, word))
			return u;
	return NULL;
}

static double
best(const struct family *f, double value, const char **ret_unit)
{
	const struct unit *chosen = NULL;

	for (const struct unit *u = f->units; u->name; u++)
		if ((!chosen || u->factor >= chosen->factor) && value / u->factor >= 1)
			chosen = u;
	*ret_unit = chosen ? chosen->name : f->usual;
	return value / (chosen ? chosen->factor : f->usual_factor);
}

static double
scale(int64_t value, const char *unit, const char *to, const char **ret_unit)
{
	static const char *const plain[] = { "count", "sample", "unit", "minimum", "auto" };

	if (value < 0 && value != INT64_MIN)
		return -scale(-value, unit, to, ret_unit);
	for (const struct family *f = families; f->units; f++) {
		const struct unit *from = find(f, unit), *wanted;
		double             v;

		if (!from)
			continue;
		v = (double)value * from->factor;
		if (!strcmp(to, "auto"))
			return best(f, v, ret_unit);
		wanted = find(f, to);
		*ret_unit = wanted ? wanted->name : f->usual;
		return v / (wanted ? wanted->factor : f->usual_factor);
	}
	*ret_unit = to;
	for (unsigned i = 0; i < sizeof(plain) / sizeof(*plain); i++)
		if (!strcmp(to, plain[i]))
			*ret_unit = "";
	return (double)value;
}

const char *
units_best(int64_t value, const char *unit)
{
	const char *found;

	scale(value, unit, "auto", &found);
	return found;
}

void
units_format(char buf[UNITS_MAX], int64_t value, const char *unit, const char *to)
{
	const char *found;
	double      v = scale(value, unit, to, &found);
	int         n = snprintf(buf, UNITS_MAX, "%.2f", v);

	if (n > 3 && !strcmp(buf + n - 3, ".00"))
		buf[n -= 3] = '\0';
	if (!strcmp(buf, "0") || !strcmp(buf, "-0"))
		snprintf(buf, UNITS_MAX, "0");
	else
		snprintf(buf + n, (size_t)(UNITS_MAX - n), "%s", found);
}

double
units_nanoseconds(int64_t value, const char *unit)
{
	const char *found;
	double      v = scale(value, unit, "nanoseconds", &found);

	return strcmp(found, "ns") ? 0 : v;
}

void
units_percent(char buf[UNITS_MAX], int64_t value, int64_t total)
{
	double share = total ? fabs((double)value / (double)total) * 100 : 0;

	if (share >= 99.95 && share <= 100.05)
		snprintf(buf, UNITS_MAX, "  100%%");
	else
		snprintf(buf, UNITS_MAX, share >= 1 ? "%5.2f%%" : "%5.2g%%", share);
}
