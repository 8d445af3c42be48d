/*
 * export.h - what the other public headers share: visibility, C++ linkage and
 * the attribute of printf-like functions.  Not to be included for itself.
 */
#ifndef COMPONENT_EXPORT_H
#define COMPONENT_EXPORT_H

#define COMPONENT_API __attribute__((visibility("default")))
#define COMPONENT_PRINTF(at, first) __attribute__((__format__(__printf__, at, first)))

#ifdef __cplusplus
#define COMPONENT_BEGIN extern "C" {
#define COMPONENT_END }
#else
#define COMPONENT_BEGIN
#define COMPONENT_END
#endif

#endif
