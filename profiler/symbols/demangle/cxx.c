/*
 * cxx.c - reads a C++ name as the Itanium C++ ABI has it, into a tree.
 *
 *     _ZN3foo3barIiEEvT_ ──▶ FUNCTION(TEMPLATE(NESTED(foo, bar), int), (int)) ──▶ text
 *
 * The grammar is that of the ABI, chapter 5.1; each function reads one production of it.
 * What T_ means depends on the function whose type it stands in: a reference back to a T_
 * of another function means an argument of this one.  So it is looked up when it is written.
 *
 * What a stranger would get wrong: everything here may be crafted.  `bad` is set once and
 * stops all readers; nodes, references and depth are bounded; a tree has nodes with many
 * parents, so that whoever walks it counts steps.  What is unknown (concepts, modules,
 * vendors' expressions) makes the whole name unknown: it stays as the linker has it.
 *
 * Tests: tests/symbols/test_demangle.c
 */
#include <config.h>

#include "cxx.h"

static void
skip_offset(struct demangle_room *r, char kind)
{
	cxx_take(r, "n");
	cxx_read_decimal(r);
	cxx_want(r, "_");
	if (kind == 'v') {
		cxx_take(r, "n");
		cxx_read_decimal(r);
		cxx_want(r, "_");
	}
}

static unsigned
read_thunk(struct demangle_room *r)
{
	static const struct {
		char        code[3];
		const char *text;
	} thunks[] = { { "Th", "non-virtual thunk to " }, { "Tv", "virtual thunk to " },
		       { "Tc", "covariant return thunk to " } };

	for (size_t i = 0; i < sizeof(thunks) / sizeof(*thunks); i++) {
		if (!cxx_take(r, thunks[i].code))
			continue;
		for (int k = 0; i == 2 && k < 2 && r->at < r->end; k++) {
			char kind = *r->at++;

			skip_offset(r, kind);
		}
		if (i < 2)
			skip_offset(r, thunks[i].code[1]);
		return cxx_node_string(r, NODE_SPECIAL, thunks[i].text, cxx_read_encoding(r, false));
	}
	return cxx_fail(r);
}

static unsigned
read_special(struct demangle_room *r)
{
	static const struct {
		char        code[4];
		unsigned  (*read)(struct demangle_room *);
		const char *text;
	} specials[] = {
		{ "TV", cxx_read_type, "vtable for " }, { "TT", cxx_read_type, "VTT for " },
		{ "TI", cxx_read_type, "typeinfo for " }, { "TS", cxx_read_type, "typeinfo name for " },
		{ "TA", cxx_read_argument, "template parameter object for " },
		{ "TH", NULL, "TLS init function for " }, { "TW", NULL, "TLS wrapper function for " },
		{ "GV", NULL, "guard variable for " },
	};
	unsigned n, derived;

	for (size_t i = 0; i < sizeof(specials) / sizeof(*specials); i++)
		if (cxx_take(r, specials[i].code)) {
			n = specials[i].read ? specials[i].read(r) : cxx_read_name(r, &(struct cxx_state){ .bits = 0 });
			return cxx_node_string(r, NODE_SPECIAL, specials[i].text, n);
		}
	if (cxx_take(r, "GTt"))
		return cxx_node_string(r, NODE_SPECIAL, "transaction clone for ", cxx_read_encoding(r, false));
	if (cxx_take(r, "GR")) {
		n = cxx_read_name(r, &(struct cxx_state){ .bits = 0 });
		n = cxx_node_string(r, NODE_SPECIAL, "reference temporary #", n);
		if (n)
			r->nodes[n].number = (uint32_t)(r->at < r->end ? cxx_read_sequence(r, 36) : 0) + 1;
		return n;
	}
	if (!cxx_take(r, "TC"))
		return read_thunk(r);
	derived = cxx_read_type(r);
	cxx_read_decimal(r);
	cxx_want(r, "_");
	n = cxx_node_string(r, NODE_SPECIAL, "construction vtable for ", cxx_read_type(r));
	if (n)
		r->nodes[n].b = (uint16_t)derived;
	return n;
}

static bool
at_end(const struct demangle_room *r)
{
	return r->at == r->end || *r->at == 'E';
}

unsigned
cxx_read_encoding(struct demangle_room *r, bool top)
{
	struct cxx_state state = { .bits = 0 };
	uint16_t          before = r->params;
	unsigned          n, result = 0, params, type;
	bool              in_conversion = r->in_conversion;

	if (!cxx_enter(r))
		return 0;
	if (cxx_peek(r, 0) == 'T' || (cxx_peek(r, 0) == 'G' && cxx_peek(r, 1) != '\0'))
		return cxx_leave(r, read_special(r));
	r->params = 0;
	r->in_conversion = false;
	n = cxx_read_name(r, &state);
	if (!at_end(r) && !r->bad && !(top && r->is_short && r->depth == 1)) {
		if (state.is_template && !state.no_return)
			result = cxx_read_type(r);
		params = 0;
		if (!(cxx_peek(r, 0) == 'v' && (r->at + 1 == r->end || r->at[1] == 'E'))) {
			unsigned last = 0;

			while (!at_end(r) && !r->bad) {
				unsigned item = cxx_node(r, NODE_LIST, cxx_read_type(r), 0);

				if (last)
					r->nodes[last].b = (uint16_t)item;
				else
					params = item;
				last = item;
			}
		} else
			r->at++;
		type = cxx_node(r, NODE_SIGNATURE, top ? result : 0, params);
		r->nodes[type].bits = state.bits;
		n = cxx_node(r, NODE_FUNCTION, n, type);
		r->nodes[n].c = r->params;
	}
	r->in_conversion = in_conversion;
	if (before)
		r->params = before;
	return cxx_leave(r, n);
}

bool
demangle_cxx(struct demangle_room *r, const char *name, const char *end)
{
	unsigned n;

	r->node_count = 1;
	r->nodes[0] = (struct demangle_node){ .kind = NODE_NONE };
	r->sub_count = r->depth = r->again = 0;
	r->params = 0;
	r->in_conversion = r->bad = false;
	r->at = name;
	r->end = end;
	cxx_want(r, "_Z");
	n = cxx_read_encoding(r, true);
	if (r->bad || !n || (r->at != r->end && !r->is_short))
		return false;
	demangle_out_start(&r->out);
	demangle_cxx_print(r, n);
	return !r->out.bad && r->out.size > 0;
}
