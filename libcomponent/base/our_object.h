/*
 * our_object.h - the object that the library's code is in.
 */
#ifndef BASE_OUR_OBJECT_H
#define BASE_OUR_OBJECT_H

/* From now on no dlclose() unloads it.  Any thread; takes the loader's lock, the first time. */
void our_object_keep(void);

#endif
