/*
 * labels.c - label sets, among the stacks of the stack table.
 *
 *     key 0 value 0 key 0 value 0 0...     zeros up to a multiple of a word
 *
 * A set is text, sorted by key, so that equal sets are equal words, and the stack table
 * keeps them as it keeps stacks: each once, by references, under --profiling-memory.  A
 * program that labels each request by its number makes as many sets as requests, and
 * those that no thread and no profile holds any more must go again.
 *
 * What a stranger would get wrong:
 * - Labels may not push stacks out: all sets together get a quarter of the memory.
 * - An empty value is no value: pprof's format has no way to say it.
 *
 * Why not a tree of sets, each with its parent: the same labels set in another order
 * would be another set, and profiles would not merge.
 *
 * Tests: tests/labels/test_labels.c
 */
#include <config.h>

#include "labels.h"

#include <errno.h>
#include <string.h>

#include "utf8.h"

#define WORD sizeof(uintptr_t)

/* The text behind the zero of this one. */
static const char *
behind(const char *text)
{
	return text + strlen(text) + 1;
}

static const char *
set_text(uint32_t set, size_t *ret_size)
{
	unsigned         count = 0;
	const uintptr_t *words = set ? stack_table_pcs(set, &count) : NULL;

	*ret_size = count * WORD;
	return (const char *)words;
}

/* 0, or -E2BIG without room. */
static int
append(struct labels_draft *d, const char *text, size_t size)
{
	if (size > sizeof(d->text) - d->size)
		return -E2BIG;
	memcpy(d->text + d->size, text, size);
	d->size += size;
	return 0;
}

static int
append_label(struct labels_draft *d, const char *key, size_t key_size, const char *value, size_t value_size)
{
	int r = append(d, key, key_size);

	return r ? r : append(d, value, value_size);
}

int
labels_draft(uint32_t set, const char *key, const char *value, struct labels_draft *ret)
{
	size_t      key_size = key ? strnlen(key, LABELS_KEY_MAX + 1) + 1 : 0, size;
	size_t      value_size = value ? strnlen(value, LABELS_VALUE_MAX + 1) + 1 : 1;
	const char *at = set_text(set, &size), *end = at + size, *next;
	unsigned    count = 0;
	int         r = 0, order;
	bool        put = value_size > 1;

	if (key_size <= 1 || key_size > LABELS_KEY_MAX + 1 || value_size > LABELS_VALUE_MAX + 1)
		return -EINVAL;
	ret->size = 0;
	while (at < end && *at && !r) {
		next = behind(behind(at));
		order = strcmp(at, key);
		if (order >= 0 && put) {
			put = false;
			count++;
			r = append_label(ret, key, key_size, value, value_size);
		}
		if (order != 0 && !r) {
			count++;
			r = append(ret, at, (size_t)(next - at));
		}
		at = next;
	}
	if (put && !r) {
		count++;
		r = append_label(ret, key, key_size, value, value_size);
	}
	if (r || count > LABELS_MAX)
		return -E2BIG;
	memset(ret->text + ret->size, 0, -ret->size % WORD);
	return 0;
}

unsigned
labels_draft_words(const struct labels_draft *d)
{
	return (unsigned)((d->size + WORD - 1) / WORD);
}

uint32_t
labels_intern(const struct labels_draft *d)
{
	unsigned words = labels_draft_words(d);

	return words ? stack_table_add_labels(d->words, words, stack_table_limit() / LABELS_PART) : 0;
}

void
labels_ref(uint32_t set)
{
	stack_table_ref(set);
}

void
labels_unref(uint32_t set)
{
	stack_table_unref(set);
}

unsigned
labels_read(uint32_t set, struct label ret[LABELS_MAX])
{
	size_t      size;
	const char *at = set_text(set, &size), *end = at + size;
	unsigned    count = 0;

	for (; at < end && *at && count < LABELS_MAX; count++) {
		ret[count] = (struct label){ at, behind(at) };
		at = behind(ret[count].value);
	}
	return count;
}

/* ---- as text ---- */

struct out {
	char  *buf;
	size_t size, used; /* used may become larger than size: then it does not fit */
};

static void
put(struct out *o, const char *text, size_t size)
{
	if (o->used + size <= o->size)
		memcpy(o->buf + o->used, text, size);
	o->used += size;
}

static void
put_escaped(struct out *o, unsigned char c)
{
	static const char digits[] = "0123456789abcdef", letters[] = "\"\"\\\\\nn\rr\tt";
	const char       *letter = NULL;
	char              text[6] = { '\\', 'u', '0', '0', digits[c >> 4], digits[c & 15] };

	for (const char *p = letters; *p; p += 2)
		if ((unsigned char)*p == c)
			letter = p + 1;
	if (letter) {
		text[1] = *letter;
		put(o, text, 2);
	} else {
		put(o, c < 0x80 ? text : "\\ufffd", 6);
	}
}

static void
put_quoted(struct out *o, const char *text)
{
	uint32_t c;
	size_t   size;

	put(o, "\"", 1);
	for (; *text; text += size) {
		size = utf8_character(text, SIZE_MAX, &c);
		if (size > 1 || (size == 1 && *text >= ' ' && *text != '"' && *text != '\\' && *text != 0x7f)) {
			put(o, text, size);
			continue;
		}
		put_escaped(o, (unsigned char)*text);
		size = 1;
	}
	put(o, "\"", 1);
}

size_t
labels_text(uint32_t set, char *buf, size_t size)
{
	struct label labels[LABELS_MAX];
	unsigned     count = labels_read(set, labels);
	struct out   o = { buf, size < 3 ? 0 : size - 2, 0 }; /* room for } and 0 */
	size_t       fits = 0;

	for (unsigned i = 0; i < count; i++) {
		put(&o, i ? ", " : "{", i ? 2 : 1);
		put_quoted(&o, labels[i].key);
		put(&o, ":", 1);
		put_quoted(&o, labels[i].value);
		if (o.used > o.size)
			break;
		fits = o.used;
	}
	if (fits)
		buf[fits++] = '}';
	if (size)
		buf[fits] = '\0';
	return fits;
}

size_t
labels_plain(uint32_t set, char *buf, size_t size)
{
	struct label labels[LABELS_MAX];
	unsigned     count = labels_read(set, labels);
	struct out   o = { buf, size ? size - 1 : 0, 0 }; /* room for 0 */
	size_t       fits = 0;

	for (unsigned i = 0; i < count && o.used <= o.size; i++) {
		if (i)
			put(&o, " ", 1);
		put(&o, labels[i].key, strlen(labels[i].key));
		put(&o, "=", 1);
		put(&o, labels[i].value, strlen(labels[i].value));
		if (o.used <= o.size)
			fits = o.used;
	}
	for (size_t i = 0; i < fits; i++)
		if ((unsigned char)buf[i] < ' ' || buf[i] == 0x7f)
			buf[i] = '?';
	if (size)
		buf[fits] = '\0';
	return fits;
}
