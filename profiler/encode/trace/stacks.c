/*
 * stacks.c - stacks and texts of a trace, each written once and then a number.
 *
 * What a stranger would get wrong:
 * - Readers name a thread by the root of its stacks.  So what the C library has put
 *   below the program's first function (_start, start_thread and so on) is taken off,
 *   and our own routine that stands before a thread's.
 * - A C library without symbols has none of these names: then whatever is its own at
 *   the root goes.
 * - A stack that is too deep keeps its root too, for the name's sake.
 * - A text may be written twice: where there is no room to know them all, they are written without being remembered.
 *
 * Tests: tests/encode/test_gotrace.c, tests/encode/gotrace.t
 */
#include <config.h>

#include "stacks.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "generations.h"
#include "utf8.h"

/* Where numbers that are no addresses begin: no address of a program comes there. */
#define MADE_PC ((uint64_t)1 << 52)

/* Keys of `stacks` beside the stack table's ids. */
#define KEY_BEGIN   ((uint64_t)1 << 60)
#define KEY_OFF_CPU ((uint64_t)2 << 60)
#define KEY_PREEMPT ((uint64_t)3 << 60)
#define KEY_WAKEUP  ((uint64_t)4 << 60)

#define START_DEPTH 5 /* frames at the root of a main thread which may be the C library's */

#define TEXTS_MEMORY ((size_t)16 << 20) /* bytes, beside the encoder's: a quarter of a million texts */

/* What stands at an address, the innermost function first. */
struct place {
	unsigned           count;
	bool               start; /* a function that comes before the program's own */
	bool               thread_start; /* one if it is the outermost; else it may be the program's */
	bool               start_main; /* and what is below it is the linker's */
	bool               library; /* in the C library, without a name */
	bool               before; /* our own routine, before a thread's */
	bool               pseudo;
	struct trace_frame frame[];
};

void
trace_stacks_init(struct trace_stacks *ts, struct arena *a, struct symbols *s,
	const struct trace_stacks_out *out, void *arg)
{
	*ts = (struct trace_stacks){ .budget = a->budget, .arena = a, .symbols = s, .out = out, .arg = arg };
	ts->texts_budget.limit = TEXTS_MEMORY;
	arena_init(&ts->texts, &ts->texts_budget);
	strings_init(&ts->strings, &ts->texts);
	ts->pcs.budget = a->budget;
	table_init(&ts->noted, a->budget);
	table_init(&ts->roots, a->budget);
	table_init(&ts->begins, a->budget);
	table_init(&ts->places, a->budget);
	table_init(&ts->shown, a->budget);
	table_init(&ts->stacks, a->budget);
}

void
trace_stacks_release(struct trace_stacks *ts)
{
	strings_release(&ts->strings);
	arena_release(&ts->texts);
	frames_list_release(&ts->pcs);
	table_release(&ts->noted);
	table_release(&ts->roots);
	table_release(&ts->begins);
	table_release(&ts->places);
	table_release(&ts->shown);
	table_release(&ts->stacks);
}

/* ---- what will be asked for ---- */

/* Stacks have numbers of 32 bits, and addresses begin above those of these keys. */
#define NOTED_STACK ((uint64_t)1 << 63)

static int
note_pc(struct trace_stacks *ts, uintptr_t pc)
{
	int r;

	if (table_get(&ts->noted, pc))
		return 0;
	r = table_put(&ts->noted, pc, 1);
	return r < 0 ? r : frames_list_add(&ts->pcs, pc);
}

static int
note_stack(struct trace_stacks *ts, uint32_t stack)
{
	unsigned         n;
	const uintptr_t *pcs;
	int              r;

	if (!stack || table_get(&ts->noted, NOTED_STACK | stack))
		return 0;
	r = table_put(&ts->noted, NOTED_STACK | stack, 1);
	pcs = frames_stack(stack, &n);
	for (unsigned i = 0; i < n && !r; i++)
		r = note_pc(ts, pcs[i]);
	return r;
}

int
trace_stacks_note(struct trace_stacks *ts, const struct story_event *e)
{
	int r = note_stack(ts, e->stack);

	if (!r && e->stack && e->on && !table_get(&ts->roots, e->on->serial))
		r = table_put(&ts->roots, e->on->serial, e->stack);
	if (!r && e->type == STORY_CREATE && e->other->info) {
		r = note_stack(ts, e->other->info->stack);
		if (!r && e->other->info->stack)
			r = table_put(&ts->roots, e->other->serial, e->other->info->stack);
	}
	if (!r && e->type == STORY_START && e->on->routine)
		r = note_pc(ts, symbols_pc(ts->symbols, e->on->routine)); /* it has no tag */
	return r;
}

void
trace_stacks_resolve(struct trace_stacks *ts)
{
	symbols_resolve(ts->symbols, ts->pcs.pcs, ts->pcs.count);
	frames_list_release(&ts->pcs);
	table_release(&ts->noted);
}

/* ---- texts ---- */

