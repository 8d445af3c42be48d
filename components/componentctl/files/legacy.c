/*
 * legacy.c - profiles as gperftools and jemalloc write them.
 *
 *     data ──▶ parse_...() ──▶ struct draft, addresses ──▶ locations ──▶ legacy_map.c: names
 *
 * The values are those that go tool pprof makes of them: a sampled heap is scaled up by how probable it was that a
 * block was sampled, contentions by their period.  jemalloc's dump, which go tool pprof does not read, is scaled the
 * same way, as jeprof does.
 *
 * What a stranger would get wrong:
 *  - an address is where a call returns to, and 1 less is in the call.  Of a CPU profile the first is none: it is
 *    what ran.
 *  - gperftools' handler leaves a frame of its own, the second, in nearly all stacks: it goes.
 *  - jemalloc repeats what a stack has for each thread; "t*" is all of them.
 *  - allocators' own functions are dropped by drop_frames, as of other files: read_drop_frames().
 *
 * Tests: tests/componentctl/legacy.t, test_read.c
 */
#include <config.h>

#include "legacy.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "legacy_map.h"
#include "table.h"

#define HEAP       "heap profile:"
#define JEMALLOC   "heap_v2/"
#define VALUES_MAX 4
#define CPU_WORDS  5 /* of the head: 0, 3, 0, the period, 0 */
#define CPU_MAGIC  3
#define SIMILAR    32 /* of so many stacks one may lack the handler's frame */

/* Functions that measure, and are not what is measured: names as pprof knows them. */
#define ALLOCATORS \
	"(__libc_|tc_)?(malloc|calloc|realloc|free|cfree|memalign|valloc|pvalloc)|(__|tc_)?posix_memalign|do_memalign|" \
	"tc_(new|delete)(array)?(_nothrow)?|tcmalloc::.*|BaseArena::.*|(::)?do_malloc(_no_errno|_pages)?|DoSampledAllocation|" \
	"MallocedMemBlock::MallocedMemBlock|_M_allocate|__builtin_(vec_)?(new|delete)|__gnu_cxx::new_allocator::allocate|" \
	"__malloc_alloc_template::allocate|simple_alloc::allocate|allocate|cpp_alloc|operator new(\\[\\])?|runtime\\..*|" \
	"malloc_zone_(malloc|calloc|valloc|realloc|memalign|free)"

static const char drop_cpu[] = "(ProfileData|CpuProfiler)::(Add|prof_handler)|__pthread_sighandler|__restore";
static const char drop_heap[] = ALLOCATORS;
/* With jemalloc's own, where it is a part of the program; of the library all goes. */
static const char drop_jemalloc[] = ALLOCATORS
	"|(je_)?prof_(backtrace|tctx_create|alloc_prep)(_.*)?|je_.*|(calloc|malloc|realloc|fallback)_(default|impl).*";
static const char keep_heap[] = "runtime\\.(panic|reflectcall|call[0-9]*)";
static const char drop_contention[] =
	"(base::)?(RecordLockProfileData|SubmitMutexProfileData|SubmitSpinLockProfileData).*|"
	"((base::)?Mutex::)?(AwaitCommon|Unlock|UnlockSlow|ReaderUnlock).*|((base::)?MutexLock::)?~MutexLock.*|"
	"(SpinLock::)?(Unlock|SlowUnlock).*|(SpinLockHolder::)?~SpinLockHolder.*";

struct draft {
	size_t   first; /* of the addresses */
	uint32_t count;
	int64_t  values[VALUES_MAX];
	int64_t  block_size; /* -1: not known */
};

struct legacy {
	struct pprof           *p;
	struct component_error *err;
	const char             *at, *end; /* what is still to be read */
	struct draft           *drafts;
	size_t                  count, room;
	uint64_t               *addresses, *distinct;
	size_t                  address_count, address_room;
	int64_t                 period;
	bool                    is_sampled, has_all; /* has_all: what was allocated since the start as well */
};

static int
refuse(struct legacy *l, const char *why)
{
	component_error_set(l->err, "%s", why);
	return -EINVAL;
}

static int
no_memory(struct legacy *l)
{
	component_error_set(l->err, "takes more than the %zu MiB of memory that there are for a profile",
		READ_MEMORY_MAX >> 20);
	return -ENOMEM;
}

