/*
 * picture.c - a flame graph as SVG.
 *
 *     all
 *     main                        serve
 *     parse          answer       ...
 *
 * A tree of calls, each node as wide as what was measured in and below it.  Where there is no room for one more node,
 * what comes then is counted in who calls it, and the picture says so.  A window's and a snapshot's largest stacks come
 * first, so that little is lost by it; a file's come as they stand there, and of a difference what became less is last.
 * Negative amounts (of a difference) are as wide as positive ones, and blue.  It has no script and asks for nothing;
 * what a pointer rests on is told by <title>.
 *
 * What a stranger would get wrong:
 * - a node's number is above that of its parent, so that one pass over all knows each parent's place first.
 * - numbers are printed as whole ones: a locale may write 0,5.
 * - names are a stranger's: escaped, and no byte of them that XML does not allow.
 *
 * Tests: tests/serve/viewer.t, tests/componentctl/profile.t, tests/encode/test_view.c
 */
#include <config.h>

#include "picture.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "order.h"
#include "utf8.h"

#define WIDTH  1200 /* pixels */
#define EDGE   10
#define HEAD   46
#define ROW    18
#define LETTER 67  /* hundredths of a pixel, of the font below */
#define LEAST  1000 /* this part of the whole is the least that is drawn */
#define COLORS 8
#define STAYS  ((uint32_t)1 << 31) /* in a place: nothing lies deeper */

struct picture_node {
	uint32_t parent, name, first, next; /* first child, next of the same parent; 0: none */
	uint32_t depth;
	int64_t  value, self; /* in and below it; its own */
	uint64_t amount;      /* without signs: as wide as it is */
	uint64_t x;            /* amounts to its left */
};

static const char *const warm[COLORS] = { "#f2b179", "#f5c76e", "#e89f71", "#f0d58a", "#e6b35c", "#f3a683", "#eac08a", "#dcae6f" };
static const char *const cold[COLORS] = { "#8fb7d9", "#9cc3dd", "#7fa9d1", "#a9cde0", "#88b4cc", "#94addb", "#a3c0d6", "#82aec6" };

uint32_t
picture_name(struct picture *p, const char *text)
{
	uint64_t id;
	bool     is_new;
	void    *room;

	if (strings_id(&p->names, text, strlen(text), false, &id, &is_new) < 0)
		return PICTURE_NO_NAME;
	room = arena_grown(p->arena, p->name, &p->name_room, id, sizeof(*p->name));
	if (!room || id >= p->name_room)
		return PICTURE_NO_NAME;
	p->name = room;
	if (!p->name[id])
		p->name[id] = arena_strndup(p->arena, text, strlen(text));
	return p->name[id] ? (uint32_t)id : PICTURE_NO_NAME;
}

static int
node_add(struct picture *p, uint32_t parent, uint32_t name, uint32_t depth)
{
	void *room = arena_grown(p->arena, p->nodes, &p->room, p->count, sizeof(*p->nodes));

	if (!room || p->count == STAYS)
		return -ENOMEM;
	p->nodes = room;
	p->nodes[p->count++] = (struct picture_node){ .parent = parent, .name = name, .depth = depth };
	return 0;
}

int
picture_begin(struct picture *p, struct arena *a)
{
	uint32_t name;

	*p = (struct picture){ .arena = a };
	strings_init(&p->names, a);
	table_init(&p->children, a->budget);
	name = picture_name(p, "all");
	return name == PICTURE_NO_NAME ? -ENOMEM : node_add(p, PICTURE_ROOT, name, 0);
}

/* 0: there is no room for it.  One that is there is found without memory. */
static uint32_t
child_of(struct picture *p, uint32_t parent, uint32_t name)
{
	uint64_t key = (uint64_t)parent << 32 | name;
	uint32_t child = (uint32_t)table_get(&p->children, key);

	if (child || name == PICTURE_NO_NAME || node_add(p, parent, name, p->nodes[parent].depth + 1) < 0)
		return child;
	child = (uint32_t)p->count - 1;
	if (table_put(&p->children, key, child) < 0) {
		p->count--;
		return 0;
	}
	p->nodes[child].next = p->nodes[parent].first;
	p->nodes[parent].first = child;
	return child;
}

