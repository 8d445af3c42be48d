/*
 * unserved.h - a process that serves no profiles: what can be told of it from outside, in the forms that a server has.
 *
 *   source   components/componentctl/target/unserved.c
 */
#ifndef COMPONENTCTL_UNSERVED_H
#define COMPONENTCTL_UNSERVED_H

#include "fetch.h"

/* As outside_begin(), with as many descriptors as this process may have; once, for a program looks at one process until
 * it ends.  says_so: on stderr. */
int unserved_begin(pid_t pid, bool says_so, struct component_error *err);
/*
 * unserved_profile - as fetch() of a profile
 *
 *   kind     "profile" is all there is from outside
 *   returns  0; -EINVAL: another kind; or another negative errno; with a sentence
 */
int unserved_profile(pid_t pid, const char *kind, int64_t seconds, bool shows_bar, struct fetched *ret,
	struct component_error *err);
/* -EINVAL: there is no such thing from outside, and the sentence names what is. */
int unserved_refuse(pid_t pid, const char *what, struct component_error *err);
/* As fetch() of "goroutine?debug=2". */
int unserved_dump(pid_t pid, struct fetched *ret, struct component_error *err);

#endif
