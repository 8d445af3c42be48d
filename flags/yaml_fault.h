/*
 * yaml_fault.h - what is wrong with a text that libyaml refuses, as people say it.
 *
 *   source   flags/yaml_fault.c
 */
#ifndef FLAGS_YAML_FAULT_H
#define FLAGS_YAML_FAULT_H

#include <stddef.h>

#include <yaml.h>

#include "text.h"

/* Adds the reason for which p, which has read bytes, has stopped; returns its line, from 1. */
size_t yaml_fault(const yaml_parser_t *p, const struct text *bytes, struct text *why);

#endif
