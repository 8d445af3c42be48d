/*
 * cxx_print.h - what the writers of a C++ name's tree share.
 */
#ifndef SYMBOLS_DEMANGLE_CXX_PRINT_H
#define SYMBOLS_DEMANGLE_CXX_PRINT_H

#include <string.h>

#include "room.h"

typedef const struct demangle_node node;

void     cxx_put(struct demangle_room *r, const char *text);
void     cxx_put_text(struct demangle_room *r, node *n);
/* All of a node. */
void     cxx_print(struct demangle_room *r, unsigned n);
void     cxx_print_list(struct demangle_room *r, unsigned list);
void     cxx_print_around(struct demangle_room *r, const char *before, unsigned n, const char *after);
/* What T_ stands for; of a pack the one that is its turn while it is expanded. */
unsigned cxx_real(struct demangle_room *r, unsigned n);
unsigned cxx_list_size(struct demangle_room *r, unsigned list);
/* The first pack that is referred to below n; 0: there is none. */
unsigned cxx_find_pack(struct demangle_room *r, unsigned n);

/* cxx_print_expression.c: one that is no name and no type. */
void cxx_left_expression(struct demangle_room *r, node *at);

#endif
