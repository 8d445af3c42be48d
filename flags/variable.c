/*
 * variable.c - a value in a row's variable: load, store, copy, compare, write down.
 *
 * The other half of value.h: value.c goes from text to value, this file does all
 * that comes after.  Each function is one switch over the types, so that a new type
 * without its case does not compile cleanly.
 *
 * Stores are single atomic ones, because a reload may write a variable that other
 * threads read.  A list is two words and cannot be had that way; flags.h says so.
 *
 * Tests: tests/test_flags_value.c.
 */
#include <config.h>

#include "value.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_BYTES_MAX 64 /* a double needs 24 */

static const struct {
	const char *name;
	uint64_t    value;
} durations[] = {
	{ "h", 3600000000000 }, { "m", 60000000000 }, { "s", 1000000000 },
	{ "ms", 1000000 }, { "us", 1000 }, { "ns", 1 },
}, sizes[] = {
	{ "EiB", 1ull << 60 }, { "PiB", 1ull << 50 }, { "TiB", 1ull << 40 },
	{ "GiB", 1ull << 30 }, { "MiB", 1ull << 20 }, { "KiB", 1ull << 10 },
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void
format_number(double d, struct text *t)
{
	char buf[NUMBER_BYTES_MAX];

	/* The fewest digits that read back as the same number. */
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(buf, sizeof(buf), "%.*g", digits, d);
		if (strtod(buf, NULL) == d)
			break;
	}
	/* Whatever the daemon's locale puts between whole and fraction is a dot here. */
	for (const char *s = buf; *s;) {
		size_t size = strcspn(s, "0123456789-+e");

		text_add(t, "%s%c", size > 0 ? "." : "", s[size] ? s[size] : ' ');
		s += size + 1;
	}
}

static void
format_size(uint64_t n, struct text *t)
{
	for (size_t i = 0; n > 0 && i < COUNT(sizes); i++)
		if (n % sizes[i].value == 0) {
			text_add(t, "%llu%s", (unsigned long long)(n / sizes[i].value), sizes[i].name);
			return;
		}
	text_add(t, "%llu", (unsigned long long)n);
}

static void
format_duration(int64_t ns, struct text *t)
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

void
flag_value_format(const struct component_flag *row, const struct flag_value *v, struct text *t)
{
	switch (row->type) {
	case COMPONENT_FLAG_TYPE_BOOL:
		text_add(t, "%s", v->boolean ? "true" : "false");
		break;
	case COMPONENT_FLAG_TYPE_INT:
		text_add(t, "%lld", (long long)v->integer);
		break;
	case COMPONENT_FLAG_TYPE_NUMBER:
		format_number(v->number, t);
		break;
	case COMPONENT_FLAG_TYPE_SIZE:
		format_size(v->size, t);
		break;
	case COMPONENT_FLAG_TYPE_DURATION:
		format_duration(v->integer, t);
		break;
	case COMPONENT_FLAG_TYPE_STRING:
	case COMPONENT_FLAG_TYPE_ADDRESS:
		text_add(t, "%s", v->string ? v->string : "");
		break;
	case COMPONENT_FLAG_TYPE_LIST:
		for (size_t i = 0; i < v->list.count; i++)
			text_add(t, "%s%s", i > 0 ? "," : "", v->list.items[i]);
		break;
	case COMPONENT_FLAG_TYPE_ENUM:
		text_add(t, "%s", row->choices[v->choice]);
		break;
	case COMPONENT_FLAG_TYPE_END:
		break;
	}
}

