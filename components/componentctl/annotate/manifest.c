/*
 * manifest.c - a YAML text as a tree, which is changed at places and is otherwise written as it was read.
 *
 * What a stranger would get wrong:
 * - libyaml's marks count characters, and edits are at bytes; a byte order mark counts as none.
 * - The end of a block collection is where the next thing begins, behind comments that may be
 *   that one's.  So a line is put behind the last line of what is in it.
 * - What is put in is in flow style: it is right at any indentation; where its surroundings are JSON, it is made JSON.
 * - Where an anchor or an alias stands, one line of the text is several values.  It is refused where
 *   we look, and let be elsewhere.
 *
 * Tests: tests/componentctl/annotate.t.
 */
#include <config.h>

#include "manifest.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#include "words.h"
#include "yaml_fault.h"

#define BYTES_MAX (16 << 20) /* an object of Kubernetes has 1.5 MiB at most, and a file several */
#define DEPTH_MAX 100        /* libyaml's time grows with the square of it; custom resource definitions have some forty */
#define BOM       "\xef\xbb\xbf"
#define KEY_MAX   64

/* ---- reading ---- */

struct reading {
	struct manifest *m;
	yaml_parser_t    parser;
	size_t           index, byte; /* the same place */
	struct node     *parent;
	int              depth;
};

static size_t
byte_of(struct reading *r, size_t index)
{
	const char *text = text_string(&r->m->bytes);

	for (; r->index < index; r->index++)
		do
			r->byte++;
		while (r->byte < r->m->bytes.size && (text[r->byte] & 0xc0) == 0x80);
	for (; r->index > index; r->index--)
		do
			r->byte--;
		while (r->byte && (text[r->byte] & 0xc0) == 0x80);
	return r->byte;
}

static void
fault_at(struct manifest *m, size_t line, const char *what)
{
	struct text name = TEXT_INIT;

	if (m->fault)
		return;
	m->fault = -EBADMSG;
	text_add_visible(&name, m->name, PATH_MAX);
	component_error_set(m->err, "%s:%zu: %s", text_string(&name), line, what);
	text_release(&name);
}

void
manifest_fault(struct manifest *m, const struct node *at, const char *format, ...)
{
	struct text what = TEXT_INIT;
	va_list     args;

	va_start(args, format);
	text_add_va(&what, format, args);
	va_end(args);
	fault_at(m, at->line + 1, text_string(&what));
	text_release(&what);
}

void
manifest_note(struct manifest *m, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	text_add_visible(&m->notes, m->name, TEXT_QUOTED_MAX);
	text_add(&m->notes, ": ");
	text_add_va(&m->notes, format, args);
	text_add(&m->notes, "\n");
	va_end(args);
}

/* Behind the last child of the one that is being read. */
static struct node *
node_new(struct reading *r, enum node_type type, const yaml_event_t *e)
{
	struct node *n = calloc(1, sizeof(*n)), *parent = r->parent;

	if (!n) {
		r->m->fault = -ENOMEM;
		return NULL;
	}
	*n = (struct node){ .type = type, .parent = parent, .line = e->start_mark.line, .column = e->start_mark.column };
	n->start = byte_of(r, e->start_mark.index);
	n->end = byte_of(r, e->end_mark.index);
	n->flow = parent && parent->flow;
	*(parent ? parent->last ? &parent->last->next : &parent->first : &r->m->root) = n;
	if (parent)
		parent->last = n;
	if (r->m->last)
		r->m->last->after = n;
	r->m->last = n;
	return n;
}

static void
scalar_take(struct reading *r, struct node *n, const yaml_event_t *e)
{
	yaml_scalar_style_t style = e->data.scalar.style;

	n->anchored = e->data.scalar.anchor;
	n->plain = style == YAML_PLAIN_SCALAR_STYLE && !e->data.scalar.tag;
	n->quoted = style == YAML_DOUBLE_QUOTED_SCALAR_STYLE;
	n->literal = style == YAML_LITERAL_SCALAR_STYLE || style == YAML_FOLDED_SCALAR_STYLE;
	n->text = strdup((const char *)e->data.scalar.value);
	if (!n->text)
		r->m->fault = -ENOMEM;
}

static void
collection_begin(struct reading *r, const yaml_event_t *e)
{
	bool         is_map = e->type == YAML_MAPPING_START_EVENT;
	struct node *n = node_new(r, is_map ? NODE_MAPPING : NODE_SEQUENCE, e);

	if (!n)
		return;
	n->anchored = is_map ? e->data.mapping_start.anchor : e->data.sequence_start.anchor;
	n->flow |= is_map ? e->data.mapping_start.style == YAML_FLOW_MAPPING_STYLE :
		e->data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE;
	r->parent = n;
	if (++r->depth > DEPTH_MAX)
		fault_at(r->m, n->line + 1, "lists and mappings are nested too deeply");
}

