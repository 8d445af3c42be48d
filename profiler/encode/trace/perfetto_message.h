/*
 * perfetto_message.h - messages of Perfetto's schema, as far as traces of ours need it.
 */
#ifndef ENCODE_PERFETTO_MESSAGE_H
#define ENCODE_PERFETTO_MESSAGE_H

#include "writer.h"

/* Field numbers, by message. */
enum { TRACE_PACKET = 1 };
enum {
	PACKET_FTRACE = 1, PACKET_CLOCKS = 6, PACKET_TIMESTAMP = 8, PACKET_SEQUENCE = 10, PACKET_EVENT = 11,
	PACKET_INTERNED = 12, PACKET_FLAGS = 13, PACKET_TRACK = 60, PACKET_SAMPLE = 66,
};
enum { INTERNED_FUNCTIONS = 5, INTERNED_FRAMES, INTERNED_STACKS, INTERNED_PATHS = 17, INTERNED_FILES, INTERNED_MAPPINGS };
enum { FRAME_ID = 1, FRAME_FUNCTION, FRAME_MAPPING, FRAME_PC, FRAME_FILE, FRAME_LINE };
enum { MAPPING_ID = 1, MAPPING_PATH = 7 };
enum { TRACK_ID = 1, TRACK_NAME, TRACK_PROCESS, TRACK_THREAD, TRACK_PARENT, TRACK_COUNTER = 8 };
enum { PROCESS_PID = 1, PROCESS_NAME = 6 };
enum { THREAD_PID = 1, THREAD_TID, THREAD_NAME = 5 };
enum { COUNTER_UNIT = 3 };
enum {
	EVENT_ANNOTATION = 4, EVENT_TYPE = 9, EVENT_TRACK = 11, EVENT_CATEGORY = 22, EVENT_NAME, EVENT_COUNTER = 30,
	EVENT_STACK = 56,
};
enum { ANNOTATION_UINT = 3, ANNOTATION_NAME = 10 };
enum { SAMPLE_CPU = 1, SAMPLE_PID, SAMPLE_TID, SAMPLE_STACK, SAMPLE_MODE };
enum { BUNDLE_CPU = 1, BUNDLE_EVENT };
enum { FTRACE_TIME = 1, FTRACE_PID, FTRACE_SWITCH = 4, FTRACE_WAKING = 20 };
enum { SWITCH_FROM_NAME = 1, SWITCH_FROM, SWITCH_FROM_PRIO, SWITCH_STATE, SWITCH_TO_NAME, SWITCH_TO, SWITCH_TO_PRIO };
enum { WAKING_NAME = 1, WAKING_PID, WAKING_PRIO, WAKING_SUCCESS, WAKING_CPU };
enum { CLOCKS_CLOCK = 1, CLOCK_ID = 1, CLOCK_TIME };

/* Values. */
enum { CLOCK_OF_REALTIME = 1, CLOCK_OF_MONOTONIC = 3, CLOCK_OF_BOOT = 6 };
enum { SLICE_BEGIN = 1, SLICE_END, INSTANT, COUNTER };
enum { STATE_RUNNABLE = 0, STATE_SLEEPING = 1, STATE_DEAD = 16 }; /* of the kernel */
enum { CLEARED = 1, NEEDED = 2 };
enum { UNIT_BYTES = 3, MODE_USER = 2, PRIO = 120, SEQUENCE = 1, THE_MAPPING = 1 };

#define MESSAGE_MAX 4096 /* bytes: two texts, or the numbers of 100 frames */

_Static_assert(MESSAGE_MAX > 2 * TRACE_TEXT_MAX + 512 && MESSAGE_MAX > TRACE_FRAMES_MAX * 11 + 512, "all fit");

/* Never initialised as a whole: that would cost more than all the rest. */
struct perfetto_message {
	size_t  size;
	uint8_t data[MESSAGE_MAX];
};

/* A field of a number; of bytes; of a message. */
void perfetto_number(struct perfetto_message *m, unsigned field, uint64_t v);
void perfetto_bytes(struct perfetto_message *m, unsigned field, const void *data, size_t size);
void perfetto_inner(struct perfetto_message *m, unsigned field, const struct perfetto_message *of);
/* Cut and clean; nothing if there is no memory to make it so. */
void perfetto_text(struct trace_writer *w, struct perfetto_message *m, unsigned field, const char *s);
/* Writes a packet of one message, at a time of the clock; 0: it has none. */
void perfetto_packet(struct trace_writer *w, uint64_t clock, unsigned field, const struct perfetto_message *of);
/* Writes packets of what is interned: a text under a number; a stack and its frames. */
void perfetto_intern_text(struct trace_writer *w, unsigned field, uint64_t id, const char *s, size_t size);
int  perfetto_intern_stack(struct trace_writer *w, struct table *frames, uint64_t id, const struct trace_frame *frame,
	unsigned count);

#endif
