/*
 * test_tracer.c - the collector of execution traces: its ring, its windows, and what it
 * leaves behind.
 */
#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <component/trace.h>

#include "collector.h"
#include "hidden_frames.h"
#include "skip.h"
#include "stack_table.h"
#include "trace/finish.h"
#include "trace/reason.h"
#include "events/ring.h"
#include "events/wait.h"
#include "trace/tracer.h"
#include "unwind.h"
#include "waiting.h"
#include "windows.h"

#define DEADLINE_NS 60000000000LL

/* ---- calls in the midst of what is tested, by ld's --wrap ---- */

static const char *cpus_path; /* in place of the kernel's list of processors */
static void (*before_output)(void), (*after_growth)(size_t bytes), (*in_walk)(void);

int __real_ioctl(int fd, unsigned long request, void *arg);
int __wrap_ioctl(int fd, unsigned long request, void *arg);
int
__wrap_ioctl(int fd, unsigned long request, void *arg)
{
	if (request == PERF_EVENT_IOC_SET_OUTPUT && before_output)
		before_output();
	return __real_ioctl(fd, request, arg);
}

int __real_our_fd_open(const char *path, int flags, mode_t mode);
int __wrap_our_fd_open(const char *path, int flags, mode_t mode);
int
__wrap_our_fd_open(const char *path, int flags, mode_t mode)
{
	return __real_our_fd_open(cpus_path && strstr(path, "cpu/online") ? cpus_path : path, flags, mode);
}

void *__real_mremap(void *old, size_t bytes, size_t more, int flags);
void *__wrap_mremap(void *old, size_t bytes, size_t more, int flags);
void *
__wrap_mremap(void *old, size_t bytes, size_t more, int flags)
{
	void *moved = __real_mremap(old, bytes, more, flags);

	if (after_growth)
		after_growth(bytes);
	return moved;
}

unsigned __real_unwind_capture(const struct unwind_regs *r, uintptr_t *pcs, unsigned max, int *ret_truncated);
unsigned __wrap_unwind_capture(const struct unwind_regs *r, uintptr_t *pcs, unsigned max, int *ret_truncated);
unsigned
__wrap_unwind_capture(const struct unwind_regs *r, uintptr_t *pcs, unsigned max, int *ret_truncated)
{
	unsigned count = __real_unwind_capture(r, pcs, max, ret_truncated);
	void   (*then)(void) = in_walk;

	in_walk = NULL;
	if (then)
		then();
	return count;
}

/* ---- the ring ---- */

static void
count_event(void *arg, const struct trace_event *e)
{
	uint64_t *sums = arg; /* by type */

	assert_in_range(e->type, 0, 127);
	assert_in_range(e->count, 0, STACK_FRAMES_MAX);
	assert_int_equal(strlen(e->name), e->name_size);
	assert_int_equal(strlen(e->text), e->text_size);
	sums[e->type] += e->value;
}

static void
what_is_written_is_read_and_what_has_no_room_is_counted(void **state)
{
	uintptr_t          pcs[STACK_FRAMES_MAX] = { 1, 2, 3 };
	char               text[3000];
	struct trace_event e = { .type = TRACE_LOG, .value = 1, .pcs = pcs, .count = STACK_FRAMES_MAX, .name = "name",
		.text = text };
	uint64_t           sums[128] = { 0 }, written = 0, tried = 0;

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_false(events_ring_add(&e)); /* closed */
	assert_int_equal(events_ring_open(), 0);
	for (int round = 0; round < 3; round++) {
		while (tried++, events_ring_add(&e)) {
			e.count = (e.count + 7) % STACK_FRAMES_MAX;
			written++;
		}
		events_ring_drain(count_event, sums);
	}
	assert_int_equal(sums[TRACE_LOG], written);
	assert_int_equal(events_ring_lost(), tried - written);
	events_ring_close();
}