static void
event_take(struct reading *r, const yaml_event_t *e)
{
	struct node *n;

	switch (e->type) {
	case YAML_STREAM_START_EVENT:
		n = node_new(r, NODE_SEQUENCE, e);
		r->parent = n;
		break;
	case YAML_SCALAR_EVENT:
		n = node_new(r, NODE_SCALAR, e);
		if (n)
			scalar_take(r, n, e);
		break;
	case YAML_ALIAS_EVENT:
		node_new(r, NODE_ALIAS, e);
		break;
	case YAML_SEQUENCE_START_EVENT:
	case YAML_MAPPING_START_EVENT:
		collection_begin(r, e);
		break;
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		r->parent->end = byte_of(r, e->end_mark.index);
		r->parent = r->parent->parent;
		r->depth--;
		break;
	default:
		break;
	}
}

static void
events_read(struct reading *r)
{
	yaml_event_t e;
	bool         end = false;

	while (!end && !r->m->fault) {
		if (!yaml_parser_parse(&r->parser, &e)) {
			struct text why = TEXT_INIT;
			size_t      line;

			text_add(&why, "not YAML: ");
			line = yaml_fault(&r->parser, &r->m->bytes, &why);
			fault_at(r->m, line, text_string(&why));
			text_release(&why);
			return;
		}
		event_take(r, &e);
		end = e.type == YAML_STREAM_END_EVENT;
		yaml_event_delete(&e);
	}
}

int
manifest_parse(struct manifest *m, const char *name, struct text *bytes, struct component_error *err)
{
	struct reading r = { .m = m };
	const char    *text;

	*m = (struct manifest){ .name = name, .bytes = *bytes, .err = err };
	*bytes = (struct text)TEXT_INIT;
	text = text_string(&m->bytes);
	if (!strncmp(text, "\xff\xfe", 2) || !strncmp(text, "\xfe\xff", 2)) {
		fault_at(m, 1, "not YAML: UTF-16; save the file as UTF-8");
		return m->fault;
	}
	if (!yaml_parser_initialize(&r.parser))
		return -ENOMEM;
	yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, m->bytes.size);
	r.byte = strncmp(text, BOM, strlen(BOM)) ? 0 : strlen(BOM);
	events_read(&r);
	yaml_parser_delete(&r.parser);
	return m->fault;
}

int
manifest_read(struct manifest *m, const char *path, struct component_error *err)
{
	bool        is_input = !strcmp(path, "-");
	const char *name = is_input ? "standard input" : path;
	struct text bytes = TEXT_INIT;
	char        buf[16 * 1024];
	FILE       *f = is_input ? stdin : fopen(path, "re");
	int         r = f ? 0 : -errno;

	while (!r && !feof(f)) {
		text_add_bytes(&bytes, buf, fread(buf, 1, sizeof(buf), f));
		r = ferror(f) ? -errno : bytes.failed ? -ENOMEM : bytes.size > BYTES_MAX ? -EFBIG : 0;
	}
	if (f && !is_input)
		fclose(f);
	if (r)
		component_error_set(err, "%s cannot be read: %s", name, strerror(-r));
	else
		r = manifest_parse(m, name, &bytes, err);
	text_release(&bytes);
	return r;
}

void
manifest_release(struct manifest *m)
{
	for (struct node *n = m->root, *next; n; n = next) {
		next = n->after;
		free(n->text);
		free(n);
	}
	for (size_t i = 0; i < m->edit_count; i++)
		text_release(&m->edits[i].text);
	free(m->edits);
	text_release(&m->bytes);
	text_release(&m->notes);
	*m = (struct manifest){ .name = NULL };
}

/* ---- looking ---- */

const char *
manifest_text(const struct node *n)
{
	return n && n->type == NODE_SCALAR ? n->text : "";
}

static bool
is_null(const struct node *n)
{
	static const char *const nulls[] = { "", "~", "null", "Null", "NULL" };

	for (size_t i = 0; i < sizeof(nulls) / sizeof(nulls[0]); i++)
		if (n->type == NODE_SCALAR && n->plain && !strcmp(n->text, nulls[i]))
			return true;
	return false;
}

