/*
 * build_id.h - what tells an ELF object from all others.
 */
#ifndef MODEL_BUILD_ID_H
#define MODEL_BUILD_ID_H

#include <stddef.h>

#define BUILD_ID_MAX 129 /* 64 bytes in hex and a NUL; 20 bytes are usual */

/* The build id among an object's notes, in lower-case hex.  align: what they are padded to, 4 or 8.
 * Returns where its bytes begin in notes; 0: there is none, and hex is as it was. */
size_t build_id_find(const unsigned char *notes, size_t size, size_t align, char hex[BUILD_ID_MAX]);

#endif
