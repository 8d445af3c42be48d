/*
 * cpu.c - where another process' CPU time goes.
 *
 *     perf's ring ──▶ registers, stack ──▶ unwind_copy() by its tables ──▶ stack table ──▶ struct profile
 *
 * What a stranger would get wrong:
 * - A stack is walked soon after it was copied, since objects come and go.  Their tables are read again when
 *   mappings have changed.
 * - The process' CPU clock tells what no sample does: of threads that came and went between two looks, and of
 *   rings that were full.  It is in the profile as [lost samples].  Where time in the kernel is not sampled,
 *   that clock would count it as lost, and is not asked.
 * - A process whose parent does not wait for it stays, with its first thread, and would never seem to end.
 * - A process that begins another program (exec) has other code at the same addresses.  The window ends there, and
 *   what the rings hold at that moment, of 50 ms at most, is left out: it is of both.
 *
 * Tests: tests/componentctl/outside.t.
 */
#include <config.h>

#include "outside.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "perf.h"
#include "process.h"
#include "refused.h"
#include "stack_table.h"
#include "unwind.h"

#define PERIOD_NS  10000000L /* 100 samples for a second of CPU time, as within a process */
#define UNTOLD_PART 50       /* of its periods may be without a sample before that is told */
#define LOOK_MS    50        /* rings have room for longer */
#define TABLES_NS  CLOCK_NS_PER_S /* between two looks for objects that came */

struct sampling {
	struct profile *p;
	uint64_t        samples, without; /* without: registers */
	int             err;
	int             unfollowed; /* why new threads could not be sampled; 0: they were */
};

static void
sample_add(void *arg, const struct perf_sample *s)
{
	struct sampling      *c = arg;
	struct profile_sample sample = { .values = { 1, PERIOD_NS } };
	uintptr_t             pcs[STACK_FRAMES_MAX];
	int                   truncated = 1;
	unsigned              n;

	if (!s->has_registers) {
		c->without++;
		return;
	}
	n = perf_walk(s, pcs, STACK_FRAMES_MAX, &truncated);
	if (truncated && n < STACK_FRAMES_MAX)
		pcs[n++] = STACK_PSEUDO_TRUNCATED;
	c->p->truncated += truncated != 0;
	c->samples++;
	sample.stack = stack_table_add(pcs, n);
	if (!c->err)
		c->err = profile_add(c->p, &sample);
	else
		stack_table_unref(sample.stack);
}

/* Of all its threads, those that are gone as well; -1: it cannot be read any more. */
static int64_t
process_clock_ns(pid_t pid)
{
	struct timespec ts;

	return clock_gettime((clockid_t)(~(unsigned)pid << 3 | 2), &ts) < 0 ? -1 : clock_from_timespec(&ts);
}

static void
tables_follow(void)
{
	static int64_t looked_ns; /* windows may be shorter */
	int64_t        now = clock_ns(CLOCK_MONOTONIC);

	if (now - looked_ns < TABLES_NS)
		return;
	looked_ns = now;
	unwind_refresh();
}

