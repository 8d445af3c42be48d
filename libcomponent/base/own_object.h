/*
 * own_object.h - the object that the library's code is in.
 */
#ifndef BASE_OWN_OBJECT_H
#define BASE_OWN_OBJECT_H

/* From now on no dlclose() unloads it.  Any thread; takes the loader's lock, the first time. */
void own_object_keep(void);

#endif
