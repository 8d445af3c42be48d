/*
 * value.c - text to value and back, and a value in a row's variable, for every type of row.
 *
 *     "512KiB" --> flag_value_parse() --> 524288 --> flag_value_format() --> "512KiB"
 *                                         |    ^
 *                        flag_value_store()    flag_value_load(): the row's variable
 *
 * Nothing is guessed.  A duration without a unit, a size in "K", an octal-looking
 * number, a blank at either end: refused with the text to write instead, because a
 * timeout read as seconds instead of milliseconds is found in production.  Numbers
 * are exact: what does not fit, or would have to be rounded, is refused as well.
 * Amounts with units are in amount.c.
 *
 * Why not strtoll(3), strtod(3) alone: they skip blanks, take a '+', stop at the
 * first strange character and, strtod, read "1,5" or "1.5" by the locale.
 *
 * Stores are single atomic ones, because a reload may write a variable that other
 * threads read.  A list is two words and cannot be had that way; flags.h says so.
 *
 * Checklist for a new type: enum component_flag_type and its macro in flags.h, a member
 * of struct flag_value, a row in types[], a case in flag_value_format(), without which it
 * does not compile cleanly, and in flag_value_equal() if its bytes do not tell.
 *
 * Tests: tests/flags/test_value.c.
 */
#include <config.h>

#include "value.h"

#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "address.h"
#include "amount.h"
#include "words.h"

#define WHY_BYTES_MAX    256 /* a sentence of the address parser */
#define NUMBER_BYTES_MAX 64  /* a double needs 24 */

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static int
parse_bool(const struct component_flag *row, const char *text, struct flag_value *ret, struct text *why)
{
	static const char *const words[][2] = {
		{ "0", "1" }, { "f", "t" }, { "false", "true" }, { "no", "yes" }, { "off", "on" },
	};

	(void)row;
	for (size_t i = 0; i < COUNT(words); i++)
		for (int b = 0; b < 2; b++)
			if (strcasecmp(text, words[i][b]) == 0) {
				ret->boolean = b;
				return 0;
			}
	return text_refuse(why, -EINVAL, "neither true nor false; write 'true' or 'false'");
}

static int
parse_int(const struct component_flag *row, const char *text, struct flag_value *ret, struct text *why)
{
	const char *s = text + (text[0] == '-');
	uint64_t    n = 0, limit = (uint64_t)INT64_MAX + (text[0] == '-');
	int         r;

	(void)row;
	r = amount_scan_digits(&s, &n);
	if (r == 0 && *s)
		r = -EINVAL;
	if (r == -EINVAL)
		return text_refuse(why, r, "not a whole number; write digits, such as 42, without blanks, sign '+' or leading zeros");
	if (r < 0 || n > limit)
		return text_refuse(why, -ERANGE, "does not fit in 64 bits; write a smaller number");
	ret->integer = text[0] == '-' ? (int64_t)(0 - n) : (int64_t)n;
	return 0;
}

/* [-]digits[.digits][e[+-]digits], so that strtod() has nothing to guess. */
static bool
is_number(const char *s)
{
	s += *s == '-';
	if (!isdigit((unsigned char)*s) || (s[0] == '0' && isdigit((unsigned char)s[1])))
		return false;
	s += strspn(s, "0123456789");
	if (*s == '.') {
		s++;
		if (!isdigit((unsigned char)*s))
			return false;
		s += strspn(s, "0123456789");
	}
	if (*s == 'e' || *s == 'E') {
		s++;
		s += *s == '-' || *s == '+';
		if (!isdigit((unsigned char)*s))
			return false;
		s += strspn(s, "0123456789");
	}
	return *s == '\0';
}

static int
parse_number(const struct component_flag *row, const char *text, struct flag_value *ret, struct text *why)
{
	locale_t c;
	double   d;

	(void)row;
	if (!is_number(text))
		return text_refuse(why, -EINVAL, "not a number; write it like 0.5 or 10");
	c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	if (c == (locale_t)0)
		return text_refuse(why, -ENOMEM, "out of memory");
	d = strtod_l(text, NULL, c);
	freelocale(c);
	if (!isfinite(d))
		return text_refuse(why, -ERANGE, "too large; write a smaller number");
	if (d == 0 && strpbrk(text, "123456789") && strpbrk(text, "123456789") < text + strcspn(text, "eE"))
		return text_refuse(why, -ERANGE, "too close to 0; write 0 or a larger number");
	ret->number = d;
	return 0;
}

static int
parse_string(const struct component_flag *row, const char *text, struct flag_value *ret, struct text *why)
{
	char *copy = strdup(text);

	(void)row;
	if (!copy)
		return text_refuse(why, -ENOMEM, "out of memory");
	ret->string = ret->memory = copy;
	return 0;
}

