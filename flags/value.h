/*
 * value.h - text to value and back, for every type of row.
 */
#ifndef FLAGS_VALUE_H
#define FLAGS_VALUE_H

#include <component/flags.h>

#include "text.h"

/* What one variable can hold.  memory is the block behind string and list, or NULL
 * where they are borrowed (defaults). */
struct flag_value {
	union { /* first */
		bool                  boolean;
		int64_t               integer;
		double                number;
		uint64_t              size;
		const char           *string;
		struct component_list list;
		int                   choice;
	};
	void *memory;
};

/*
 * flag_value_parse - the whole text or nothing
 *
 * Returns 0, -EINVAL, -ERANGE or -ENOMEM; why then gets what is wrong and what to
 * write instead, to be put after the value: "not a whole number; write ...".
 * text is not empty.
 */
int  flag_value_parse(const struct component_flag *row, const char *text, struct flag_value *ret, struct text *why);
/* The range of the row. */
int  flag_value_check(const struct component_flag *row, const struct flag_value *v, struct text *why);
/* Text that flag_value_parse() would read as the same value. */
void flag_value_format(const struct component_flag *row, const struct flag_value *v, struct text *t);
bool flag_value_equal(const struct component_flag *row, const struct flag_value *a, const struct flag_value *b);
/* From and to the row's variable; nothing is copied. */
void flag_value_load(const struct component_flag *row, struct flag_value *ret);
void flag_value_store(const struct component_flag *row, const struct flag_value *v);
int  flag_value_copy(const struct component_flag *row, const struct flag_value *from, struct flag_value *ret);
void flag_value_release(struct flag_value *v);

/* A list of the strings of a, then those of b, if there is one, and a NULL that is not counted; -ENOMEM. */
int  flag_value_join(const struct component_list *a, const struct component_list *b, struct flag_value *ret);

/* "BOOL", "DURATION": the word after '=' where the row has none. */
const char *flag_value_argument(const struct component_flag *row);
/* "bool", "duration": as --dump-options=json says it. */
const char *flag_value_type(const struct component_flag *row);

#endif