const char *
trace_text_clean(struct trace_stacks *ts, const char *text, size_t *ret_size)
{
	size_t n = utf8_cut(text, TRACE_TEXT_MAX);

	*ret_size = n;
	if (utf8_is_clean(text, n))
		return text;
	memcpy(ts->text, text, n);
	utf8_mask(ts->text, n);
	return ts->text;
}

int
trace_text_number(struct trace_stacks *ts, const char *text, bool keep, uint64_t *ret)
{
	size_t   size = utf8_cut(text, TRACE_TEXT_MAX);
	uint64_t id;
	bool     is_new = true;

	*ret = 0;
	if (!size)
		return 0;
	if (strings_id(&ts->strings, text, size, keep, &id, &is_new) < 0)
		id = ts->strings.count++; /* it comes again */
	*ret = id + 1;
	if (!is_new)
		return 0;
	text = trace_text_clean(ts, text, &size);
	return ts->out->text(ts->arg, id + 1, text, size);
}

/* ---- places ---- */

static const char *const starts[] = {
	"start_thread", "clone3", "clone", "__clone", "__clone3", "__clone_internal",
	"__libc_start_main", "__libc_start_main_impl", "__libc_start_call_main", "generic_start_main", "_start",
};

static const char *
base_name(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path ? path : "";
}

static bool
begins_with(const char *text, const char *start)
{
	return !strncmp(text, start, strlen(start));
}

/* What the outermost function of an address is. */
static void
place_judge(struct place *p, const struct symbol_frame *f)
{
	const char *object = base_name(f->object);

	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
		p->start |= !strcmp(f->name, starts[i]);
	p->thread_start = !strcmp(f->name, "thread_start");
	p->start_main = begins_with(f->name, "__libc_start_main");
	p->library = !f->named && (begins_with(object, "libc.so") || begins_with(object, "libpthread") ||
		begins_with(object, "libc-2") || begins_with(object, "ld-linux"));
	p->before = (!strcmp(f->name, "begin") || !strcmp(f->name, "begin_c11")) &&
		(begins_with(object, "libcomponent") || !strcmp(base_name(f->file), "thread_events.c"));
}

static uint64_t
made_pc(struct trace_stacks *ts)
{
	return MADE_PC + ++ts->made_pcs;
}

static int
place_frame(struct trace_stacks *ts, const struct symbol_frame *f, bool outermost, bool keep,
	struct trace_frame *ret)
{
	const char *file = f->file ? f->file : f->object ? f->object : "";
	int         r = trace_text_number(ts, f->name, keep, &ret->function);

	if (!r)
		r = trace_text_number(ts, file, true, &ret->file);
	ret->line = f->file && f->line > 0 ? (uint64_t)f->line : 0;
	if (!outermost || !ret->pc || table_get(&ts->shown, ret->pc)) {
		ret->pc = made_pc(ts);
		return r;
	}
	return r < 0 ? r : table_put(&ts->shown, ret->pc, 1);
}

static int
place_of(struct trace_stacks *ts, uintptr_t pc, const struct place **ret)
{
	struct frames *f = &ts->scratch;
	struct place  *p = (struct place *)(uintptr_t)table_get(&ts->places, pc);
	int            r = 0;

	*ret = p;
	if (p)
		return 0;
	frames_of(ts->symbols, pc, f);
	p = arena_alloc(ts->arena, sizeof(*p) + f->count * sizeof(p->frame[0]));
	if (!p)
		return -ENOMEM;
	p->count = f->count;
	p->pseudo = f->pseudo;
	place_judge(p, &f->frame[f->count - 1]);
	for (unsigned i = 0; i < f->count && !r; i++) {
		p->frame[i].pc = f->address;
		r = place_frame(ts, &f->frame[i], i + 1 == f->count, f->frame[i].name != f->text, &p->frame[i]);
	}
	*ret = p;
	return r < 0 ? r : table_put(&ts->places, pc, (uintptr_t)p);
}

/* How many of the pcs are the program's. */
static int
stack_strip(struct trace_stacks *ts, const uintptr_t *pcs, unsigned *n)
{
	const struct place *p;
	unsigned            count = *n;
	int                 r = 0;

	for (unsigned i = count; i-- > 1 && count - i <= START_DEPTH && !r;) {
		r = place_of(ts, pcs[i], &p);
		if (!r && p->start_main)
			*n = i;
	}
	for (; *n > 1 && !r; --*n) {
		r = place_of(ts, pcs[*n - 1], &p);
		if (r || !(p->start || p->library || (p->thread_start && *n == count)))
			break;
	}
	if (!r && *n > 1 && *n < count) {
		r = place_of(ts, pcs[*n - 1], &p);
		*n -= !r && p->before;
	}
	return r;
}

/* ---- where threads began ---- */

static int
made_frame(struct trace_stacks *ts, const char *name, bool keep, struct trace_frame *ret)
{
	*ret = (struct trace_frame){ .pc = made_pc(ts) };
	return trace_text_number(ts, name, keep, &ret->function);
}

