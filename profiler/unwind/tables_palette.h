/*
 * tables_palette.h - every distinct set of unwind rules once, and its number.
 *
 * Rules are added by the builder alone, under the lock of tables.c.
 */
#ifndef UNWIND_TABLES_PALETTE_H
#define UNWIND_TABLES_PALETTE_H

#include <stddef.h>
#include <stdint.h>

#include "cfi.h"

/* Before each build. */
int      tables_palette_start(void);
void     tables_palette_drop(void);
/* The code of rules that are not plain (tables_lookup.h); 0 when all 65,535 rows are taken. */
uint32_t tables_palette_add(const struct cfi_row *row, const struct cfi_section *frames);
size_t   tables_palette_count(void);
size_t   tables_palette_bytes(void);
/* Signal-safe, for numbers that stand in some object's rules. */
const struct cfi_row *tables_palette_row(uint16_t rule);

#endif
