/*
 * text_stack.c - a stack in the text forms of Go.
 *
 * What a stranger would get wrong: addresses after the @ are return addresses, those
 * of the lines below are one less, where the call is.
 * An inlined function has a line of its own, as in Go, with the offset in the real one.
 * Where no line of the source is known, the object stands instead, with 0.
 *
 * Tests: tests/encode/test_text.c
 */
#include <config.h>

#include "text_stack.h"

#include "labels.h"
#include "stack_table.h"

void
text_addresses(struct lines *l, const uintptr_t *pcs, unsigned n, const struct symbols *s)
{
	for (unsigned i = 0; i < n; i++)
		lines_print(l, " 0x%lx", (unsigned long)symbols_address(s, pcs[i]) + 1);
	lines_print(l, "\n");
}

void
text_labels(struct lines *l, uint32_t labels)
{
	char text[LABELS_TEXT_MAX];

	if (!labels_text(labels, text, sizeof(text)))
		return;
	lines_print(l, "# labels: ");
	lines_text(l, text);
	lines_print(l, "\n");
}

static void
print_frame(struct lines *l, uintptr_t pc, const struct symbol_frame *f)
{
	lines_print(l, "#\t0x%lx", (unsigned long)pc);
	if (!f->object && !stack_pseudo_name(pc)) {
		lines_print(l, "\n"); /* code outside of all mappings */
		return;
	}
	lines_print(l, "\t");
	lines_text(l, f->name);
	/* "object+0x1234" says already where it is. */
	if (f->named || !f->object)
		lines_print(l, "+0x%llx", (unsigned long long)f->offset);
	lines_print(l, "\t");
	lines_text(l, f->file ? f->file : f->object ? f->object : "-");
	lines_print(l, ":%d\n", f->line);
}

void
text_frames(struct lines *l, const uintptr_t *pcs, unsigned n, struct symbols *s, struct frames *frames)
{
	for (unsigned i = 0; i < n; i++) {
		frames_of(s, pcs[i], frames);
		for (unsigned k = 0; k < frames->count; k++)
			print_frame(l, frames->address, &frames->frame[k]);
	}
	lines_print(l, "\n");
}
