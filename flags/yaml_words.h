/*
 * yaml_words.h - a sentence for what libyaml says about a config file.
 */
#ifndef FLAGS_YAML_WORDS_H
#define FLAGS_YAML_WORDS_H

#include <stddef.h>

#include "text.h"

/* problem and context: libyaml's, either may be NULL; text: the file's bytes; at: where in them the fault is. */
void yaml_words_add(struct text *why, const char *problem, const char *context, const char *text, size_t size, size_t at);

#endif
