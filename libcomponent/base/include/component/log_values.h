/*
 * log_values.h - what <component/log.h> makes of the arguments of component_log(): each is
 * told by its type, and all are counted, so that no wrong call can read what is not there.
 *
 * In C _Generic tells the types, in C++ overloads do.  Not to be included for itself.
 */
#ifndef COMPONENT_LOG_VALUES_H
#define COMPONENT_LOG_VALUES_H

#include <stdbool.h>
#include <stddef.h>

#include <component/each.h>
#include <component/export.h>

enum component_log_type {
	COMPONENT_LOG_TEXT,
	COMPONENT_LOG_NUMBER,
	COMPONENT_LOG_COUNT, /* without a sign */
	COMPONENT_LOG_REAL,
	COMPONENT_LOG_BOOL,
	COMPONENT_LOG_POINTER,
};

/* One argument: a key, a value, or both.  Texts are borrowed for the call. */
struct component_log_value {
	bool                    has_key;
	enum component_log_type type;
	const char             *key;
	union {
		const char        *text;
		const void        *pointer;
		long long          number; /* bool: 0 or 1 */
		unsigned long long count;
		double             real;
	} as;
};

#ifdef __cplusplus
#define COMPONENT_LOG_INLINE_ inline
extern "C++" { /* whoever includes this may do so within extern "C" */
#else
#define COMPONENT_LOG_INLINE_ static inline
#endif

COMPONENT_LOG_INLINE_ struct component_log_value
component_log_of_text(const char *a)
{
	struct component_log_value v = { false, COMPONENT_LOG_TEXT, NULL, { a } };

	return v;
}

COMPONENT_LOG_INLINE_ struct component_log_value
component_log_of_pointer(const void *a)
{
	struct component_log_value v = { false, COMPONENT_LOG_POINTER, NULL, { NULL } };

	v.as.pointer = a;
	return v;
}

COMPONENT_LOG_INLINE_ struct component_log_value
component_log_of_bool(bool a)
{
	struct component_log_value v = { false, COMPONENT_LOG_BOOL, NULL, { NULL } };

	v.as.number = a;
	return v;
}

COMPONENT_LOG_INLINE_ struct component_log_value
component_log_of_number(long long a)
{
	struct component_log_value v = { false, COMPONENT_LOG_NUMBER, NULL, { NULL } };

	v.as.number = a;
	return v;
}

COMPONENT_LOG_INLINE_ struct component_log_value
component_log_of_count(unsigned long long a)
{
	struct component_log_value v = { false, COMPONENT_LOG_COUNT, NULL, { NULL } };

	v.as.count = a;
	return v;
}

COMPONENT_LOG_INLINE_ struct component_log_value
component_log_of_real(double a)
{
	struct component_log_value v = { false, COMPONENT_LOG_REAL, NULL, { NULL } };

	v.as.real = a;
	return v;
}

COMPONENT_LOG_INLINE_ struct component_log_value
component_log_pair(const char *key, struct component_log_value value)
{
	value.has_key = true;
	value.key = key;
	return value;
}

#ifdef __cplusplus
inline struct component_log_value
component_log_of(const char *a)
{
	return component_log_of_text(a);
}

inline struct component_log_value
component_log_of(const unsigned char *a)
{
	return component_log_of_text(reinterpret_cast<const char *>(a));
}

inline struct component_log_value
component_log_of(const signed char *a)
{
	return component_log_of_text(reinterpret_cast<const char *>(a));
}

inline struct component_log_value
component_log_of(const void *a)
{
	return component_log_of_pointer(a);
}

inline struct component_log_value
component_log_of(bool a)
{
	return component_log_of_bool(a);
}

inline struct component_log_value
component_log_of(int a)
{
	return component_log_of_number(a);
}

inline struct component_log_value
component_log_of(long a)
{
	return component_log_of_number(a);
}

inline struct component_log_value
component_log_of(long long a)
{
	return component_log_of_number(a);
}

inline struct component_log_value
component_log_of(unsigned a)
{
	return component_log_of_count(a);
}

inline struct component_log_value
component_log_of(unsigned long a)
{
	return component_log_of_count(a);
}

inline struct component_log_value
component_log_of(unsigned long long a)
{
	return component_log_of_count(a);
}

inline struct component_log_value
component_log_of(double a)
{
	return component_log_of_real(a);
}

inline struct component_log_value
component_log_of(long double a)
{
	return component_log_of_real(static_cast<double>(a));
}

inline struct component_log_value
component_log_of(decltype(nullptr))
{
	return component_log_of_text(nullptr);
}

inline struct component_log_value
component_log_of(const struct component_log_value &a)
{
	return a;
}

}
#define COMPONENT_LOG_OF(a) component_log_of(a)
#else
static inline struct component_log_value
component_log_of_bytes(const void *a) /* of char, whatever its sign */
{
	return component_log_of_text((const char *)a);
}

static inline struct component_log_value
component_log_of_null(const void *a)
{
	return a ? component_log_of_pointer(a) : component_log_of_text(NULL);
}

static inline struct component_log_value
component_log_of_long_real(long double a)
{
	return component_log_of_real((double)a);
}

static inline struct component_log_value
component_log_of_value(struct component_log_value a)
{
	return a;
}

#define COMPONENT_LOG_OF(a) \
	_Generic((a), \
		char *: component_log_of_text, \
		const char *: component_log_of_text, \
		unsigned char *: component_log_of_bytes, \
		const unsigned char *: component_log_of_bytes, \
		signed char *: component_log_of_bytes, \
		const signed char *: component_log_of_bytes, \
		void *: component_log_of_null, \
		const void *: component_log_of_null, \
		bool: component_log_of_bool, \
		char: component_log_of_number, \
		signed char: component_log_of_number, \
		short: component_log_of_number, \
		int: component_log_of_number, \
		long: component_log_of_number, \
		long long: component_log_of_number, \
		unsigned char: component_log_of_count, \
		unsigned short: component_log_of_count, \
		unsigned: component_log_of_count, \
		unsigned long: component_log_of_count, \
		unsigned long long: component_log_of_count, \
		float: component_log_of_real, \
		double: component_log_of_real, \
		long double: component_log_of_long_real, \
		struct component_log_value: component_log_of_value, \
		default: component_log_of_pointer)(a)
#endif

#undef COMPONENT_LOG_INLINE_

#endif