/* Room for so many, which the file cannot have more of. */
static int
make_room(struct legacy *l, size_t samples, size_t addresses)
{
	if (addresses > READ_FRAMES_MAX) {
		component_error_set(l->err, "has more than %llu functions on its stacks", (unsigned long long)READ_FRAMES_MAX);
		return -EFBIG;
	}
	l->room = samples;
	l->address_room = addresses;
	l->drafts = arena_array(&l->p->arena, samples + 1, sizeof(*l->drafts));
	l->addresses = arena_array(&l->p->arena, addresses + 1, sizeof(*l->addresses));
	return l->drafts && l->addresses ? 0 : no_memory(l);
}

static int
set_types(struct legacy *l, const struct pprof_type *types, size_t count, struct pprof_type period_type)
{
	l->p->types = arena_array(&l->p->arena, count, sizeof(*types));
	if (!l->p->types)
		return no_memory(l);
	memcpy(l->p->types, types, count * sizeof(*types));
	l->p->type_count = count;
	l->p->usual = count - 1;
	l->p->period_type = period_type;
	return 0;
}

/* ---- CPU: words ---- */

struct words {
	unsigned size; /* bytes of one */
	bool     is_big; /* the highest byte comes first */
};

static uint64_t
word(const struct words *w, const char *at)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < w->size; i++)
		value = value << 8 | (unsigned char)at[w->is_big ? i : w->size - 1 - i];
	return value;
}

/* Which words these are; false: it is no CPU profile. */
static bool
find_words(const char *data, size_t size, struct words *ret)
{
	for (unsigned i = 0; i < 4; i++) {
		*ret = (struct words){ i < 2 ? 4 : 8, i % 2 };
		if (size >= CPU_WORDS * ret->size && !word(ret, data) && word(ret, data + ret->size) == CPU_MAGIC &&
			word(ret, data + 2 * ret->size) <= 1 && word(ret, data + 3 * ret->size) &&
			!word(ret, data + 4 * ret->size))
			return true;
	}
	return false;
}

/* 1: that was the end. */
static int
parse_stack(struct legacy *l, const struct words *w)
{
	size_t        left = (size_t)(l->end - l->at) / w->size;
	uint64_t      hits = left >= 2 ? word(w, l->at) : 0, depth = left >= 2 ? word(w, l->at + w->size) : 0;
	struct draft *d = &l->drafts[l->count];

	if (left < 2 || depth > left - 2)
		return refuse(l, "is cut off");
	l->at += 2 * w->size;
	if (!hits && depth == 1 && !word(w, l->at)) {
		l->at += w->size;
		return 1;
	}
	*d = (struct draft){ l->address_count, (uint32_t)depth, { (int64_t)hits, (int64_t)(hits * (uint64_t)l->period) }, -1 };
	for (uint64_t i = 0; i < depth; i++, l->at += w->size)
		l->addresses[l->address_count++] = word(w, l->at) - (i > 0);
	l->count++;
	return 0;
}

static void
cut_second(const struct legacy *l, struct draft *d)
{
	uint64_t *stack = l->addresses + d->first;

	memmove(stack + 1, stack + 2, (d->count - 2) * sizeof(*stack));
	d->count--;
}

/* The second frame that nearly all stacks have. */
static void
cut_handler(const struct legacy *l)
{
	uint64_t likely = 0;
	size_t   votes = 0, have = 0;

	for (size_t i = 0; i < l->count; i++) {
		uint64_t second = l->drafts[i].count > 1 ? l->addresses[l->drafts[i].first + 1] : 0;

		if (l->drafts[i].count < 2)
			continue;
		if (!votes)
			likely = second;
		votes = likely == second ? votes + 1 : votes - 1;
	}
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < l->count; i++) {
			struct draft *d = &l->drafts[i];

			if (d->count < 2 || l->addresses[d->first + 1] != likely)
				continue;
			if (!pass)
				have++;
			else if (have >= l->count - l->count / SIMILAR)
				cut_second(l, d);
		}
}