static int
parse_address(const struct component_flag *row, const char *text, struct flag_value *ret, struct text *why)
{
	struct address address;
	char           sentence[WHY_BYTES_MAX] = "";
	int            r;

	r = address_parse(text, &address, sentence, sizeof(sentence));
	if (r < 0)
		return text_refuse(why, r, sentence[0] ? sentence : "not an address; write HOST:PORT");
	return parse_string(row, text, ret, why);
}

int
flag_value_join(const struct component_list *a, const struct component_list *b, struct flag_value *ret)
{
	size_t       count = a->count + (b ? b->count : 0), bytes = 0;
	const char **items;
	char        *to;

	for (size_t i = 0; i < count; i++)
		bytes += strlen(i < a->count ? a->items[i] : b->items[i - a->count]) + 1;
	items = malloc((count + 1) * sizeof(*items) + bytes);
	if (!items)
		return -ENOMEM;
	to = (char *)(items + count + 1);
	for (size_t i = 0; i < count; i++) {
		const char *from = i < a->count ? a->items[i] : b->items[i - a->count];

		items[i] = to;
		to = stpcpy(to, from) + 1;
	}
	items[count] = NULL;
	ret->list.items = items;
	ret->list.count = count;
	ret->memory = items;
	return 0;
}

/* "a,b,c".  An empty item, or a blank around one, is more likely a slip. */
static int
parse_list(const struct component_flag *row, const char *text, struct flag_value *ret, struct text *why)
{
	char       **items = calloc(strlen(text) / 2 + 2, sizeof(*items));
	char        *copy = strdup(text), *rest = copy, *item;
	size_t       count = 0;
	int          r = -ENOMEM;

	(void)row;
	if (!items || !copy)
		goto out;
	while ((item = strsep(&rest, ",")) != NULL) {
		size_t size = strlen(item);

		r = -EINVAL;
		if (size == 0 || isspace((unsigned char)item[0]) || isspace((unsigned char)item[size - 1]))
			goto out;
		items[count++] = item;
	}
	r = flag_value_join(&(struct component_list){ (const char *const *)items, count }, NULL, ret);
out:
	if (r < 0)
		text_refuse(why, r, r == -ENOMEM ? "out of memory" :
			"has an empty item or a blank around one; write items with commas alone between them, such as a,b,c");
	free(items);
	free(copy);
	return r;
}

static int
parse_enum(const struct component_flag *row, const char *text, struct flag_value *ret, struct text *why)
{
	for (int i = 0; row->choices[i]; i++)
		if (strcmp(row->choices[i], text) == 0) {
			ret->choice = i;
			return 0;
		}
	text_add(why, "not one of the choices; write ");
	for (int i = 0; row->choices[i]; i++)
		text_add(why, "%s'%s'", i == 0 ? "" : row->choices[i + 1] ? ", " : " or ", row->choices[i]);
	return -EINVAL;
}

static const struct {
	const char *name;
	const char *argument;
	size_t      size; /* of a row's variable, and of its member of struct flag_value */
	int (*parse)(const struct component_flag *row, const char *text, struct flag_value *ret, struct text *why);
} types[] = {
	[COMPONENT_FLAG_TYPE_BOOL]     = { "bool", "BOOL", sizeof(bool), parse_bool },
	[COMPONENT_FLAG_TYPE_INT]      = { "int", "N", sizeof(int64_t), parse_int },
	[COMPONENT_FLAG_TYPE_NUMBER]   = { "number", "NUMBER", sizeof(double), parse_number },
	[COMPONENT_FLAG_TYPE_SIZE]     = { "size", "SIZE", sizeof(uint64_t), amount_parse_size },
	[COMPONENT_FLAG_TYPE_DURATION] = { "duration", "DURATION", sizeof(int64_t), amount_parse_duration },
	[COMPONENT_FLAG_TYPE_STRING]   = { "string", "STRING", sizeof(char *), parse_string },
	[COMPONENT_FLAG_TYPE_LIST]     = { "list", "LIST", sizeof(struct component_list), parse_list },
	[COMPONENT_FLAG_TYPE_ENUM]     = { "enum", "WORD", sizeof(int), parse_enum },
	[COMPONENT_FLAG_TYPE_ADDRESS]  = { "address", "ADDRESS", sizeof(char *), parse_address },
};

/* A row's variable, whatever its type. */
typedef uint32_t __attribute__((may_alias)) word32;
typedef uint64_t __attribute__((may_alias)) word64;

const char *
flag_value_argument(const struct component_flag *row)
{
	return row->argument ? row->argument : types[row->type].argument;
}

const char *
flag_value_type(const struct component_flag *row)
{
	return types[row->type].name;
}

