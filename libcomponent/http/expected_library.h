/*
 * expected_library.h - is a function that we are linked to the one we were built for?
 *
 * Symbols of a process are one name space: a daemon that carries an old libevent
 * of its own, or a plugin that defines deflate(), may have taken over the ones we
 * call.  Calling those would corrupt memory, so it is found out first.
 */
#ifndef HTTP_EXPECTED_LIBRARY_H
#define HTTP_EXPECTED_LIBRARY_H

#include <component/error.h>

/*
 * expected_library_check - is the address in the library it should be in
 *
 *   address  of the function, as our own code sees it
 *   library  how the file name of its library starts: "libz."; NULL at the end
 *   returns  0, also when it was linked into the very object we are in;
 *            -ENOTSUP with the object's name in err
 */
int expected_library_check(const void *address, const char *name, const char *const *library, struct component_error *err);

/* The functions and the version of libevent. */
int expected_library_libevent(struct component_error *err);

#endif