/* From the routine's address, or the root of a stack, or by the thread's name. */
static int
begin_find(struct trace_stacks *ts, const struct story_thread *t, const struct trace_frame **ret)
{
	uint32_t            stack = (uint32_t)table_get(&ts->roots, t->serial);
	const struct place *p = NULL;
	const uintptr_t    *pcs;
	struct trace_frame *made;
	char                name[TRACE_NAME_MAX + 3];
	unsigned            n;
	int                 r = 0;

	if (t->info && t->info->own) {
		p = NULL; /* its name says more than our function's */
	} else if (t->routine) {
		r = place_of(ts, symbols_pc(ts->symbols, t->routine), &p);
	} else if (stack) {
		pcs = frames_stack(stack, &n);
		r = stack_strip(ts, pcs, &n);
		if (!r)
			r = place_of(ts, pcs[n - 1], &p);
	}
	if (r)
		return r;
	if (p && !p->pseudo) {
		*ret = &p->frame[p->count - 1];
		return 0;
	}
	made = arena_alloc(ts->arena, sizeof(*made));
	if (!made)
		return -ENOMEM;
	if (t->info && t->info->main)
		snprintf(name, sizeof(name), "main");
	else
		snprintf(name, sizeof(name), "[%s]", t->info && t->info->name[0] ? t->info->name : "thread");
	*ret = made;
	return made_frame(ts, name, false, made);
}

/* That function. */
static int
trace_begin_frame(struct trace_stacks *ts, const struct story_thread *t, const struct trace_frame **ret)
{
	int r;

	*ret = (const struct trace_frame *)(uintptr_t)table_get(&ts->begins, t->serial);
	if (*ret)
		return 0;
	r = begin_find(ts, t, ret);
	return r < 0 ? r : table_put(&ts->begins, t->serial, (uintptr_t)*ret);
}

/* ---- stacks ---- */

static int
stack_write(struct trace_stacks *ts, uint64_t key, unsigned count, uint64_t *ret)
{
	int r = table_put(&ts->stacks, key, ++ts->count);

	*ret = ts->count;
	return r < 0 ? r : ts->out->stack(ts->arg, ts->count, ts->frame, count);
}

static int
stack_taken(struct trace_stacks *ts, uint32_t stack, uint64_t *ret)
{
	const struct place *p;
	unsigned            n, count = 0;
	const uintptr_t    *pcs = frames_stack(stack, &n);
	int                 r = stack_strip(ts, pcs, &n);

	for (unsigned i = 0; i < n && !r; i++) {
		r = place_of(ts, pcs[i], &p);
		for (unsigned k = 0; !r && k < p->count && count < TRACE_FRAMES_MAX; k++)
			ts->frame[count++] = p->frame[k];
	}
	if (!r && count == TRACE_FRAMES_MAX) /* p is the root */
		ts->frame[count - 1] = p->frame[p->count - 1];
	return r < 0 ? r : stack_write(ts, stack, count, ret);
}

int
trace_begin_number(struct trace_stacks *ts, const struct story_thread *t, uint64_t *ret)
{
	const struct trace_frame *begin;
	int                       r = trace_begin_frame(ts, t, &begin);

	if (r < 0)
		return r;
	*ret = table_get(&ts->stacks, KEY_BEGIN | begin->pc);
	if (*ret)
		return 0;
	ts->frame[0] = *begin;
	return stack_write(ts, KEY_BEGIN | begin->pc, 1, ret);
}

static int
off_cpu_number(struct trace_stacks *ts, const struct story_thread *t, bool preempted, uint64_t *ret)
{
	const struct trace_frame *begin;
	uint64_t                  key;
	int                       r = trace_begin_frame(ts, t, &begin);

	if (r < 0)
		return r;
	key = (preempted ? KEY_PREEMPT : KEY_OFF_CPU) | begin->pc;
	*ret = table_get(&ts->stacks, key);
	if (*ret)
		return 0;
	r = made_frame(ts, preempted ? "[preempted]" : "[off CPU]", true, &ts->frame[0]);
	ts->frame[1] = *begin;
	return r < 0 ? r : stack_write(ts, key, 2, ret);
}

int
trace_stack_number(struct trace_stacks *ts, const struct story_event *e, uint64_t *ret)
{
	int r;

	if (e->made == STORY_OFF_CPU || e->made == STORY_PREEMPTED)
		return off_cpu_number(ts, e->on, e->made == STORY_PREEMPTED, ret);
	*ret = table_get(&ts->stacks, e->made == STORY_WAKEUP ? KEY_WAKEUP : e->stack);
	if (*ret || (e->made == STORY_TAKEN && !e->stack))
		return 0;
	if (e->made == STORY_TAKEN)
		return stack_taken(ts, e->stack, ret);
	r = made_frame(ts, "[kernel wakeup]", true, &ts->frame[0]);
	return r < 0 ? r : stack_write(ts, KEY_WAKEUP, 1, ret);
}
