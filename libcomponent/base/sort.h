/*
 * sort.h - sorts an array in place, without malloc(), which glibc's qsort() may call.
 *
 *     static bool is_before(const struct item *a, const struct item *b);
 *     HEAP_SORT(items_sort, struct item, is_before)
 *     ...
 *     items_sort(items, count);
 *
 *     static bool comes_before(const struct list *l, const uint32_t *a, const uint32_t *b);
 *     HEAP_SORT_WITH(order_sort, uint32_t, const struct list *, comes_before)
 *     ...
 *     order_sort(items, count, list);
 *
 * No order of the items makes it slow.  Equal items may change places.
 *
 *   signals  safe, where is_before() is
 *   source   this file
 */
#ifndef BASE_SORT_H
#define BASE_SORT_H

#include <stdbool.h>
#include <stddef.h>

#define HEAP_SORT_WITH(name, type, with_type, is_before)                                    \
	static void name##_sift(type *all, size_t count, size_t at, type moved, with_type with) \
	{                                                                                   \
		for (size_t child; (child = 2 * at + 1) < count; at = child) {              \
			if (child + 1 < count && is_before(with, &all[child], &all[child + 1])) \
				child++;                                                    \
			if (!is_before(with, &moved, &all[child]))                          \
				break;                                                      \
			all[at] = all[child];                                               \
		}                                                                           \
		all[at] = moved;                                                            \
	}                                                                                   \
                                                                                            \
	static void name(type *all, size_t count, with_type with)                           \
	{                                                                                   \
		for (size_t i = count / 2; i-- > 0;)                                        \
			name##_sift(all, count, i, all[i], with);                           \
		while (count > 1) {                                                         \
			type last = all[--count];                                           \
                                                                                            \
			all[count] = all[0];                                                \
			name##_sift(all, count, 0, last, with);                             \
		}                                                                           \
	}

#define HEAP_SORT(name, type, is_before)                                                    \
	static inline bool name##_is_before(int with, const type *a, const type *b)         \
	{                                                                                   \
		(void)with;                                                                 \
		return is_before(a, b);                                                     \
	}                                                                                   \
                                                                                            \
	HEAP_SORT_WITH(name##_with, type, int, name##_is_before)                            \
                                                                                            \
	static void name(type *all, size_t count)                                           \
	{                                                                                   \
		name##_with(all, count, 0);                                                 \
	}

#endif