/* Whatever the distance of the first one from the ring's end, and what is left of it. */
static void
a_full_ring_keeps_its_oldest_record_at_every_place(void **state)
{
	char               text[] = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
	struct trace_event shift = { .type = TRACE_TASK_END, .value = 1 }, e = { .type = TRACE_LOG, .value = 1 };
	uint64_t           sums[128] = { 0 }, written = 0;

	(void)state;
	assert_int_equal(events_ring_open(), 0);
	for (size_t length = 0; length < sizeof(text); length += 8) {
		shift.text = text + sizeof(text) - 1 - length;
		assert_true(events_ring_add(&shift));
		events_ring_drain(count_event, sums);
		while (events_ring_add(&e))
			written++;
		events_ring_drain(count_event, sums);
		assert_int_equal(sums[TRACE_LOG], written);
	}
	events_ring_close();
}

static void
count_and_add(void *arg, const struct trace_event *e)
{
	int *told = arg;

	if (++*told < 100) /* there is an end to it in any case */
		assert_true(events_ring_add(&(struct trace_event){ .type = e->type }));
}

static void
what_comes_while_a_ring_is_read_is_for_the_next_time(void **state)
{
	int told = 0;

	(void)state;
	assert_int_equal(events_ring_open(), 0);
	assert_true(events_ring_add(&(struct trace_event){ .type = TRACE_LOG }));
	events_ring_drain(count_and_add, &told);
	assert_int_equal(told, 1);
	events_ring_drain(count_and_add, &told);
	assert_int_equal(told, 2);
	events_ring_close();
}

static void
take_event(void *arg, const struct trace_event *e)
{
	*(struct trace_event *)arg = *e;
}

static void
a_wait_begins_when_its_stack_has_been_walked(void **state)
{
	struct unwind_regs here = UNWIND_REGS_HERE;
	struct events_wait w = { .since_ns = 1, .pc = here.pc, .sp = here.sp, .fp = here.fp, .reason = TRACE_SLEEP };
	struct trace_event e = { .type = TRACE_LOG };
	int64_t            before = trace_now_ns();

	(void)state;
	assert_int_equal(events_ring_open(), 0);
	assert_int_equal(events_wait_open(), 0);
	events_wait_begin(&w);
	assert_true(w.since_ns >= before);
	events_wait_look(take_event, &e);
	assert_int_equal(e.type, TRACE_WAIT);
	assert_int_equal(e.time_ns, w.since_ns);
	events_wait_end(&w, trace_now_ns(), 0);
	events_ring_drain(take_event, &e);
	assert_int_equal(e.type, TRACE_EVENT_WAITED);
	assert_int_equal(e.time_ns, w.since_ns);
	events_wait_close();
	events_ring_close();
}

struct leaves {
	uintptr_t pc[4];
	unsigned  count;
};

static void
take_leaf(void *arg, const struct trace_event *e)
{
	struct leaves *l = arg;

	if (e->type == TRACE_EVENT_WAITED && l->count < 4)
		l->pc[l->count++] = e->count ? e->pcs[0] : 0;
}

static __attribute__((noinline)) uintptr_t
wait_here(uint8_t reason)
{
	struct unwind_regs here = UNWIND_REGS_HERE;
	struct events_wait w = { .pc = here.pc, .sp = here.sp, .fp = here.fp, .reason = reason };

	events_wait_begin(&w);
	events_wait_end(&w, w.since_ns, 0);
	return here.pc;
}

static volatile uintptr_t handler_pc;

static void
wait_in_a_handler(int number)
{
	(void)number;
	handler_pc = wait_here(TRACE_NETWORK);
}

static void
be_interrupted(void)
{
	raise(SIGUSR1);
}

/* As that of SIGCHLD that writes into a pipe. */
static void
a_wait_whose_walk_a_handlers_wait_interrupts_keeps_its_stack(void **state)
{
	struct sigaction before, action = { .sa_handler = wait_in_a_handler };
	struct leaves    leaves = { .count = 0 };
	uintptr_t        pc;

	(void)state;
	assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
	assert_int_equal(events_ring_open(), 0);
	assert_int_equal(events_wait_open(), 0);
	in_walk = be_interrupted;
	pc = wait_here(TRACE_SYNC);
	events_ring_drain(take_leaf, &leaves);
	events_wait_close();
	events_ring_close();
	sigaction(SIGUSR1, &before, NULL);
	assert_int_equal(leaves.count, 2);
	assert_int_equal(leaves.pc[0], handler_pc - 1);
	assert_int_equal(leaves.pc[1], pc - 1);
	assert_int_not_equal(pc, handler_pc);
}

static atomic_bool stop;

