/*
 * records.h - what has a record on this machine, oldest first.
 *
 *   source   components/componentctl/processes/records.c
 */
#ifndef COMPONENTCTL_RECORDS_H
#define COMPONENTCTL_RECORDS_H

#include <stdbool.h>
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
/* Is there anything that answers? */
bool records_is_on(const struct record *r);
/* The same process's record as it is now: -ESRCH, it has ended, or has none any more. */
int  records_again(const struct record *r, struct record *ret);
/* A descriptor of the process whose record it is, which becomes readable when that ends; -1: the kernel has none. */
int  records_hold(const struct record *r);
/* To the process whose record it is, and to no later one of its number.  -ESRCH: it has ended. */
int  records_signal(const struct record *r, int number);
/* The port that answers; 0: it is a unix socket, or off. */
int64_t records_port(const struct record *r);
/* The words of its command line with blanks between them; what no terminal should get is '?'. */
void records_command(const struct record *r, char buf[RECORDS_COMMAND_MAX]);

#endif
