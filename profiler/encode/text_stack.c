/*
 * text_stack.c - a profile in the text forms of Go: a head, then each stack with its numbers.
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

#include <errno.h>

#include "frames.h"
#include "labels.h"
#include "stack_table.h"

/* "# labels: {"tenant":"acme"}" and a newline; nothing where there are none. */
static void
print_labels(struct lines *l, uint32_t labels)
{
	char text[LABELS_TEXT_MAX];

	if (!labels_text(labels, text, sizeof(text)))
		return;
	lines_print(l, "# labels: ");
	lines_text(l, text);
	lines_print(l, "\n");
}

/* "#\t0x6925c8\tleaky+0x28\t/src/daemon.c:23". */
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

static void
print_stack(struct lines *l, const struct profile_sample *sample, struct symbols *s, struct frames *frames)
{
	unsigned         n;
	const uintptr_t *pcs = frames_stack(sample->stack, &n);

	for (unsigned i = 0; i < n; i++)
		lines_print(l, " 0x%lx", (unsigned long)symbols_address(s, pcs[i]) + 1);
	lines_print(l, "\n");
	print_labels(l, sample->labels);
	for (unsigned i = 0; i < n; i++) {
		frames_of(s, pcs[i], frames);
		for (unsigned k = 0; k < frames->count; k++)
			print_frame(l, frames->address, &frames->frame[k]);
	}
	lines_print(l, "\n");
}

int
text_stacks(const struct profile *p, struct symbols *s, const struct text_form *form, const void *form_arg,
	encode_write_fn *write, void *arg)
{
	struct arena_budget budget = { 0, ENCODE_MEMORY_MAX };
	struct arena        arena;
	struct lines        lines;
	struct frames      *frames;
	uint32_t           *order;
	int                 r = -ENOMEM;

	if (p->count > UINT32_MAX)
		return -EINVAL;
	arena_init(&arena, &budget);
	order = order_of(&arena, p->count, form->before, form_arg);
	frames = arena_alloc(&arena, sizeof(*frames));
	if (order && frames)
		r = lines_open(&lines, &arena, write, arg);
	if (r < 0)
		goto out;
	frames_resolve(p, s);
	form->head(&lines, form_arg);
	for (size_t i = 0; i < p->count && !lines.error; i++) {
		form->numbers(&lines, form_arg, &p->samples[order[i]]);
		print_stack(&lines, &p->samples[order[i]], s, frames);
	}
	if (form->tail)
		form->tail(&lines, form_arg);
	r = lines_close(&lines);
out:
	arena_release(&arena);
	return r;
}
