/*
 * heap_sort.h - sorts an array in place, without malloc(), which glibc's qsort() may call.
 *
 *     static bool is_before(const struct item *a, const struct item *b);
 *     HEAP_SORT(items_sort, struct item, is_before)
 *     ...
 *     items_sort(items, count);
 *
 * No order of the items makes it slow.  Equal items may change places.
 *
 *   signals  safe, where is_before() is
 *   source   this file
 */
#ifndef BASE_HEAP_SORT_H
#define BASE_HEAP_SORT_H

#include <stddef.h>

#define HEAP_SORT(name, type, is_before)                                                    \
	static void name##_sift(type *all, size_t count, size_t at, type moved)             \
	{                                                                                   \
		for (size_t child; (child = 2 * at + 1) < count; at = child) {              \
			if (child + 1 < count && is_before(&all[child], &all[child + 1]))   \
				child++;                                                    \
			if (!is_before(&moved, &all[child]))                                \
				break;                                                      \
			all[at] = all[child];                                               \
		}                                                                           \
		all[at] = moved;                                                            \
	}                                                                                   \
                                                                                            \
	static void name(type *all, size_t count)                                           \
	{                                                                                   \
		for (size_t i = count / 2; i-- > 0;)                                        \
			name##_sift(all, count, i, all[i]);                                 \
		while (count > 1) {                                                         \
			type last = all[--count];                                           \
                                                                                            \
			all[count] = all[0];                                                \
			name##_sift(all, count, 0, last);                                   \
		}                                                                           \
	}

#endif
