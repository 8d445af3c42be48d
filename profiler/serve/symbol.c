/*
 * symbol.c - GET and POST symbol: names for addresses, one a line.
 *
 * Words are separated by a literal '+' in the raw, undecoded query (or the body of
 * a POST); the prefix of a number decides its base, as in Go's ParseUint(s, 0, 64).
 * What is no number, or no address of ours, is left out without an error.
 *
 * Tests: tests/serve/test_params.c, tests/http/protocol.t.
 */
#include <config.h>

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "job.h"
#include "routes.h"
#include "symbols.h"

#define WORD_MAX 4096 /* bytes; Go stops at a longer one, in these words */
#define WORD_TOO_LONG "reading request: bufio: buffer full\n"

uint64_t
symbol_number(const char *word, size_t size)
{
	unsigned base = 10;
	uint64_t n = 0;
	size_t   i = 0;

	if (size > 1 && word[0] == '0') {
		char c = word[1] | 0x20;

		base = c == 'x' ? 16 : c == 'b' ? 2 : 8;
		i = c == 'x' || c == 'b' || c == 'o' ? 2 : 1;
	}
	if (i == size)
		return 0;
	for (; i < size; i++) {
		int      c = tolower((unsigned char)word[i]);
		unsigned d = isxdigit(c) ? (unsigned)(isdigit(c) ? c - '0' : c - 'a' + 10) : base;

		if (d >= base || __builtin_mul_overflow(n, base, &n) || __builtin_add_overflow(n, d, &n))
			return 0;
	}
	return n;
}

static int
word_answer(struct job *j, struct symbols *symbols, const char *word, size_t size)
{
	struct symbol_frame frames[SYMBOLS_FRAMES_MAX];
	uint64_t            pc = symbol_number(word, size);
	char                number[32];
	int                 r;

	if (pc == 0 || pc > UINTPTR_MAX || !symbols_frames(symbols, symbols_pc(symbols, (uintptr_t)pc), frames, SYMBOLS_FRAMES_MAX))
		return 0;
	snprintf(number, sizeof(number), "%#llx ", (unsigned long long)pc);
	r = job_write(j, number, strlen(number));
	if (!r)
		r = job_write(j, frames[0].name, strlen(frames[0].name));
	return r ? r : job_write(j, "\n", 1);
}

static int
run(struct job *j)
{
	static const char head[] = "num_symbols: 1\n";
	const char       *word = j->spec.input, *end = word + j->spec.input_size;
	struct symbols   *symbols = NULL;
	int               r;

	r = symbols_open(__atomic_load_n(j->symbol_memory, __ATOMIC_RELAXED), &symbols);
	if (r)
		return r;
	r = job_write(j, head, sizeof(head) - 1);
	while (!r && word < end) {
		const char *plus = memchr(word, '+', (size_t)(end - word));
		size_t      size = (size_t)((plus ? plus : end) - word);

		if (size > WORD_MAX) {
			r = job_write(j, WORD_TOO_LONG, sizeof(WORD_TOO_LONG) - 1);
			break;
		}
		r = word_answer(j, symbols, word, size);
		word += size + 1;
	}
	symbols_close(symbols);
	return r;
}

void
symbol_reply(struct serve *s, struct answer *a)
{
	bool            posted = a->ask.method == ASK_POST;
	const char     *input = posted ? a->ask.body : a->ask.query;
	struct job_spec spec = { .run = run, .input = input };

	spec.input_size = posted ? a->ask.body_size : input ? strlen(input) : 0;
	job_start(s, a, &spec);
}