static void *
write_until_cancelled(void *arg)
{
	struct trace_event e = { .type = TRACE_TASK_END, .value = 1, .text = "some text to copy" };

	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	for (;;)
		events_ring_add(&e);
	return arg;
}

static void *
read_until_stopped(void *sums)
{
	while (!atomic_load(&stop))
		events_ring_drain(count_event, sums);
	return NULL;
}

static void
a_writer_that_is_cancelled_in_the_middle_stops_nobody_for_long(void **state)
{
	struct trace_event e = { .type = TRACE_TASK_BEGIN, .value = 1 };
	uint64_t           sums[128] = { 0 };
	int64_t            until = trace_now_ns() + DEADLINE_NS;
	pthread_t          reader, writer;

	(void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	SKIP("sanitizers do not survive a thread that is cancelled asynchronously");
#endif
	assert_int_equal(events_ring_open(), 0);
	assert_int_equal(pthread_create(&reader, NULL, read_until_stopped, sums), 0);
	for (int i = 0; i < 40; i++) {
		assert_int_equal(pthread_create(&writer, NULL, write_until_cancelled, NULL), 0);
		for (volatile int k = 0; k < 20000 + i * 997; k++)
			;
		pthread_cancel(writer);
		pthread_join(writer, NULL);
	}
	while (__atomic_load_n(&sums[TRACE_TASK_BEGIN], __ATOMIC_RELAXED) == 0 && trace_now_ns() < until) {
		events_ring_add(&e);
		sched_yield();
	}
	atomic_store(&stop, true);
	pthread_join(reader, NULL);
	atomic_store(&stop, false);
	assert_true(sums[TRACE_TASK_BEGIN] > 0);
	events_ring_close();
}

/* ---- from what was seen to a trace ---- */

static void
add(struct trace *t, uint64_t time_ns, int32_t tid, int type, unsigned cpu, uint64_t value)
{
	struct trace_record r = { .time_ns = time_ns, .tid = tid, .type = (uint8_t)type, .cpu = (uint16_t)cpu,
		.value = value };

	if (type == TRACE_RECORD_NAME)
		r.text = trace_text(t, value ? "late" : "early", 100);
	assert_int_equal(trace_add(t, &r), 0);
}

static void
states_names_births_and_deaths_are_made_out(void **state)
{
	/* None of these tids is a thread of ours whose name could be read. */
	enum { RAN = 400000001, WAITED, SLEPT, STILL, BORN, TWICE };
	struct trace        t;
	struct trace_thread thread = { .state = TRACE_STATE_WAITING, .reason = TRACE_NETWORK };

	(void)state;
	trace_init(&t);
	t.source = TRACE_BY_SWITCHES;
	t.start_ns = 1000000;
	t.end_ns = 100000000;
	for (thread.tid = RAN; thread.tid <= STILL; thread.tid++)
		assert_int_equal(trace_add_thread(&t, &thread), 0);
	thread.tid = TWICE;
	assert_int_equal(trace_add_thread(&t, &thread), 0);
	add(&t, 1500000, RAN, TRACE_OUT, 0, 0);    /* before the dump was done: it ran */
	add(&t, 1600000, WAITED, TRACE_IN, 0, 0);  /* it did not */
	add(&t, 500000, SLEPT, TRACE_WAIT, 0, 0);  /* began before, told of later */
	add(&t, 90000000, SLEPT, TRACE_WAIT_END, 0, 0);
	add(&t, 50000000, STILL, TRACE_IN, 0, 0);  /* the dump was first */
	add(&t, 40000000, BORN, TRACE_CREATE, 0, 0x1234);
	add(&t, 40000500, BORN, TRACE_CREATE, 0, 0); /* the kernel's word of it */
	add(&t, 41000000, BORN, TRACE_RECORD_NAME, 0, 0);
	add(&t, 42000000, BORN, TRACE_RECORD_NAME, 0, 1);
	add(&t, 43000000, BORN, TRACE_EXIT, 0, 0);
	add(&t, 43001000, BORN, TRACE_OUT, 0, 0);  /* on its way out */
	add(&t, 43002000, BORN, TRACE_EXIT, 0, 0);
	add(&t, 44000000, BORN, TRACE_CREATE, 0, 0); /* another one */
	add(&t, 30000000, TWICE, TRACE_IN, 1, 0);
	add(&t, 30002000, TWICE, TRACE_IN, 1, 0);
	add(&t, 31000000, TWICE, TRACE_OUT, 1, 0);
	add(&t, 100000001, TWICE, TRACE_IN, 1, 0); /* behind the end */
	assert_int_equal(trace_finish(&t, 2000000), 0);
	assert_int_equal(t.thread_count, 7);
	assert_int_equal(t.threads[0].state, TRACE_STATE_RUNNING);
	assert_int_equal(t.threads[1].state, TRACE_STATE_WAITING);
	assert_int_equal(t.threads[1].reason, TRACE_OTHER);
	assert_int_equal(t.threads[2].reason, TRACE_OTHER); /* the wait's, which has none set */
	assert_int_equal(t.threads[3].state, TRACE_STATE_WAITING);
	assert_int_equal(t.threads[3].reason, TRACE_NETWORK);
	assert_int_equal(t.threads[5].tid, BORN);
	assert_int_equal(t.threads[5].born_ns, 40000000);
	assert_int_equal(t.threads[5].routine, 0x1234);
	assert_string_equal(t.threads[5].name, "late");
	assert_int_equal(t.threads[6].born_ns, 44000000);
	assert_int_equal(t.count, 9); /* RAN, WAITED, SLEPT's end, STILL, 2 CREATE, EXIT, TWICE's IN and OUT */
	for (size_t i = 1; i < t.count; i++)
		assert_true(t.records[i - 1].time_ns <= t.records[i].time_ns);
	trace_release(&t);
}

static void
a_system_call_tells_what_is_waited_for(void **state)
{
	(void)state;
	assert_int_equal(trace_reason_of_call(SYS_futex), TRACE_SYNC);
	assert_int_equal(trace_reason_of_call(SYS_recvfrom), TRACE_NETWORK);
	assert_int_equal(trace_reason_of_call(SYS_clock_nanosleep), TRACE_SLEEP);
	assert_int_equal(trace_reason_of_call(SYS_fsync), TRACE_OTHER);
	assert_int_equal(trace_reason_of_call(-1), TRACE_OTHER);
}

/* ---- windows ---- */

static unsigned
entries(const char *path, const char *link)
{
	DIR           *dir = opendir(path);
	struct dirent *d;
	unsigned       n = 0;
	char           to[256];

	assert_non_null(dir);
	while ((d = readdir(dir))) {
		ssize_t got = link ? readlinkat(dirfd(dir), d->d_name, to, sizeof(to) - 1) : 0;

		if (got < 0)
			continue;
		to[got] = '\0';
		n += d->d_name[0] != '.' && (!link || strstr(to, link));
	}
	closedir(dir);
	return n;
}

static size_t
count_of(const struct trace *t, int type)
{
	size_t n = 0;

	for (size_t i = 0; i < t->count; i++)
		n += t->records[i].type == type;
	return n;
}

static void
every_word_of_the_program_is_in_the_trace_or_counted(void **state)
{
	enum { PAIRS = 100000 };
	struct tracer_window *w;
	struct trace          t;

	(void)state;
	assert_false(component_trace_is_on());
	assert_int_equal(component_trace_task_begin("nothing", 0), 0);
	assert_int_equal(tracer_open(&w), 0);
	assert_true(component_trace_is_on());
	for (int i = 0; i < PAIRS; i++) {
		component_trace_region_begin(0, "region");
		component_trace_region_end(0, "region");
	}
	assert_int_equal(tracer_close(w, &t), 0);
	assert_true(count_of(&t, TRACE_REGION_BEGIN) > 1000);
	assert_true(count_of(&t, TRACE_REGION_BEGIN) + count_of(&t, TRACE_REGION_END) <= 2 * PAIRS);
	assert_true(count_of(&t, TRACE_REGION_BEGIN) + count_of(&t, TRACE_REGION_END) + t.lost >= 2 * PAIRS);
	trace_release(&t);
}

static void
settle(void)
{
	pthread_mutex_lock(&collect_trace.windows->lock);
	collect_trace.windows->settle();
	pthread_mutex_unlock(&collect_trace.windows->lock);
}

static void
a_window_counts_what_it_has_lost_itself(void **state)
{
	enum { AT_ONCE = 4000, MORE = 100 };
	char                  text[TRACE_EVENT_TEXT_MAX + 1];
	struct trace_event    e = { .type = TRACE_LOG, .text = text, .cpu = TRACE_CPU_NONE, .tid = trace_tid() };
	struct tracer_window *full, *later;
	struct trace          t;

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(tracer_open(&full), 0);
	for (size_t bytes = 0; bytes < TRACER_TEXTS_MAX; bytes += AT_ONCE * (sizeof(text) - 1)) {
		for (int i = 0; i < AT_ONCE; i++) {
			text[0] = (char)('a' + i % 26); /* equal ones take no room */
			assert_true(events_ring_add(&e));
		}
		settle();
	}
	assert_int_equal(tracer_open(&later), 0);
	e.time_ns = (uint64_t)trace_now_ns();
	for (int i = 0; i < MORE; i++)
		assert_true(events_ring_add(&e));
	assert_int_equal(tracer_close(later, &t), 0);
	assert_int_equal(count_of(&t, TRACE_LOG), MORE);
	assert_int_equal(t.lost, 0);
	trace_release(&t);
	assert_int_equal(tracer_close(full, &t), 0);
	assert_true(t.lost >= MORE);
	trace_release(&t);
}

HOOKS_FRAME __attribute__((noinline)) static void
frame_of_a_hook(void)
{
	__asm__ volatile("");
}

/* The signal may come in a hook. */
static void
a_sample_leaves_out_the_frames_of_hooks(void **state)
{
	const uintptr_t       pcs[] = { (uintptr_t)settle, (uintptr_t)frame_of_a_hook, (uintptr_t)count_of };
	struct trace_event    e = { .type = TRACE_SAMPLE, .value = 4711, .cpu = TRACE_CPU_NONE, .tid = trace_tid(),
		.pcs = pcs, .count = 3 };
	const uintptr_t      *got = NULL;
	unsigned              n = 0;
	struct tracer_window *w;
	struct trace          t;

	(void)state;
	assert_int_equal(tracer_open(&w), 0);
	e.time_ns = (uint64_t)trace_now_ns();
	assert_true(events_ring_add(&e));
	assert_int_equal(tracer_close(w, &t), 0);
	for (size_t i = 0; i < t.count && !got; i++)
		if (t.records[i].type == TRACE_SAMPLE && t.records[i].value == 4711)
			got = stack_table_pcs(t.records[i].stack, &n);
	assert_non_null(got);
	assert_int_equal(n, 2);
	assert_int_equal(got[0], pcs[0]);
	assert_int_equal(got[1], pcs[2]);
	trace_release(&t);
}

static void *
ask_status(void *arg)
{
	char text[256];

	collect_trace.less(text, sizeof(text));
	atomic_store((atomic_bool *)arg, true);
	return NULL;
}

static void
its_status_is_told_while_a_trace_takes_its_time_to_begin(void **state)
{
	atomic_bool told = false;
	bool        in_time;
	pthread_t   t;

	(void)state;
	pthread_mutex_lock(&collect_trace.windows->lock);
	assert_int_equal(pthread_create(&t, NULL, ask_status, &told), 0);
	WAIT_FOR_S(atomic_load(&told), DEADLINE_NS / CLOCK_NS_PER_S);
	in_time = atomic_load(&told);
	pthread_mutex_unlock(&collect_trace.windows->lock);
	pthread_join(t, NULL);
	assert_true(in_time);
}

static void
a_processor_above_the_limit_is_named_as_the_reason(void **state)
{
	char                  path[] = "/tmp/test_tracer.XXXXXX", text[256];
	int                   fd = mkstemp(path), wrote = dprintf(fd, "0-1,600\n"), r;
	struct tracer_window *w;

	(void)state;
	close(fd);
	cpus_path = path;
	r = tracer_open(&w);
	cpus_path = NULL;
	unlink(path);
	assert_true(wrote > 0);
	assert_int_equal(r, 0);
	tracer_cancel(w);
	collect_trace.less(text, sizeof(text));
	if (strstr(text, "seccomp"))
		SKIP("under a seccomp filter nobody asks for processors");
	assert_non_null(strstr(text, "a processor's number is above 511"));
}

static void *
annotate(void *arg)
{
	uint64_t task = component_trace_task_begin("life", 0);

	component_trace_log(task, "", "%s", "hello");
	component_trace_task_end(task);
	return arg;
}

static void
windows_overlap_and_leave_nothing_behind(void **state)
{
	struct tracer_window *w[3];
	struct trace          t[3];
	pthread_t             thread;
	unsigned              fds, tasks;

	(void)state;
	assert_int_equal(tracer_open(&w[0]), 0); /* what stays after the first stays */
	tracer_cancel(w[0]);
	fds = entries("/proc/self/fd", NULL);
	tasks = entries("/proc/self/task", NULL);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(tracer_open(&w[i]), 0);
		assert_int_equal(pthread_create(&thread, NULL, annotate, NULL), 0);
		pthread_join(thread, NULL);
	}
	for (int i = 2; i >= 0; i--)
		assert_int_equal(tracer_close(w[i], &t[i]), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(count_of(&t[i], TRACE_TASK_BEGIN), 3 - i);
		assert_int_equal(count_of(&t[i], TRACE_LOG), 3 - i);
		assert_true(count_of(&t[i], TRACE_CREATE) >= (size_t)(3 - i));
		assert_true(count_of(&t[i], TRACE_EXIT) >= (size_t)(3 - i));
		assert_int_equal(t[i].lost, 0);
		assert_true(t[i].thread_count >= (size_t)(4 - i));
		trace_release(&t[i]);
	}
	assert_int_equal(entries("/proc/self/fd", NULL), fds);
	assert_int_equal(entries("/proc/self/fd", "perf_event"), 0);
	assert_int_equal(entries("/proc/self/task", NULL), tasks);
}

