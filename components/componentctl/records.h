/*
 * records.h - what has a record on this machine, oldest first.
 *
 *   source   components/componentctl/records.c
 */
#ifndef COMPONENTCTL_RECORDS_H
#define COMPONENTCTL_RECORDS_H

#include <stddef.h>
#include <stdint.h>

#include "record.h"

#define RECORDS_COMMAND_MAX 4096 /* bytes of a command line that are looked at */

struct records {
	struct record *items;
	size_t         count, room;
};

/* 0 or -ENOMEM; to be released either way. */
int  records_read(struct records *ret);
void records_release(struct records *r);
/* The port that answers; 0: it is a unix socket. */
int64_t records_port(const struct record *r);
/* The words of its command line with blanks between them; what no terminal should get is '?'. */
void records_command(const struct record *r, char buf[RECORDS_COMMAND_MAX]);

#endif