static int
parse_cpu(struct legacy *l, const struct words *w)
{
	static const struct pprof_type types[] = { { "samples", "count" }, { "cpu", "nanoseconds" } };
	size_t                         left = (size_t)(l->end - l->at) / w->size;
	int                            r;

	if (word(w, l->at + 2 * w->size))
		return refuse(l, "is a CPU profile of Java in gperftools' format, which nothing here reads");
	l->period = (int64_t)(word(w, l->at + 3 * w->size) * 1000);
	l->at += CPU_WORDS * w->size;
	r = set_types(l, types, 2, types[1]);
	if (!r)
		r = make_room(l, left / 2, left);
	while (!r && l->at < l->end)
		r = parse_stack(l, w);
	if (r < 0)
		return r;
	for (int i = 0; i < 2; i++)
		cut_handler(l);
	/* The leaf, twice: by the registers and by the stack. */
	for (size_t i = 0; i < l->count; i++)
		if (l->drafts[i].count > 1 && l->addresses[l->drafts[i].first] == l->addresses[l->drafts[i].first + 1] + 1)
			cut_second(l, &l->drafts[i]);
	l->p->drop_frames = drop_cpu;
	return legacy_map_read(l->at, (size_t)(l->end - l->at), l->p, l->err);
}

/* ---- lines ---- */

struct line {
	const char *at, *end;
};

/* Without blanks around it. */
static bool
next_line(struct legacy *l, struct line *ret)
{
	const char *end;

	if (l->at >= l->end)
		return false;
	end = memchr(l->at, '\n', (size_t)(l->end - l->at));
	end = end ? end : l->end;
	*ret = (struct line){ l->at, end };
	l->at = end < l->end ? end + 1 : end;
	while (ret->at < ret->end && isspace((unsigned char)*ret->at))
		ret->at++;
	while (ret->at < ret->end && isspace((unsigned char)ret->end[-1]))
		ret->end--;
	return true;
}

static bool
begins(const struct line *line, const char *word)
{
	size_t n = strlen(word);

	return (size_t)(line->end - line->at) >= n && !memcmp(line->at, word, n);
}

/* Passes over blanks and a word. */
static bool
take(struct line *line, const char *word)
{
	while (line->at < line->end && *line->at == ' ')
		line->at++;
	if (!begins(line, word))
		return false;
	line->at += strlen(word);
	return true;
}

static bool
take_number(struct line *line, int64_t *ret)
{
	bool     negative = (take(line, ""), begins(line, "-"));
	uint64_t value = 0;

	line->at += negative;
	if (line->at >= line->end || !isdigit((unsigned char)*line->at))
		return false;
	for (; line->at < line->end && isdigit((unsigned char)*line->at); line->at++) {
		if (value > (uint64_t)INT64_MAX / 10)
			return false;
		value = value * 10 + (uint64_t)(*line->at - '0');
	}
	*ret = negative ? -(int64_t)value : (int64_t)value;
	return value <= INT64_MAX;
}

/* "N: BYTES [N: BYTES]" */
static bool
take_amounts(struct line *line, int64_t ret[4])
{
	return take_number(line, &ret[0]) && take(line, ":") && take_number(line, &ret[1]) && take(line, "[") &&
		take_number(line, &ret[2]) && take(line, ":") && take_number(line, &ret[3]) && take(line, "]");
}