/* The names that a value may have, after what else may be written. */
static void
add_words(const struct component_flag *row, struct text *why)
{
	const char *cursor = row->words, *word;
	size_t      size;

	while (words_next(&cursor, &word, &size))
		text_add(why, "%s'%.*s'", word == row->words ? "; or one of " : ", ", (int)strcspn(word, "="), word);
}

int
flag_value_parse(const struct component_flag *row, const char *text, struct flag_value *ret, struct text *why)
{
	struct flag_value v = { .memory = NULL };
	struct text       named = TEXT_INIT;
	const char       *cursor = row->words, *word;
	size_t            size;
	int               r;

	/* "debug=4": a name stands for the text after its '='. */
	while (words_next(&cursor, &word, &size)) {
		size_t name = strcspn(word, "=");

		if (strlen(text) == name && name + 1 < size && strncasecmp(text, word, name) == 0) {
			text_add_bytes(&named, word + name + 1, size - name - 1);
			break;
		}
	}
	r = named.failed ? -ENOMEM : types[row->type].parse(row, named.data ? named.data : text, &v, why);
	if (r == -EINVAL && !named.data)
		add_words(row, why);
	if (r == 0)
		r = flag_value_check(row, &v, why);
	text_release(&named);
	if (r < 0) {
		flag_value_release(&v);
		return r;
	}
	*ret = v;
	return 0;
}

/* -1, 0 or 1: below, inside, above. */
static int
compare_range(const struct component_flag *row, const struct flag_value *v)
{
	switch (row->type) {
	case COMPONENT_FLAG_TYPE_INT:
	case COMPONENT_FLAG_TYPE_DURATION:
		return v->integer < row->min ? -1 : v->integer > row->max;
	case COMPONENT_FLAG_TYPE_NUMBER:
		return v->number < (double)row->min ? -1 : v->number > (double)row->max;
	case COMPONENT_FLAG_TYPE_SIZE:
		return row->min > 0 && v->size < (uint64_t)row->min ? -1 :
			row->max < 0 || v->size > (uint64_t)row->max;
	default:
		return 0;
	}
}

static void
format_bound(const struct component_flag *row, int64_t bound, struct text *t)
{
	struct flag_value v = { .memory = NULL };

	if (row->type == COMPONENT_FLAG_TYPE_NUMBER)
		v.number = (double)bound;
	else if (row->type == COMPONENT_FLAG_TYPE_SIZE)
		v.size = bound < 0 ? 0 : (uint64_t)bound;
	else
		v.integer = bound;
	flag_value_format(row, &v, t);
}

int
flag_value_check(const struct component_flag *row, const struct flag_value *v, struct text *why)
{
	int side = row->min == 0 && row->max == 0 ? 0 : compare_range(row, v);

	if (side == 0)
		return 0;
	text_add(why, "out of range; write a value ");
	if (row->min == INT64_MIN) {
		text_add(why, "of at most ");
		format_bound(row, row->max, why);
	} else if (row->max == INT64_MAX) {
		text_add(why, "of at least ");
		format_bound(row, row->min, why);
	} else {
		text_add(why, "from ");
		format_bound(row, row->min, why);
		text_add(why, " to ");
		format_bound(row, row->max, why);
	}
	return -ERANGE;
}

/* ---- what comes after the text ---- */

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
		amount_format_size(v->size, t);
		break;
	case COMPONENT_FLAG_TYPE_DURATION:
		amount_format_duration(v->integer, t);
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
	case COMPONENT_FLAG_TYPE_NUMBER: /* 0 and -0 */
		return a->number == b->number;
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
	default:
		return memcmp(a, b, types[row->type].size) == 0;
	}
}

void
flag_value_load(const struct component_flag *row, struct flag_value *ret)
{
	*ret = (struct flag_value){ .memory = NULL };
	memcpy(ret, row->value.any, types[row->type].size);
}

/* One store each, so that another thread reads the old value or the new one. */
void
flag_value_store(const struct component_flag *row, const struct flag_value *v)
{
	const void *from = v;

	if (row->type == COMPONENT_FLAG_TYPE_LIST)
		*row->value.list = v->list;
	else if (types[row->type].size == sizeof(uint8_t))
		__atomic_store_n((uint8_t *)row->value.any, *(const uint8_t *)from, __ATOMIC_RELEASE);
	else if (types[row->type].size == sizeof(word32))
		__atomic_store_n((word32 *)row->value.any, *(const word32 *)from, __ATOMIC_RELEASE);
	else
		__atomic_store_n((word64 *)row->value.any, *(const word64 *)from, __ATOMIC_RELEASE);
}

int
flag_value_copy(const struct component_flag *row, const struct flag_value *from, struct flag_value *ret)
{
	struct flag_value v = *from;

	v.memory = NULL;
	if (row->type == COMPONENT_FLAG_TYPE_LIST) {
		if (flag_value_join(&from->list, NULL, &v) < 0)
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
