/*
 * perfetto_message.c - messages of Perfetto's schema, one after the other.
 *
 * A message is built in a buffer, inner ones first, and copied into the one around it.
 * What a stranger would get wrong: a call stack's frames are listed root first.
 *
 * Why not protobuf-c: each message here has a few numbers and texts, and the schema is
 * some thousand fields of somebody else's.
 *
 * Tests: tests/encode/gotrace.t
 */
#include <config.h>

#include "perfetto_message.h"

#include <string.h>

#include "varint.h"

void
perfetto_number(struct perfetto_message *m, unsigned field, uint64_t v)
{
	m->size += varint_write(m->data + m->size, field << 3);
	m->size += varint_write(m->data + m->size, v);
}

void
perfetto_bytes(struct perfetto_message *m, unsigned field, const void *data, size_t size)
{
	m->size += varint_write(m->data + m->size, field << 3 | 2);
	m->size += varint_write(m->data + m->size, size);
	memcpy(m->data + m->size, data, size);
	m->size += size;
}

void
perfetto_inner(struct perfetto_message *m, unsigned field, const struct perfetto_message *of)
{
	perfetto_bytes(m, field, of->data, of->size);
}

void
perfetto_text(struct trace_writer *w, struct perfetto_message *m, unsigned field, const char *s)
{
	size_t      size;
	const char *clean = trace_text_clean(&w->stacks, s, &size);

	perfetto_bytes(m, field, clean, size);
}

void
perfetto_packet(struct trace_writer *w, uint64_t clock, unsigned field, const struct perfetto_message *of)
{
	uint8_t                 head[1 + VARINT_MAX];
	struct perfetto_message m;
	size_t                  n = 1;

	m.size = 0;
	if (clock)
		perfetto_number(&m, PACKET_TIMESTAMP, clock);
	perfetto_number(&m, PACKET_SEQUENCE, SEQUENCE);
	perfetto_number(&m, PACKET_FLAGS, field == PACKET_CLOCKS ? CLEARED : NEEDED);
	/* Not copied: what is in m is the head of the packet. */
	m.size += varint_write(m.data + m.size, field << 3 | 2);
	m.size += varint_write(m.data + m.size, of->size);
	head[0] = TRACE_PACKET << 3 | 2;
	n += varint_write(head + n, m.size + of->size);
	lines_bytes(&w->out, head, n);
	lines_bytes(&w->out, m.data, m.size);
	lines_bytes(&w->out, of->data, of->size);
}

/* ---- what is interned ---- */

void
perfetto_intern_text(struct trace_writer *w, unsigned field, uint64_t id, const char *s, size_t size)
{
	struct perfetto_message entry, m;

	entry.size = m.size = 0;
	perfetto_number(&entry, 1, id);
	perfetto_bytes(&entry, 2, s, size);
	perfetto_inner(&m, field, &entry);
	perfetto_packet(w, 0, PACKET_INTERNED, &m);
}

static int
write_frame(struct trace_writer *w, struct table *frames, const struct trace_frame *f)
{
	struct perfetto_message frame, m;

	frame.size = m.size = 0;
	if (table_get(frames, f->pc))
		return 0;
	perfetto_number(&frame, FRAME_ID, f->pc);
	perfetto_number(&frame, FRAME_FUNCTION, f->function);
	perfetto_number(&frame, FRAME_MAPPING, THE_MAPPING);
	perfetto_number(&frame, FRAME_PC, f->pc);
	if (f->file)
		perfetto_number(&frame, FRAME_FILE, f->file);
	if (f->line)
		perfetto_number(&frame, FRAME_LINE, f->line);
	perfetto_inner(&m, INTERNED_FRAMES, &frame);
	perfetto_packet(w, 0, PACKET_INTERNED, &m);
	return table_put(frames, f->pc, 1);
}

int
perfetto_intern_stack(struct trace_writer *w, struct table *frames, uint64_t id, const struct trace_frame *frame,
	unsigned count)
{
	struct perfetto_message stack, m;
	int                     r = 0;

	stack.size = m.size = 0;
	perfetto_number(&stack, 1, id);
	for (unsigned i = count; i-- > 0 && !r;) {
		r = write_frame(w, frames, &frame[i]);
		perfetto_number(&stack, 2, frame[i].pc);
	}
	perfetto_inner(&m, INTERNED_STACKS, &stack);
	perfetto_packet(w, 0, PACKET_INTERNED, &m);
	return r;
}