static void
write_regions(unsigned count)
{
	char name[TRACE_EVENT_NAME_MAX];

	for (unsigned i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "region %u", i % 1000);
		component_trace_region_begin(0, name);
		component_trace_region_end(0, name);
		if (i % 100 == 0)
			settle(); /* before a ring is full */
	}
}

static void
of_a_window_that_goes_on_what_there_is_so_far_can_be_had(void **state)
{
	enum { PAIRS = 20000 };
	struct tracer_window *w;
	struct trace          so_far[2], t;

	(void)state;
	assert_int_equal(tracer_open(&w), 0);
	for (int i = 0; i < 2; i++) {
		write_regions(PAIRS);
		assert_int_equal(tracer_so_far(w, &so_far[i]), 0);
		assert_int_equal(so_far[i].lost, 0);
		assert_int_equal(count_of(&so_far[i], TRACE_REGION_BEGIN), (i + 1) * PAIRS);
		assert_int_equal(count_of(&so_far[i], TRACE_REGION_END), (i + 1) * PAIRS);
		assert_true(so_far[i].thread_count >= 1);
		for (size_t k = 0; k < so_far[i].count; k++)
			assert_in_range(so_far[i].records[k].time_ns, so_far[i].start_ns, so_far[i].end_ns);
	}
	assert_int_equal(so_far[0].start_ns, so_far[1].start_ns);
	assert_true(so_far[0].end_ns < so_far[1].end_ns);
	trace_release(&so_far[0]);
	assert_int_equal(tracer_close(w, &t), 0); /* while a copy is there still, which then has its stacks alone */
	assert_int_equal(count_of(&t, TRACE_REGION_BEGIN), 2 * PAIRS);
	trace_release(&t);
	for (size_t k = 0; k < so_far[1].count; k++)
		if (so_far[1].records[k].type == TRACE_REGION_BEGIN) {
			unsigned n = 0;

			assert_non_null(stack_table_pcs(so_far[1].records[k].stack, &n));
			assert_true(n > 0);
			assert_memory_equal(trace_string(&so_far[1], so_far[1].records[k].name), "region ", 7);
		}
	trace_release(&so_far[1]);
}

