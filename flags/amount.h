/*
 * amount.h - whole numbers with units: "512KiB", "1h30m".
 *
 * The parsers have the form of value.c's table: 0, -EINVAL, -ERANGE, and why.
 */
#ifndef FLAGS_AMOUNT_H
#define FLAGS_AMOUNT_H

#include "value.h"

int amount_parse_size(const struct component_flag *row, const char *text, struct flag_value *ret, struct text *why);
int amount_parse_duration(const struct component_flag *row, const char *text, struct flag_value *ret, struct text *why);
/* Text that is read as the same value, in the largest unit that it is whole in, or unit after unit. */
void amount_format_size(uint64_t n, struct text *t);
void amount_format_duration(int64_t ns, struct text *t);
/* Digits alone, moved over.  -EINVAL: none, or a leading zero; -ERANGE. */
int amount_scan_digits(const char **p, uint64_t *ret);

#endif