static int
digit_of(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* "0x1234 0xabcd": where the calls are.  How many; -1: one is none. */
static int64_t
take_addresses(struct legacy *l, struct line *line)
{
	size_t first = l->address_count;

	while (take(line, "0x")) {
		const char *digits = line->at;
		uint64_t    value = 0;

		for (; line->at < line->end && digit_of(*line->at) >= 0; line->at++)
			value = value << 4 | (uint64_t)digit_of(*line->at);
		if (line->at == digits || line->at - digits > 16 || l->address_count >= l->address_room)
			return -1;
		l->addresses[l->address_count++] = value - 1;
	}
	return line->at == line->end ? (int64_t)(l->address_count - first) : -1;
}

static bool
is_map(const struct line *line)
{
	size_t n = (size_t)(line->end - line->at);

	return memmem(line->at, n, "MAPPED_LIBRARIES:", 17) || memmem(line->at, n, "--- Memory map: ---", 19);
}

/* Room for each line and each address that there is. */
static int
make_room_for_lines(struct legacy *l)
{
	size_t lines = 1, addresses = 0;

	for (const char *c = l->at; (c = memchr(c, '\n', (size_t)(l->end - c))); c++)
		lines++;
	for (const char *c = l->at; c + 1 < l->end && (c = memchr(c, 'x', (size_t)(l->end - c))); c++)
		addresses++;
	return make_room(l, lines, addresses);
}

static int
add_stack(struct legacy *l, struct line *line, struct draft *d)
{
	int64_t n;

	d->first = l->address_count;
	n = take_addresses(l, line);
	if (n < 0 || l->count >= l->room)
		return refuse(l, "is damaged: a stack has something else than addresses");
	d->count = (uint32_t)n;
	l->drafts[l->count++] = *d;
	return 0;
}

/* What is left behind the samples. */
static int
read_map(struct legacy *l, struct line *line)
{
	while (!is_map(line))
		if (!next_line(l, line))
			break;
	return legacy_map_read(l->at, (size_t)(l->end - l->at), l->p, l->err);
}

/* ---- heap ---- */

static int64_t
whole(double value)
{
	return value >= 0x1p63 ? INT64_MAX : value > -0x1p63 ? (int64_t)value : INT64_MIN;
}

/* What so much of a sample stands for. */
static void
scale(const struct legacy *l, int64_t *count, int64_t *bytes)
{
	double share;

	if (!*count || !*bytes)
		*count = *bytes = 0;
	if (!*count || l->period <= 1)
		return;
	share = 1 / (1 - exp(-((double)*bytes / (double)*count) / (double)l->period));
	*count = whole((double)*count * share);
	*bytes = whole((double)*bytes * share);
}

/* amounts: in use, allocated.  false: bytes of no block. */
static bool
set_values(const struct legacy *l, int64_t amounts[4], struct draft *d)
{
	int64_t *to = d->values;

	d->block_size = 0;
	for (int i = l->has_all ? 2 : 0; i >= 0; i -= 2, to += 2) {
		to[0] = amounts[i];
		to[1] = amounts[i + 1];
		if (!to[0] && to[1])
			return false;
		if (to[0])
			d->block_size = to[0] == -1 ? (int64_t)-(uint64_t)to[1] : to[1] / to[0];
		if (to[0] && l->is_sampled)
			scale(l, &to[0], &to[1]);
	}
	return true;
}

static int
begin_heap(struct legacy *l, const int64_t totals[4])
{
	static const struct pprof_type types[] = { { "alloc_objects", "count" }, { "alloc_space", "bytes" },
		{ "inuse_objects", "count" }, { "inuse_space", "bytes" }, { "objects", "count" }, { "space", "bytes" } };
	int r;

	l->has_all = (totals[2] != totals[0] && totals[2]) || (totals[3] != totals[1] && totals[3]);
	l->p->drop_frames = drop_heap;
	l->p->keep_frames = keep_heap;
	r = l->has_all ? set_types(l, types, 4, types[5]) : set_types(l, types + 4, 2, types[5]);
	return r ? r : make_room_for_lines(l);
}

/* Behind the '@' of the first line: how it was sampled. */
static bool
read_sampling(struct legacy *l, struct line *line)
{
	l->period = 1;
	if (take(line, "growth") || take(line, "fragmentation") || take(line, "heapprofile"))
		return true;
	l->is_sampled = take(line, "heapz_v2") || take(line, "heap_v2");
	if (!l->is_sampled && !take(line, "heap"))
		return false;
	if (line->at < line->end && *line->at != '/' && !isdigit((unsigned char)*line->at))
		return false;
	if (line->at < line->end && (take(line, "/"), line->at < line->end) && !take_number(line, &l->period))
		return false;
	/* The first version says how many bytes lie between two samples at most. */
	l->period = l->is_sampled ? l->period : l->period / 2;
	l->is_sampled = true;
	return true;
}

static int
parse_heap(struct legacy *l)
{
	struct line line;
	int64_t     amounts[4];
	int         r;

	if (!next_line(l, &line) || !take(&line, HEAP) || !take_amounts(&line, amounts) || !take(&line, "@"))
		return refuse(l, "is no heap profile: its first line has not 'heap profile: N: BYTES [N: BYTES] @ ...'");
	take(&line, "");
	if (begins(&line, "growth") || begins(&line, "fragmentation"))
		amounts[2] = amounts[3] = 0;
	if (!read_sampling(l, &line))
		return refuse(l, "is a heap profile of a kind that is not known: its first line ends in none of "
			"heap_v2, heapprofile, growthz");
	r = begin_heap(l, amounts);
	while (!r && next_line(l, &line) && !is_map(&line)) {
		struct draft d;

		if (line.at == line.end || *line.at == '#')
			continue;
		if (!take_amounts(&line, amounts) || !take(&line, "@"))
			return refuse(l, "is damaged, or cut off: a line has not 'N: BYTES [N: BYTES] @ ADDRESSES'");
		if (!set_values(l, amounts, &d))
			return refuse(l, "is damaged: it has bytes that are no block's");
		r = add_stack(l, &line, &d);
	}
	return r ? r : read_map(l, &line);
}

/* jemalloc: a line with the stack, then "t*: N: BYTES [N: BYTES]" for all threads, and a line for each. */
static int
parse_jemalloc(struct legacy *l)
{
	struct line line, stack = { .at = NULL };
	int64_t     amounts[4];
	int         r = 0;

	l->is_sampled = true;
	if (!next_line(l, &line) || !take(&line, JEMALLOC) || !take_number(&line, &l->period) || line.at != line.end)
		return refuse(l, "is no heap profile of jemalloc: its first line has not 'heap_v2/BYTES'");
	while (!r && next_line(l, &line) && !is_map(&line)) {
		struct draft d;

		if (take(&line, "@")) {
			stack = line;
			continue;
		}
		if (!take(&line, "t*:"))
			continue;
		if (!take_amounts(&line, amounts))
			return refuse(l, "is damaged, or cut off: a line has not 't*: N: BYTES [N: BYTES]'");
		if (!l->p->types)
			r = begin_heap(l, amounts);
		l->p->drop_frames = drop_jemalloc;
		if (!stack.at || r)
			continue;
		if (!set_values(l, amounts, &d))
			return refuse(l, "is damaged: it has bytes that are no block's");
		r = add_stack(l, &stack, &d);
		stack.at = NULL;
	}
	if (!r && !l->p->types)
		return refuse(l, "is cut off");
	return r ? r : read_map(l, &line);
}

/* ---- contention ---- */

/* "cycles/second = 1000".  0; 1: that is no such line. */
static int
read_attribute(struct legacy *l, struct line line, int64_t *hz)
{
	const char *names[] = { "cycles/second", "sampling period", "ms since reset", "discarded samples" };
	int64_t     values[4];

	if (!memchr(line.at, '=', (size_t)(line.end - line.at)))
		return 1;
	for (int i = 0; i < 4; i++) {
		if (!take(&line, names[i]))
			continue;
		if (!take(&line, "=") || (!take_number(&line, &values[i]) && i < 3))
			break;
		if (i == 0)
			*hz = values[i];
		else if (i == 1)
			l->period = values[i];
		else if (i == 2)
			l->p->duration_ns = (int64_t)((uint64_t)values[i] * 1000000);
		return 0;
	}
	return refuse(l, "is a profile of contention with a line that is not known");
}

static int
add_contention(struct legacy *l, struct line *line, int64_t hz)
{
	struct draft d = { .block_size = -1 };
	int64_t      cycles, times;

	if (!take_number(line, &cycles) || !take_number(line, &times) || !take(line, "@"))
		return refuse(l, "is damaged, or cut off: a line has not 'CYCLES N @ ADDRESSES'");
	if (l->period > 0 && hz > 0)
		cycles = whole((double)cycles * (double)l->period / ((double)hz / 1e9));
	if (l->period > 0)
		times = (int64_t)((uint64_t)times * (uint64_t)l->period);
	d.values[0] = times;
	d.values[1] = cycles;
	return add_stack(l, line, &d);
}

static int
parse_contention(struct legacy *l)
{
	static const struct pprof_type types[] = { { "contentions", "count" }, { "delay", "nanoseconds" } };
	struct line                    line;
	int64_t                        hz = 0;
	bool                           in_head = true;
	int                            r = set_types(l, types, 2, types[0]);

	l->period = 1;
	l->p->drop_frames = drop_contention;
	if (!r)
		r = make_room_for_lines(l);
	next_line(l, &line);
	while (!r && next_line(l, &line) && !is_map(&line)) {
		if (line.at == line.end || *line.at == '#')
			continue;
		if (begins(&line, "---"))
			break;
		r = in_head ? read_attribute(l, line, &hz) : 1;
		if (r <= 0)
			continue;
		in_head = false;
		r = add_contention(l, &line, hz);
	}
	return r ? r : read_map(l, &line);
}

/* ---- all ---- */

/* Each address once. */
static int
make_locations(struct legacy *l)
{
	struct pprof *p = l->p;
	struct table  seen;
	int           r = 0;

	l->distinct = arena_array(&p->arena, l->address_count + 1, sizeof(*l->distinct));
	if (!l->distinct)
		return no_memory(l);
	table_init(&seen, &p->budget);
	for (size_t i = 0; i < l->count && !r; i++)
		for (uint32_t k = 0; k < l->drafts[i].count && !r; k++) {
			uint64_t *a = &l->addresses[l->drafts[i].first + k], number = table_get(&seen, *a);

			if (!number) {
				number = ++p->location_count;
				r = table_put(&seen, *a, number);
				l->distinct[number - 1] = *a;
			}
			*a = number - 1;
		}
	table_release(&seen);
	p->locations = r ? NULL : arena_array(&p->arena, p->location_count + 1, sizeof(*p->locations));
	if (!p->locations)
		return no_memory(l);
	for (size_t i = 0; i < p->location_count; i++)
		p->locations[i] = (struct pprof_location){ .object = "", .address = l->distinct[i] };
	return 0;
}

/* As read.c has them: key, text, unit, number. */
static int
label_block(struct legacy *l, int64_t bytes, struct pprof_sample *to)
{
	static const char key[] = "bytes\0\0";
	char              label[sizeof(key) + sizeof(bytes)];

	to->labels = "";
	if (bytes < 0)
		return 0;
	memcpy(label, key, sizeof(key));
	memcpy(label + sizeof(key), &bytes, sizeof(bytes));
	to->labels = arena_strndup(&l->p->arena, label, sizeof(label));
	to->labels_size = sizeof(label);
	return to->labels ? 0 : -ENOMEM;
}

static int
make_samples(struct legacy *l)
{
	struct pprof *p = l->p;

	p->samples = arena_array(&p->arena, l->count + 1, sizeof(*p->samples));
	if (!p->samples)
		return no_memory(l);
	for (size_t i = 0; i < l->count; i++) {
		const struct draft  *d = &l->drafts[i];
		struct pprof_sample *to = &p->samples[i];

		to->stack = arena_array(&p->arena, (size_t)d->count + 1, sizeof(struct pprof_location *));
		if (!to->stack || label_block(l, d->block_size, to) < 0)
			return no_memory(l);
		for (uint32_t k = 0; k < d->count; k++)
			to->stack[k] = &p->locations[l->addresses[d->first + k]];
		to->count = d->count;
		to->values = d->values;
	}
	p->sample_count = l->count;
	return 0;
}

/* The frames of jemalloc itself, which go where it has names, and here where it has none. */
static void
cut_jemalloc(struct pprof *p)
{
	for (size_t i = 0; i < p->sample_count; i++) {
		struct pprof_sample *s = &p->samples[i];

		for (; s->count > 1; s->stack++, s->count--) {
			const char *base = strrchr(s->stack[0]->object, '/');

			if (!base || strncmp(base, "/libjemalloc", 12))
				break;
		}
	}
}

static bool
is_contention(const struct line *line)
{
	return begins(line, "--- contentionz ") || begins(line, "--- mutex:") || begins(line, "--- contention:");
}

bool
legacy_is(const void *data, size_t size)
{
	const struct line line = { data, (const char *)data + size };
	struct words      w;

	return begins(&line, HEAP) || begins(&line, JEMALLOC) || is_contention(&line) || find_words(data, size, &w);
}

int
legacy_read(const void *data, size_t size, struct pprof *ret, struct component_error *err)
{
	const struct line line = { data, (const char *)data + size };
	struct legacy     l = { .p = ret, .err = err, .at = data, .end = line.end };
	struct words      w;
	int               r;

	ret->period_type = (struct pprof_type){ "", "" };
	ret->object = ret->build_id = ret->drop_frames = ret->keep_frames = "";
	if (begins(&line, HEAP))
		r = parse_heap(&l);
	else if (begins(&line, JEMALLOC))
		r = parse_jemalloc(&l);
	else if (is_contention(&line))
		r = parse_contention(&l);
	else
		r = find_words(data, size, &w) ? parse_cpu(&l, &w) : refuse(&l, "is no profile of gperftools or jemalloc");
	ret->period = l.period;
	if (!r)
		r = make_locations(&l);
	if (!r)
		r = make_samples(&l);
	if (!r)
		r = legacy_map_name(ret, err);
	if (!r && begins(&line, JEMALLOC))
		cut_jemalloc(ret);
	return r;
}