static void
a_sample_says_on_which_processor_it_was_taken(void **state)
{
	struct tracer_window *w;
	struct trace          t;
	cpu_set_t             all, one;
	size_t                seen = 0;
	int                   last = CPU_SETSIZE - 1;

	(void)state;
	if (!ARCH_CPU_IN_MEMORY)
		SKIP("to ask for the processor is a system call here");
	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	while (!CPU_ISSET(last, &all))
		last--;
	CPU_ZERO(&one);
	CPU_SET(last, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	assert_int_equal(tracer_open(&w), 0);
	for (int64_t begin = clock_ns(CLOCK_THREAD_CPUTIME_ID); clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin < 300000000;)
		;
	assert_int_equal(tracer_close(w, &t), 0);
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
	for (size_t i = 0; i < t.count; i++)
		if (t.records[i].type == TRACE_SAMPLE && t.records[i].tid == getpid()) {
			assert_int_equal(t.records[i].cpu, last);
			seen++;
		}
	assert_in_range(seen, 5, 100); /* 100 a second */
	trace_release(&t);
}

/* The child counts by system calls alone: it must not allocate. */
static int
child(void)
{
	char path[64], to[64];

	if (component_trace_is_on())
		return 1;
	for (int fd = 0; fd < 1024; fd++) {
		ssize_t got;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		got = readlink(path, to, sizeof(to) - 1);
		to[got > 0 ? got : 0] = '\0';
		if (strstr(to, "perf_event"))
			return 2;
	}
	component_trace_log(0, "", "nobody hears it");
	return 0;
}

static void
a_child_has_no_trace_and_none_of_its_descriptors(void **state)
{
	struct tracer_window *w;
	struct trace          t;
	int                   status;
	pid_t                 pid;

	(void)state;
	assert_int_equal(tracer_open(&w), 0);
	for (int i = 0; i < 10; i++) {
		pid = fork();
		if (pid == 0)
			_exit(child());
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
	assert_true(component_trace_is_on());
	assert_int_equal(tracer_close(w, &t), 0);
	trace_release(&t);
}

static struct {
	int held, good, bad; /* a fork would wait; its child went on well, or not */
} forks;

/* In a call that is wrapped: what it breaks off there must not be asserted. */
static void
fork_if_one_can(void)
{
	int   status;
	pid_t pid;

	if (pthread_mutex_trylock(&collect_trace.windows->lock)) {
		forks.held++;
		return;
	}
	pthread_mutex_unlock(&collect_trace.windows->lock);
	pid = fork();
	if (pid == 0)
		_exit(child());
	if (pid > 0 && waitpid(pid, &status, 0) == pid && status == 0)
		forks.good++;
	else
		forks.bad++;
	if (forks.good == 4) /* there are as many calls as threads and processors */
		before_output = NULL;
}

#define THREADS_AT_FIRST 64 /* that a trace has room for (model/trace.c) */
#define IDLE_MAX         80

static sem_t     idle_end;
static pthread_t idle_threads[IDLE_MAX];

static void *
idle(void *arg)
{
	sem_wait(&idle_end);
	return arg;
}

static void
idle_begin(int count)
{
	sem_init(&idle_end, 0, 0);
	for (int i = 0; i < count; i++)
		assert_int_equal(pthread_create(&idle_threads[i], NULL, idle, NULL), 0);
}

static void
idle_stop(int count)
{
	for (int i = 0; i < count; i++)
		sem_post(&idle_end);
	for (int i = 0; i < count; i++)
		pthread_join(idle_threads[i], NULL);
}

/* Of many threads that takes long. */
static void
a_thread_may_fork_while_the_kernels_events_are_opened(void **state)
{
	struct tracer_window *w;

	(void)state;
	memset(&forks, 0, sizeof(forks));
	idle_begin(2);
	before_output = fork_if_one_can;
	assert_int_equal(tracer_open(&w), 0);
	before_output = NULL;
	tracer_cancel(w);
	idle_stop(2);
	assert_int_equal(forks.held, 0);
	assert_int_equal(forks.bad, 0);
	if (!forks.good)
		SKIP("the kernel gives no events of switches");
}

static void
fork_if_threads_have_moved(size_t bytes)
{
	if (bytes == THREADS_AT_FIRST * sizeof(struct trace_thread))
		fork_if_one_can();
}

static void
a_child_that_is_forked_while_a_windows_threads_are_entered_goes_on(void **state)
{
	struct tracer_window *w;

	(void)state;
	memset(&forks, 0, sizeof(forks));
	idle_begin(IDLE_MAX);
	after_growth = fork_if_threads_have_moved;
	assert_int_equal(tracer_open(&w), 0);
	after_growth = NULL;
	tracer_cancel(w);
	idle_stop(IDLE_MAX);
	assert_int_equal(forks.bad, 0);
	assert_int_equal(forks.held + forks.good, 1); /* the list has moved */
}

static void
words_and_calls_leave_errno_alone(void **state)
{
	struct tracer_window *w;
	uint64_t              task;
	char                  byte = 0;
	int                   pair[2];

	(void)state;
	assert_int_equal(pipe(pair), 0);
	assert_int_equal(tracer_open(&w), 0);
	errno = 4711;
	task = component_trace_task_begin("errno", 0);
	assert_int_equal(errno, 4711);
	component_trace_region_begin(task, "errno");
	assert_int_equal(errno, 4711);
	component_trace_log(task, "errno", "%s", "is kept");
	assert_int_equal(errno, 4711);
	component_trace_region_end(task, "errno");
	assert_int_equal(errno, 4711);
	component_trace_task_end(task);
	assert_int_equal(errno, 4711);
	assert_int_equal(write(pair[1], &byte, 1), 1);
	assert_int_equal(read(pair[0], &byte, 1), 1);
	assert_int_equal(errno, 4711);
	assert_int_equal(read(-1, &byte, 1), -1);
	assert_int_equal(errno, EBADF);
	tracer_cancel(w);
	close(pair[0]);
	close(pair[1]);
}

/* In a child without stdin: 0, or what went wrong; 77 where the kernel gives no events. */
static int
descriptors_of_a_window(void)
{
	struct tracer_window *w;
	char                  path[64], to[64];
	int                   events = 0;

	close(STDIN_FILENO);
	if (tracer_open(&w) < 0)
		return 1;
	for (int fd = 0; fd < 1024; fd++) {
		ssize_t got;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		got = readlink(path, to, sizeof(to) - 1);
		to[got > 0 ? got : 0] = '\0';
		if (!strstr(to, "perf_event"))
			continue;
		events++;
		if (fd <= STDERR_FILENO)
			return 2;
		if (!(fcntl(fd, F_GETFD) & FD_CLOEXEC))
			return 3;
	}
	return events ? 0 : 77;
}

static void
descriptors_of_a_window_are_close_on_exec_and_above_2(void **state)
{
	int   status;
	pid_t pid = fork();

	(void)state;
	if (pid == 0)
		_exit(descriptors_of_a_window());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		SKIP("the kernel gives no events of switches");
	assert_int_equal(WEXITSTATUS(status), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read_and_what_has_no_room_is_counted),
		cmocka_unit_test(a_full_ring_keeps_its_oldest_record_at_every_place),
		cmocka_unit_test(what_comes_while_a_ring_is_read_is_for_the_next_time),
		cmocka_unit_test(a_wait_begins_when_its_stack_has_been_walked),
		cmocka_unit_test(a_wait_whose_walk_a_handlers_wait_interrupts_keeps_its_stack),
		cmocka_unit_test(a_writer_that_is_cancelled_in_the_middle_stops_nobody_for_long),
		cmocka_unit_test(states_names_births_and_deaths_are_made_out),
		cmocka_unit_test(a_system_call_tells_what_is_waited_for),
		cmocka_unit_test(every_word_of_the_program_is_in_the_trace_or_counted),
		cmocka_unit_test(a_window_counts_what_it_has_lost_itself),
		cmocka_unit_test(a_sample_leaves_out_the_frames_of_hooks),
		cmocka_unit_test(its_status_is_told_while_a_trace_takes_its_time_to_begin),
		cmocka_unit_test(a_processor_above_the_limit_is_named_as_the_reason),
		cmocka_unit_test(windows_overlap_and_leave_nothing_behind),
		cmocka_unit_test(of_a_window_that_goes_on_what_there_is_so_far_can_be_had),
		cmocka_unit_test(a_sample_says_on_which_processor_it_was_taken),
		cmocka_unit_test(words_and_calls_leave_errno_alone),
		cmocka_unit_test(descriptors_of_a_window_are_close_on_exec_and_above_2),
		cmocka_unit_test(a_child_has_no_trace_and_none_of_its_descriptors),
		cmocka_unit_test(a_thread_may_fork_while_the_kernels_events_are_opened),
		cmocka_unit_test(a_child_that_is_forked_while_a_windows_threads_are_entered_goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