/* The value, null too. */
static struct node *
value_of(struct manifest *m, struct node *map, const char *key)
{
	struct node *found = NULL;

	if (m->fault)
		return NULL;
	if (map->type != NODE_MAPPING) {
		manifest_fault(m, map, "'%s' is looked for here, and there is no mapping; write '%s:' below the key", key, key);
		return NULL;
	}
	for (struct node *k = map->first; k; k = k->next->next) {
		if (k->type != NODE_SCALAR)
			continue;
		if (k->plain && !strcmp(k->text, "<<"))
			manifest_fault(m, k, "a merge key (<<) where '%s' is looked for; write the keys out", key);
		if (strcmp(k->text, key))
			continue;
		if (found)
			manifest_fault(m, k, "'%s' is there twice, first in line %zu; keep one", key, found->line + 1);
		found = k->next;
	}
	if (found && found->type == NODE_ALIAS)
		manifest_fault(m, found, "an alias (*name) is the value of '%s'; write the value out", key);
	else if (found && found->anchored && found->type != NODE_SCALAR)
		manifest_fault(m, found, "the value of '%s' has an anchor (&name); write it out without one", key);
	return m->fault ? NULL : found;
}

struct node *
manifest_get(struct manifest *m, struct node *map, const char *key)
{
	struct node *n = value_of(m, map, key);

	return n && is_null(n) ? NULL : n;
}

struct node *
manifest_find(struct manifest *m, struct node *map, const char *path)
{
	while (map && *path) {
		char   key[KEY_MAX];
		size_t size = strcspn(path, ".");

		snprintf(key, sizeof(key), "%.*s", (int)size, path);
		map = manifest_get(m, map, key);
		path += size + (path[size] == '.');
	}
	return map;
}

struct node *
manifest_items(struct manifest *m, struct node *sequence, const char *name)
{
	if (!sequence)
		return NULL;
	if (sequence->type != NODE_SEQUENCE)
		manifest_fault(m, sequence, "'%s' is no list; write %s: [...]", name, name);
	for (struct node *n = sequence->first; n; n = n->next)
		if (n->type == NODE_ALIAS)
			manifest_fault(m, n, "an alias (*name) in '%s'; write the value out", name);
	return m->fault ? NULL : sequence->first;
}

/* ---- changing ---- */

static struct text *
edit_new(struct manifest *m, size_t at, size_t removes)
{
	struct edit *edits = reallocarray(m->edits, m->edit_count + 1, sizeof(*edits));

	if (!edits) {
		m->fault = -ENOMEM;
		return NULL;
	}
	m->edits = edits;
	edits[m->edit_count] = (struct edit){ at, removes, TEXT_INIT };
	return &edits[m->edit_count++].text;
}

/* As the text's other lines end. */
static const char *
newline(const struct manifest *m)
{
	const char *text = text_string(&m->bytes), *end = strchr(text, '\n');

	return end && end > text && end[-1] == '\r' ? "\r\n" : "\n";
}

/* Behind its last line; 0: more than a comment stands there. */
static size_t
line_end(const struct manifest *m, const struct node *n)
{
	const char *text = text_string(&m->bytes);
	size_t      at;

	while (n && !n->flow && (n->type == NODE_SEQUENCE || n->type == NODE_MAPPING))
		n = n->last;
	if (!n)
		return 0;
	at = n->end;
	if (n->literal && (text[at - 1] == '\n' || at == m->bytes.size))
		return at;
	at += strspn(text + at, " \t\r");
	if (text[at] == '#')
		at += strcspn(text + at, "\n");
	if (at < m->bytes.size && text[at] != '\n')
		return 0;
	return at + (at < m->bytes.size);
}

/* value in a line of its own that begins at a byte. */
static void
line_add(struct manifest *m, size_t at, size_t column, const char *head, const char *value)
{
	struct text *t = edit_new(m, at, 0);
	bool         begun = at > 0 && text_string(&m->bytes)[at - 1] != '\n'; /* the text's last line has no end */

	if (t)
		text_add(t, "%s%*s%s%s%s", begun ? newline(m) : "", (int)column, "", head, value, begun ? "" : newline(m));
}

/* Has its author quoted the keys around it? */
static bool
is_json(const struct node *n)
{
	while (n && n->type != NODE_MAPPING)
		n = n->parent;
	return n && n->flow && n->first && n->first->quoted;
}

/* YAML in flow style; each bare word that is no number in quotes if it is to be JSON. */
static void
flow_write(struct text *t, const char *value, bool json)
{
	while (*value) {
		bool   quoted = *value == '"', word = json && (isalnum((unsigned char)*value) || strchr("-/", *value));
		size_t size = word ? strcspn(value, ":,[]{} ") : quoted ? strcspn(value + 1, "\"") + 2 : 1;

		word = word && strspn(value, "0123456789") < size;
		text_add(t, "%s%.*s%s", word ? "\"" : "", (int)size, value, word ? "\"" : "");
		value += size;
	}
}