/* Every thread has ended, and the parent has not waited for it.  False, too, where that cannot be read. */
static bool
is_zombie(void)
{
	char    path[PROCESS_PATH_MAX], text[1024], state = 0, *name_end;
	long    threads = 0;
	int     fd = open(process_path("stat", path), O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	name_end = strrchr(text, ')');
	return name_end && sscanf(name_end + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld", &state,
		&threads) == 2 && state == 'Z' && threads <= 1;
}

/* 0 or a negative errno; *ret_cpu_ns: what the process has used meanwhile, -1 if not known; *ret_end: why
 * it ended early, or NULL.  Where new threads cannot be sampled the others still are. */
static int
window(struct perf *perf, int64_t window_ns, outside_go_on_fn *go_on, void *arg, struct sampling *c, int64_t *ret_cpu_ns,
       const char **ret_end)
{
	int64_t begin = clock_ns(CLOCK_MONOTONIC), done = 0, used = process_clock_ns(perf->pid), now;
	int     r;

	*ret_cpu_ns = -1;
	*ret_end = NULL;
	while (!*ret_end && !c->err && done < window_ns && go_on(arg, done)) {
		int64_t left_ms = (window_ns - done) / 1000000 + 1;

		poll(NULL, 0, left_ms < LOOK_MS ? (int)left_ms : LOOK_MS);
		if (perf_look(perf)) {
			*ret_end = "the process began another program";
			break;
		}
		perf_drain(perf, sample_add, c);
		tables_follow();
		now = process_clock_ns(perf->pid);
		if (now >= 0 && used >= 0)
			*ret_cpu_ns = now - used;
		r = perf_follow(perf);
		if (r == -ESRCH || perf->count == 0 || (used >= 0 && now < 0) || is_zombie())
			*ret_end = "the process ended";
		else if (r < 0)
			c->unfollowed = r;
		done = clock_ns(CLOCK_MONOTONIC) - begin;
	}
	c->p->duration_ns = done;
	return c->err;
}

/* What no sample tells of.  Each thread that is alive has parts of periods that are not over, one on each processor that it
 * ran on: where they are many that is told, too. */
static uint64_t
unseen(const struct perf *perf, const struct sampling *c, int64_t cpu_ns)
{
	uint64_t due = cpu_ns > 0 ? (uint64_t)(cpu_ns / PERIOD_NS) : 0;
	uint64_t told = c->samples + c->without + perf->lost, parts = perf->count * (uint64_t)perf->ring_count;
	uint64_t few = perf->count + told / UNTOLD_PART;

	told += parts < few ? parts : few;
	return !perf->no_kernel && due > told ? due - told : 0;
}

static int
lost_add(struct profile *p, uint64_t lost)
{
	struct profile_sample s = { .stack = STACK_PSEUDO_LOST, .values = { (int64_t)lost, (int64_t)lost * PERIOD_NS } };

	if (lost == 0)
		return 0;
	stack_table_ref(s.stack);
	return profile_add(p, &s);
}

static void
describe(struct profile *p, const struct perf *perf, const struct sampling *c, const char *end)
{
	profile_comment(p, "from outside, by perf_event_open(2): nothing was loaded into process %d", (int)perf->pid);
	profile_comment(p, "samples: %llu", (unsigned long long)(c->samples + p->lost));
	profile_comment(p, "lost samples: %llu", (unsigned long long)p->lost);
	profile_comment(p, "truncated stacks: %llu", (unsigned long long)p->truncated);
	profile_comment(p, "unwinder: %s", unwind_name());
	if (perf->no_kernel)
		profile_comment(p, "time in the kernel is not in it: that is for root, or with kernel.perf_event_paranoid=1");
	if (c->unfollowed)
		profile_comment(p, "threads that began later may be missing: %s", strerror(-c->unfollowed));
	if (end)
		profile_comment(p, "%s meanwhile", end);
}

int
outside_cpu(int64_t window_ns, outside_go_on_fn *go_on, void *arg, struct profile *ret, bool *ret_ended, struct component_error *err)
{
	pid_t           pid = process_other();
	struct profile  p;
	struct sampling c = { .p = &p };
	struct perf     perf;
	int64_t         cpu_ns = -1;
	const char     *end = NULL;
	int             r = perf_open(&perf, pid, PERIOD_NS);

	if (r < 0)
		return refused_perf(pid, r, err);
	profile_init(&p, "profile");
	p.types[p.type_count++] = (struct profile_type){ "samples", "count" };
	p.types[p.type_count++] = (struct profile_type){ "cpu", "nanoseconds" };
	p.period_type = p.types[1];
	p.period = PERIOD_NS;
	p.time_ns = clock_ns(CLOCK_REALTIME);
	r = perf_follow(&perf);
	if (r >= 0)
		r = r == 0 ? -ESRCH : window(&perf, window_ns, go_on, arg, &c, &cpu_ns, &end);
	if (r < 0 && !c.err)
		r = refused_perf(pid, r, err);
	p.lost = c.without + perf.lost + unseen(&perf, &c, cpu_ns);
	p.lost_told = true; /* by lost_add() */
	describe(&p, &perf, &c, end);
	*ret_ended = end != NULL;
	if (end && process_look_at(pid) == 0) /* the other program, for a window after this one */
		unwind_refresh();
	if (r >= 0)
		r = lost_add(&p, p.lost);
	if (r == -ENOMEM)
		component_error_set(err, "there is no memory for what was measured");
	perf_close(&perf);
	return profile_done(&p, r < 0 ? r : 0, ret);
}

int
outside_may_sample(pid_t pid, bool *ret_kernel, struct component_error *err)
{
	struct perf p;
	int         r = perf_open(&p, pid, PERIOD_NS), followed = r ? r : perf_follow(&p);

	*ret_kernel = !p.no_kernel;
	if (!r)
		perf_close(&p);
	return followed < 0 ? refused_perf(pid, followed, err) : 0;
}
