/*
 * text_stack.h - a profile in the text forms of Go: a head, then each stack with its numbers.
 */
#ifndef ENCODE_TEXT_STACK_H
#define ENCODE_TEXT_STACK_H

#include <stdint.h>

#include "lines.h"
#include "order.h"
#include "profile.h"

/* What a form has of its own; all get the same argument. */
struct text_form {
	order_before_fn *before; /* of two samples, by their places in the profile */
	void (*head)(struct lines *l, const void *arg);
	void (*numbers)(struct lines *l, const void *arg, const struct profile_sample *sample);
	void (*tail)(struct lines *l, const void *arg); /* NULL: none */
};

/* 0; -EINVAL: too many samples; or as encode.h says. */
int text_stacks(const struct profile *p, struct symbols *s, const struct text_form *form, const void *form_arg,
	encode_write_fn *write, void *arg);

#endif