bool
flag_value_equal(const struct component_flag *row, const struct flag_value *a, const struct flag_value *b)
{
	switch (row->type) {
	case COMPONENT_FLAG_TYPE_BOOL:
		return a->boolean == b->boolean;
	case COMPONENT_FLAG_TYPE_INT:
	case COMPONENT_FLAG_TYPE_DURATION:
		return a->integer == b->integer;
	case COMPONENT_FLAG_TYPE_NUMBER:
		return a->number == b->number;
	case COMPONENT_FLAG_TYPE_SIZE:
		return a->size == b->size;
	case COMPONENT_FLAG_TYPE_STRING:
	case COMPONENT_FLAG_TYPE_ADDRESS:
		return strcmp(a->string ? a->string : "", b->string ? b->string : "") == 0;
	case COMPONENT_FLAG_TYPE_LIST:
		if (a->list.count != b->list.count)
			return false;
		for (size_t i = 0; i < a->list.count; i++)
			if (strcmp(a->list.items[i], b->list.items[i]) != 0)
				return false;
		return true;
	case COMPONENT_FLAG_TYPE_ENUM:
		return a->choice == b->choice;
	case COMPONENT_FLAG_TYPE_END:
		break;
	}
	return true;
}

void
flag_value_load(const struct component_flag *row, struct flag_value *ret)
{
	*ret = (struct flag_value){ .memory = NULL };
	switch (row->type) {
	case COMPONENT_FLAG_TYPE_BOOL:
		ret->boolean = *row->value.boolean;
		break;
	case COMPONENT_FLAG_TYPE_INT:
	case COMPONENT_FLAG_TYPE_DURATION:
		ret->integer = *row->value.integer;
		break;
	case COMPONENT_FLAG_TYPE_NUMBER:
		ret->number = *row->value.number;
		break;
	case COMPONENT_FLAG_TYPE_SIZE:
		ret->size = *row->value.size;
		break;
	case COMPONENT_FLAG_TYPE_STRING:
	case COMPONENT_FLAG_TYPE_ADDRESS:
		ret->string = *row->value.string;
		break;
	case COMPONENT_FLAG_TYPE_LIST:
		ret->list = *row->value.list;
		break;
	case COMPONENT_FLAG_TYPE_ENUM:
		ret->choice = *row->value.choice;
		break;
	case COMPONENT_FLAG_TYPE_END:
		break;
	}
}

/* One store each, so that another thread reads the old value or the new one. */
void
flag_value_store(const struct component_flag *row, const struct flag_value *v)
{
	struct flag_value new = *v; /* what is stored must not be const for all compilers */

	switch (row->type) {
	case COMPONENT_FLAG_TYPE_BOOL:
		__atomic_store(row->value.boolean, &new.boolean, __ATOMIC_RELEASE);
		break;
	case COMPONENT_FLAG_TYPE_INT:
	case COMPONENT_FLAG_TYPE_DURATION:
		__atomic_store(row->value.integer, &new.integer, __ATOMIC_RELEASE);
		break;
	case COMPONENT_FLAG_TYPE_NUMBER:
		__atomic_store(row->value.number, &new.number, __ATOMIC_RELEASE);
		break;
	case COMPONENT_FLAG_TYPE_SIZE:
		__atomic_store(row->value.size, &new.size, __ATOMIC_RELEASE);
		break;
	case COMPONENT_FLAG_TYPE_STRING:
	case COMPONENT_FLAG_TYPE_ADDRESS:
		__atomic_store(row->value.string, &new.string, __ATOMIC_RELEASE);
		break;
	case COMPONENT_FLAG_TYPE_LIST:
		*row->value.list = new.list;
		break;
	case COMPONENT_FLAG_TYPE_ENUM:
		__atomic_store(row->value.choice, &new.choice, __ATOMIC_RELEASE);
		break;
	case COMPONENT_FLAG_TYPE_END:
		break;
	}
}

int
flag_value_copy(const struct component_flag *row, const struct flag_value *from, struct flag_value *ret)
{
	static const struct component_list none = { NULL, 0 };
	struct flag_value v = *from;

	v.memory = NULL;
	if (row->type == COMPONENT_FLAG_TYPE_LIST) {
		if (flag_value_join(&from->list, &none, &v) < 0)
			return -ENOMEM;
	} else if ((row->type == COMPONENT_FLAG_TYPE_STRING || row->type == COMPONENT_FLAG_TYPE_ADDRESS) &&
	           from->string) {
		v.string = v.memory = strdup(from->string);
		if (!v.memory)
			return -ENOMEM;
	}
	*ret = v;
	return 0;
}

void
flag_value_release(struct flag_value *v)
{
	free(v->memory);
	v->memory = NULL;
}