static bool
is_deepest(const struct picture *p, uint32_t at)
{
	return at & STAYS || p->nodes[at].depth == PICTURE_DEPTH; /* what lies deeper is its own */
}

void
picture_down(struct picture *p, uint32_t *at, const char *name)
{
	if (!is_deepest(p, *at))
		picture_down_to(p, at, picture_name(p, name));
}

void
picture_down_to(struct picture *p, uint32_t *at, uint32_t name)
{
	uint32_t child;

	if (is_deepest(p, *at))
		return;
	child = child_of(p, *at, name);
	p->full |= !child;
	*at = child ? child : *at | STAYS;
}

void
picture_add(struct picture *p, uint32_t at, int64_t value)
{
	at &= ~STAYS;
	p->nodes[at].self = (int64_t)((uint64_t)p->nodes[at].self + (uint64_t)value);
	for (;; at = p->nodes[at].parent) {
		p->nodes[at].value = (int64_t)((uint64_t)p->nodes[at].value + (uint64_t)value);
		p->nodes[at].amount += lines_amount(value);
		if (at == PICTURE_ROOT)
			return;
	}
}

/* ---- places ---- */

static bool
before(const void *arg, uint32_t a, uint32_t b)
{
	const struct picture *p = arg;

	if (p->nodes[a].amount != p->nodes[b].amount)
		return p->nodes[a].amount > p->nodes[b].amount;
	return strcmp(p->name[p->nodes[a].name], p->name[p->nodes[b].name]) < 0;
}

/* The widest child first; of nodes that are drawn how deep the deepest is. */
static int
place(struct picture *p, uint32_t *ret_depth)
{
	uint32_t *children;

	table_release(&p->children); /* nothing comes any more: its room is this array's */
	children = arena_array(p->arena, p->count, sizeof(*children));
	if (!children)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->count; i++) {
		uint64_t x = p->nodes[i].x;
		size_t   n = 0;

		if (p->nodes[i].amount >= p->nodes[PICTURE_ROOT].amount / LEAST && p->nodes[i].depth > *ret_depth)
			*ret_depth = p->nodes[i].depth;
		for (uint32_t c = p->nodes[i].first; c; c = p->nodes[c].next)
			children[n++] = c;
		order_sort(children, n, before, p);
		for (size_t k = 0; k < n; k++) {
			p->nodes[children[k]].x = x;
			x += p->nodes[children[k]].amount;
		}
	}
	return 0;
}

/* ---- writing ---- */

/* Of the letters of UTF-8 XML has all but these two, U+FFFE and U+FFFF. */
static bool
is_no_letter(const char *text)
{
	return !strncmp(text, "\xef\xbf\xbe", 3) || !strncmp(text, "\xef\xbf\xbf", 3);
}

/* At most so many letters, and ".." for what is cut. */
static void
put_text(struct lines *l, const char *text, size_t letters)
{
	bool   clean = utf8_is_clean(text, strlen(text));
	size_t n = 0;

	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;
		bool          begins = (c & 0xc0) != 0x80 || !clean;

		if (begins && n++ == letters) {
			lines_print(l, "..");
			return;
		}
		if (clean && is_no_letter(text)) {
			lines_print(l, "?");
			text += 2;
			continue;
		}
		switch (c) {
		case '<': lines_print(l, "&lt;"); break;
		case '>': lines_print(l, "&gt;"); break;
		case '&': lines_print(l, "&amp;"); break;
		case '"': lines_print(l, "&quot;"); break;
		default:
			if (c < ' ' || c == 0x7f || (c > 0x7f && !clean))
				lines_print(l, "?");
			else
				lines_bytes(l, text, 1);
		}
	}
}

