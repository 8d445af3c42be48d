/*
 * room.h - what the files that unmangle names share: a name's text, written piece
 * by piece, and the tree of a C++ name.
 */
#ifndef SYMBOLS_DEMANGLE_PARTS_H
#define SYMBOLS_DEMANGLE_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DEMANGLE_RESULT_MAX ((size_t)4096) /* bytes of the readable name; the rest is cut */
#define DEMANGLE_NODES_MAX  1024           /* of 255,000 names of a distribution none needs more than 170 */
#define DEMANGLE_SUBS_MAX   256            /* pieces that a name may refer back to; those need 64 */
#define DEMANGLE_DEPTH_MAX  128            /* readers, and writers, within each other; those need fewer than 96 */
#define DEMANGLE_STEPS_MAX  100000         /* pieces written or left out; those need 2,000 */

/* The readable name as it grows; what does not fit is left out. */
struct demangle_out {
	char     text[DEMANGLE_RESULT_MAX + 1];
	size_t   size;
	unsigned steps, depth;
	bool     bad; /* too deep, too long a way, or no name: nothing of it is shown */
};

enum demangle_kind {
	NODE_NONE,
	NODE_TEXT,       /* text */
	NODE_STD,        /* text, its constructor's name in other, its whole self in whole */
	NODE_NESTED,     /* a::b */
	NODE_LOCAL,      /* a::b, a is a function's encoding */
	NODE_TEMPLATE,   /* a<b> */
	NODE_LIST,       /* a, then the list b */
	NODE_PACK,       /* the list a */
	NODE_EXPANSION,  /* a, for each in the packs in it */
	NODE_FUNCTION,   /* name a of type b; the list c of its template's arguments */
	NODE_SIGNATURE,  /* returns a (or 0), takes the list b, qualified by bits */
	NODE_POINTER,    /* to a; text "*", "&" or "&&" */
	NODE_QUALIFIED,  /* a, qualified by bits */
	NODE_SUFFIXED,   /* a, then " " and b */
	NODE_ARRAY,      /* of a, b long (or 0) */
	NODE_VECTOR,     /* of a, b long */
	NODE_MEMBER,     /* pointer to a member b of a */
	NODE_SPECIAL,    /* text, then a, then "-in-" b if there is one */
	NODE_CONSTRUCTOR,/* of a; text "~" of a destructor */
	NODE_CONVERSION, /* operator a */
	NODE_OPERATOR,   /* text */
	NODE_LAMBDA,     /* takes the list b; number */
	NODE_NUMBERED,   /* {text#number} */
	NODE_AUTO,       /* text, then number */
	NODE_TAGGED,     /* a[abi:text] */
	NODE_BINDING,    /* [the list a] */
	NODE_LITERAL,    /* of type a, text digits */
	NODE_UNARY,      /* text a */
	NODE_BINARY,     /* a text b */
	NODE_TERNARY,    /* a ? b : c */
	NODE_CALL,       /* a(the list b) */
	NODE_CAST,       /* text<a>(b); text "": (a)(b) */
	NODE_BRACES,     /* a{the list b} */
	NODE_COUNT,      /* sizeof...(a) */
	NODE_WRAPPED,    /* text a ) */
	NODE_TYPED,      /* text (a), a is a type */
	NODE_FOLD,       /* (a text b), or (a text c text b) */
	NODE_PARAM,      /* the template's argument of that number */
};

enum { QUAL_CONST = 1, QUAL_VOLATILE = 2, QUAL_RESTRICT = 4, QUAL_LREF = 8, QUAL_RREF = 16, QUAL_NOEXCEPT = 32 };

struct demangle_node {
	uint8_t     kind, bits;
	uint16_t    a, b, c;
	uint32_t    size, number; /* size: of text */
	const char *text, *other, *whole;
};

/* Room for one name at a time; in an arena, for it is too much for a small stack. */
struct demangle_room {
	struct demangle_out  out;
	struct demangle_node nodes[DEMANGLE_NODES_MAX]; /* 0: none */
	unsigned             node_count;
	uint16_t             subs[DEMANGLE_SUBS_MAX];
	unsigned             sub_count;
	const char          *at, *end;  /* what is left of the name */
	unsigned             depth, again; /* again: what was read twice */
	uint16_t             params;    /* what T_ means: a list; also while it is written */
	bool                 in_conversion; /* arguments behind T_ are the operator's */
	bool                 bad;
	unsigned             pack_index; /* while an expansion is written */
	bool                 packing;
	bool                 in_lambda; /* while what it takes is written: T_ is auto:1 */
	bool                 is_short;  /* see demangle_short() */
};

/* ---- out.c ---- */

void demangle_out_start(struct demangle_out *o);
void demangle_put(struct demangle_out *o, const char *text, size_t size);
void demangle_put_string(struct demangle_out *o, const char *text);
void demangle_put_number(struct demangle_out *o, uint64_t n);
/* As UTF-8; what is no character makes the name bad. */
void demangle_put_character(struct demangle_out *o, uint32_t c);
char demangle_last(const struct demangle_out *o);
#define DEMANGLE_DIGITS 62
/* 0 to 9, a to z, A to Z; DEMANGLE_DIGITS: none of them. */
unsigned demangle_digit(char c);
/* Each that calls itself, before it does anything: false, nothing more is to be done.  Then
 * demangle_leave(). */
bool demangle_enter(struct demangle_out *o);
void demangle_leave(struct demangle_out *o);

/* ---- each writes room->out from [name, end); false: it is no such name, or unreasonable ---- */

bool demangle_cxx(struct demangle_room *room, const char *name, const char *end);
bool demangle_rust(struct demangle_room *room, const char *name, const char *end);
bool demangle_rust_legacy(struct demangle_room *room, const char *name, const char *end);

/* ---- punycode.c ---- */

#define DEMANGLE_PUNYCODE_MAX 128 /* characters of an identifier that is not ASCII */
/* How many characters; 0: it is no such text. */
size_t demangle_punycode(const char *text, size_t size, uint32_t chars[DEMANGLE_PUNYCODE_MAX]);

/* ---- cxx_print.c ---- */

void demangle_cxx_print(struct demangle_room *room, unsigned node);

#endif
