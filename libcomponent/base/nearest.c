/*
 * nearest.c - what somebody may have meant by a word that is none of those there are.
 *
 * What a stranger would get wrong: a guess that is too far off is worse than none, so a word has to be
 * within a third of its length, and what is short nearer still.
 *
 * Tests: tests/base/test_nearest.c, tests/flags/test_line.c, tests/serve/view.t.
 */
#include <config.h>

#include "nearest.h"

#include <string.h>

#define WORD_MAX (NEAREST_BYTES - 1)
#define NEAR_MIN 2  /* steps that a short word may be wrong by */

unsigned
nearest_distance(const char *a, const char *b)
{
	unsigned rows[3][WORD_MAX + 1];
	size_t   na = strlen(a), nb = strlen(b);

	if (na > WORD_MAX || nb > WORD_MAX)
		return WORD_MAX;
	for (size_t j = 0; j <= nb; j++)
		rows[0][j] = (unsigned)j;
	for (size_t i = 1; i <= na; i++) {
		unsigned *now = rows[i % 3], *last = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];

		now[0] = (unsigned)i;
		for (size_t j = 1; j <= nb; j++) {
			unsigned best = last[j - 1] + (a[i - 1] != b[j - 1]);

			if (last[j] + 1 < best)
				best = last[j] + 1;
			if (now[j - 1] + 1 < best)
				best = now[j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    before[j - 2] + 1 < best)
				best = before[j - 2] + 1;
			now[j] = best;
		}
	}
	return rows[na % 3][nb];
}

void
nearest_begin(struct nearest *n, const char *text)
{
	size_t length = strlen(text);

	n->text = text;
	n->word[0] = '\0';
	/* Further than a third of the word away it is another word. */
	n->best = (unsigned)length / 3 + 1;
	if (n->best < NEAR_MIN + 1)
		n->best = NEAR_MIN + 1;
	/* Two slips in three letters leave nothing of them. */
	if (length <= NEAR_MIN + 1)
		n->best = (unsigned)length / 2 + 1;
	if (length > WORD_MAX)
		n->best = 0;
}

void
nearest_try(struct nearest *n, const char *word, size_t size)
{
	char     candidate[NEAREST_BYTES];
	unsigned distance;

	if (size >= sizeof(candidate))
		return;
	memcpy(candidate, word, size);
	candidate[size] = '\0';
	distance = nearest_distance(n->text, candidate);
	/* An abbreviation is as near as the smallest slip. */
	if (strlen(n->text) > 2 && strncmp(n->text, candidate, strlen(n->text)) == 0)
		distance = 1;
	if (distance < n->best) {
		n->best = distance;
		memcpy(n->word, candidate, size + 1);
	}
}