/* Hundredths of a pixel of so much of the whole. */
static unsigned
wide(uint64_t amount, uint64_t whole)
{
	return (unsigned)((double)amount / (double)whole * (WIDTH - 2 * EDGE) * 100);
}

static void
put_number(struct lines *l, const char *name, unsigned hundredths)
{
	lines_print(l, " %s=\"%u.%02u\"", name, hundredths / 100, hundredths % 100);
}

static void
put_amount(struct lines *l, const char *word, int64_t value, uint64_t whole, const char *unit)
{
	char number[LINES_NUMBER_MAX], share[LINES_NUMBER_MAX];

	lines_value(number, value, unit);
	lines_percent(share, value, whole);
	lines_print(l, "%s%s (%s)", word, number, share);
}

static void
put_node(const struct picture *p, const struct picture_node *n, const char *unit, struct lines *l)
{
	uint64_t    whole = p->nodes[PICTURE_ROOT].amount;
	unsigned    x = EDGE * 100 + wide(n->x, whole), width = wide(n->amount, whole), y = HEAD + ROW * n->depth;
	const char *name = p->name[n->name];
	uint64_t    color = table_hash(0, name, strlen(name)) % COLORS;

	lines_print(l, "<g><title>");
	put_text(l, name, 1000);
	put_amount(l, ": ", n->value, whole, unit);
	if (n->self)
		put_amount(l, ", itself ", n->self, whole, unit);
	lines_print(l, "</title><rect");
	put_number(l, "x", x);
	put_number(l, "width", width > 200 ? width - 50 : width); /* neighbours are told apart */
	lines_print(l, " y=\"%u\" height=\"%u\" fill=\"%s\"/>", y, ROW - 1,
		n == p->nodes ? "#d5d8da" : n->value < 0 ? cold[color] : warm[color]);
	if (width > 3 * LETTER * 10 + 600) {
		lines_print(l, "<text");
		put_number(l, "x", x + 300);
		lines_print(l, " y=\"%u\">", y + ROW - 6);
		put_text(l, name, (width - 600) / (LETTER * 10) - 1);
		lines_print(l, "</text>");
	}
	lines_print(l, "</g>\n");
}

int
picture_write(struct picture *p, const char *title, const char *unit, struct lines *l)
{
	uint32_t depth = 0;
	uint64_t whole = p->nodes[PICTURE_ROOT].amount;
	int      r = place(p, &depth);

	if (r < 0)
		return r;
	lines_print(l, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %u\" width=\"%d\" height=\"%u\" "
		"font-family=\"ui-monospace, monospace\" font-size=\"11\">\n", WIDTH, HEAD + ROW * (depth + 1) + EDGE, WIDTH,
		HEAD + ROW * (depth + 1) + EDGE);
	lines_print(l, "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n<text x=\"%d\" y=\"20\" font-size=\"15\">", EDGE);
	put_text(l, title, 120);
	lines_print(l, "</text>\n<text x=\"%d\" y=\"37\" fill=\"#5a666d\">", EDGE);
	put_amount(l, "", (int64_t)whole, whole, unit);
	lines_print(l, "; callers above, what takes less than 0.1 %% is left out%s</text>\n",
		p->full ? ", calls that there was no room for are counted in their callers" :
		depth == PICTURE_DEPTH ? ", calls below the last row are counted there" : "");
	for (size_t i = 0; i < p->count && whole; i++)
		if (p->nodes[i].amount && p->nodes[i].amount >= whole / LEAST)
			put_node(p, &p->nodes[i], unit, l);
	if (!whole)
		lines_print(l, "<text x=\"%d\" y=\"%d\">nothing was measured</text>\n", EDGE, HEAD + ROW - 6);
	lines_print(l, "</svg>\n");
	return 0;
}

void
picture_end(struct picture *p)
{
	strings_release(&p->names);
	table_release(&p->children);
}