/* In a flow collection, behind what it has. */
static void
flow_add(struct manifest *m, const struct node *collection, const char *key, const char *value)
{
	const struct node *last = collection->last;
	struct text       *t = edit_new(m, last ? last->end : collection->start + 1, 0);
	bool               json = is_json(collection);

	if (!t)
		return;
	text_add(t, "%s", last ? ", " : "");
	flow_write(t, key, json);
	text_add(t, "%s", *key ? ": " : "");
	flow_write(t, value, json);
}

/* Where a new key of a block mapping goes. */
static size_t
place_for_key(struct manifest *m, struct node *map, const char *behind)
{
	const char *word;
	size_t      size, at = 0;

	while (!at && words_next(&behind, &word, &size))
		for (struct node *k = map->first; k; k = k->next->next)
			if (k->type == NODE_SCALAR && strlen(k->text) == size && !memcmp(k->text, word, size))
				at = line_end(m, k->next);
	for (struct node *k = map->first; k && !at; k = k->next->next)
		at = line_end(m, k->next);
	if (!at)
		manifest_fault(m, map, "there is no line behind which another key could be written; write each key in its own line");
	return at;
}

void
manifest_set(struct manifest *m, struct node *map, const char *key, const char *value, const char *behind)
{
	struct node *old = value_of(m, map, key);
	struct text  head = TEXT_INIT;
	struct text *t;
	size_t       at;

	if (m->fault)
		return;
	if (old && old->anchored) {
		manifest_fault(m, old, "the value of '%s' has an anchor (&name); write it out without one", key);
	} else if (old) {
		old->replaced = true;
		t = edit_new(m, old->start, old->end - old->start);
		if (t) {
			text_add(t, "%s", old->end > old->start ? "" : " ");
			flow_write(t, value, is_json(map));
		}
	} else if (map->flow) {
		flow_add(m, map, key, value);
	} else if ((at = place_for_key(m, map, behind))) {
		text_add(&head, "%s: ", key);
		line_add(m, at, map->column, text_string(&head), value);
		text_release(&head);
	}
}

void
manifest_insert(struct manifest *m, struct node *sequence, struct node *before, const char *value)
{
	const char  *bytes = text_string(&m->bytes);
	struct text *t;
	size_t       at;

	if (m->fault)
		return;
	if (before && sequence->flow) {
		t = edit_new(m, before->start, 0);
		if (t) {
			flow_write(t, value, is_json(sequence));
			text_add(t, ", ");
		}
	} else if (before) {
		for (at = before->start - 1; at && bytes[at] != '-';) /* its dash, not one of its own */
			at--;
		t = edit_new(m, at, 0);
		if (t)
			text_add(t, "- %s%s%*s", value, newline(m), (int)sequence->column, "");
	} else if (sequence->flow) {
		flow_add(m, sequence, "", value);
	} else if ((at = line_end(m, sequence))) {
		line_add(m, at, sequence->column, "- ", value);
	} else {
		manifest_fault(m, sequence, "nothing can be added to this list; write each item in its own line");
	}
}

void
manifest_quote(struct text *t, const char *value)
{
	if (strpbrk(value, ":#,[]{}'\" "))
		text_add_json(t, value);
	else
		text_add(t, "%s", value);
}

/* ---- writing ---- */

/* Of those at one place the first one first: the order in which they were asked for. */
static struct edit *
edit_from(struct manifest *m, size_t byte, const struct edit *before)
{
	struct edit *best = NULL;

	for (struct edit *e = m->edits; e < m->edits + m->edit_count; e++)
		if (e->at >= byte && (!before || e->at > before->at || (e->at == before->at && e > before)) && (!best || e->at < best->at))
			best = e;
	return best;
}

int
manifest_write(struct manifest *m, struct text *ret)
{
	struct edit *e = NULL;
	size_t       byte = 0;

	while ((e = edit_from(m, byte, e))) {
		if (e->text.failed)
			return -ENOMEM;
		text_add_bytes(ret, m->bytes.data + byte, e->at - byte);
		text_add_bytes(ret, text_string(&e->text), e->text.size);
		byte = e->at + e->removes;
	}
	if (m->bytes.size)
		text_add_bytes(ret, m->bytes.data + byte, m->bytes.size - byte);
	return ret->failed ? -ENOMEM : m->fault;
}

bool
manifest_is_in(const struct manifest *m, const struct manifest *other)
{
	const struct node *o = other->root;

	for (const struct node *n = m->root; n; n = n->after) {
		if (n->replaced)
			continue;
		while (o && (o->type != n->type || (n->text && strcmp(o->text, n->text))))
			o = o->after;
		if (!o)
			return false;
		o = o->after;
	}
	return true;
}
