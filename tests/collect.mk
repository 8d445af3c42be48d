# tests of collect
if HAVE_CMOCKA
CPU_TESTS = tests/test_cpu tests/test_cpu_guest tests/test_cpu_limits tests/test_cpu_ring tests/test_cpu_signals tests/test_cpu_threads
check_PROGRAMS += $(CPU_TESTS)
TESTS += $(CPU_TESTS)
CPU_LIBS = profiler/collect/libcollect.la $(STACKS_LIBS)
CPU_CPPFLAGS = $(INC_COLLECT) $(CMOCKA_CFLAGS)

tests_test_cpu_SOURCES = tests/test_cpu.c tests/cpu_burn.h
tests_test_cpu_CPPFLAGS = $(CPU_CPPFLAGS)
tests_test_cpu_CFLAGS = $(AM_CFLAGS) -fno-optimize-sibling-calls
tests_test_cpu_LDADD = $(CPU_LIBS)
tests_test_cpu_guest_SOURCES = tests/test_cpu_guest.c tests/cpu_burn.h tests/cpu_guest.h
tests_test_cpu_guest_CPPFLAGS = $(CPU_CPPFLAGS)
tests_test_cpu_guest_LDADD = $(CPU_LIBS)
tests_test_cpu_limits_SOURCES = tests/test_cpu_limits.c tests/cpu_burn.h tests/cpu_guest.h
tests_test_cpu_limits_CPPFLAGS = $(CPU_CPPFLAGS)
tests_test_cpu_limits_LDADD = $(CPU_LIBS)
tests_test_cpu_signals_SOURCES = tests/test_cpu_signals.c tests/cpu_burn.h tests/cpu_guest.h
tests_test_cpu_signals_CPPFLAGS = $(CPU_CPPFLAGS)
tests_test_cpu_signals_LDADD = $(CPU_LIBS)
tests_test_cpu_ring_SOURCES = tests/test_cpu_ring.c
tests_test_cpu_ring_CPPFLAGS = $(CPU_CPPFLAGS)
tests_test_cpu_ring_LDADD = $(CPU_LIBS)
tests_test_cpu_threads_SOURCES = tests/test_cpu_threads.c tests/cpu_burn.h
tests_test_cpu_threads_CPPFLAGS = $(CPU_CPPFLAGS)
tests_test_cpu_threads_LDFLAGS = $(AM_LDFLAGS) -Wl,-u,component_hooks
tests_test_cpu_threads_LDADD = profiler/hooks/libcomponent_hooks_nonshared.a $(CPU_LIBS)

check_PROGRAMS += tests/test_tracer tests/test_trace_writers tests/test_without_proc
TESTS += tests/test_tracer tests/test_trace_writers tests/test_without_proc
tests_test_without_proc_SOURCES = tests/test_without_proc.c
tests_test_without_proc_CPPFLAGS = $(CPU_CPPFLAGS)
tests_test_without_proc_LDADD = $(CPU_LIBS)
tests_test_tracer_SOURCES = tests/test_tracer.c
tests_test_tracer_CPPFLAGS = $(CPU_CPPFLAGS)
tests_test_tracer_LDFLAGS = $(AM_LDFLAGS) -Wl,-u,component_hooks
tests_test_tracer_LDADD = profiler/hooks/libcomponent_hooks_nonshared.a $(CPU_LIBS)
tests_test_trace_writers_SOURCES = tests/test_trace_writers.c
tests_test_trace_writers_CPPFLAGS = $(CPU_CPPFLAGS)
tests_test_trace_writers_LDADD = $(CPU_LIBS)
endif

# Threads: the same program with and without frame pointers.
check_PROGRAMS += tests/threads_blocked tests/threads_blocked_fp
THREADS_CC = -O2 -fno-optimize-sibling-calls
tests_threads_blocked_SOURCES = tests/threads_blocked.c
tests_threads_blocked_CPPFLAGS = $(INC_COLLECT)
tests_threads_blocked_CFLAGS = $(AM_CFLAGS) $(THREADS_CC) -fomit-frame-pointer
tests_threads_blocked_LDADD = profiler/collect/libcollect.la profiler/unwind/libunwinders.la profiler/model/libmodel.la libcomponent/base/libbase.la
tests_threads_blocked_fp_SOURCES = tests/threads_blocked.c
tests_threads_blocked_fp_CPPFLAGS = $(INC_COLLECT)
tests_threads_blocked_fp_CFLAGS = $(AM_CFLAGS) $(THREADS_CC) -fno-omit-frame-pointer
tests_threads_blocked_fp_LDADD = $(tests_threads_blocked_LDADD)
dist_check_SCRIPTS += tests/threads.t
TESTS += tests/threads.t
if HAVE_CMOCKA
check_PROGRAMS += tests/test_threads
TESTS += tests/test_threads
tests_test_threads_SOURCES = tests/test_threads.c
tests_test_threads_CPPFLAGS = $(INC_COLLECT) $(INC_ENCODE) $(CMOCKA_CFLAGS)
tests_test_threads_LDADD = profiler/collect/libcollect.la profiler/encode/libencode.la profiler/symbols/libsymbols.la \
	$(STACKS_LIBS) $(PROTOBUFC_LIBS) $(ZLIB_LIBS)
endif

# The heap: units, then programs with the hooks linked in.
if HAVE_CMOCKA
HEAP_UNITS = tests/test_custom tests/test_wall tests/test_sites tests/test_heap_rate tests/test_heap_set
HEAP_HOOKED = tests/test_heap tests/test_heap_older tests/test_heap_blocks tests/test_heap_guest tests/test_heap_truth \
	tests/test_hooks_threads tests/test_labels tests/test_labels_samples tests/test_waits tests/test_waits_guest \
	tests/test_waits_left tests/test_waits_blame
check_PROGRAMS += $(HEAP_UNITS) $(HEAP_HOOKED)
TESTS += $(HEAP_UNITS) $(HEAP_HOOKED)
HEAP_CPP = $(INC_COLLECT) $(CMOCKA_CFLAGS)
HEAP_LINK = $(AM_LDFLAGS) -Wl,-u,component_hooks
HEAP_HOOKS = profiler/hooks/libcomponent_hooks_nonshared.a
HEAP_LIBS = profiler/collect/libcollect.la $(STACKS_LIBS)
# So that a call site has a frame of its own, and its function's name.
HEAP_CC = $(AM_CFLAGS) -fno-optimize-sibling-calls -fno-builtin -U_FORTIFY_SOURCE

tests_test_sites_SOURCES = tests/test_sites.c
tests_test_sites_CPPFLAGS = $(HEAP_CPP)
tests_test_sites_LDADD = $(HEAP_LIBS)
tests_test_heap_rate_SOURCES = tests/test_heap_rate.c
tests_test_heap_rate_CPPFLAGS = $(HEAP_CPP)
tests_test_heap_rate_LDADD = $(HEAP_LIBS) -lm
tests_test_heap_set_SOURCES = tests/test_heap_set.c
tests_test_heap_set_CPPFLAGS = $(HEAP_CPP)
tests_test_heap_set_LDADD = $(HEAP_LIBS)
tests_test_heap_SOURCES = tests/test_heap.c tests/heap_hooked.h
tests_test_heap_CPPFLAGS = $(HEAP_CPP)
tests_test_heap_CFLAGS = $(HEAP_CC)
tests_test_heap_LDFLAGS = $(HEAP_LINK)
tests_test_heap_LDADD = $(HEAP_HOOKS) $(HEAP_LIBS) -lm
tests_test_heap_older_SOURCES = $(tests_test_heap_SOURCES)
tests_test_heap_older_CPPFLAGS = $(HEAP_CPP) -DHOOKS_OF_BEFORE
tests_test_heap_older_CFLAGS = $(HEAP_CC)
tests_test_heap_older_LDFLAGS = $(HEAP_LINK)
tests_test_heap_older_LDADD = $(tests_test_heap_LDADD)
tests_test_heap_blocks_SOURCES = tests/test_heap_blocks.c tests/heap_hooked.h
tests_test_heap_blocks_CPPFLAGS = $(HEAP_CPP)
tests_test_heap_blocks_CFLAGS = $(HEAP_CC)
tests_test_heap_blocks_LDFLAGS = $(HEAP_LINK)
tests_test_heap_blocks_LDADD = $(HEAP_HOOKS) $(HEAP_LIBS)
tests_test_heap_guest_SOURCES = tests/test_heap_guest.c tests/heap_hooked.h
tests_test_heap_guest_CPPFLAGS = $(HEAP_CPP)
tests_test_heap_guest_CFLAGS = $(HEAP_CC)
tests_test_heap_guest_LDFLAGS = $(HEAP_LINK)
tests_test_heap_guest_LDADD = $(HEAP_HOOKS) $(HEAP_LIBS)
tests_test_heap_truth_SOURCES = tests/test_heap_truth.c tests/heap_hooked.h
tests_test_heap_truth_CPPFLAGS = $(HEAP_CPP)
tests_test_heap_truth_CFLAGS = $(HEAP_CC)
tests_test_heap_truth_LDFLAGS = $(HEAP_LINK)
tests_test_heap_truth_LDADD = $(HEAP_HOOKS) $(HEAP_LIBS) -lm
tests_test_custom_SOURCES = tests/test_custom.c
tests_test_custom_CPPFLAGS = $(HEAP_CPP)
tests_test_custom_LDADD = $(HEAP_LIBS)
tests_test_wall_SOURCES = tests/test_wall.c
tests_test_wall_CPPFLAGS = $(HEAP_CPP)
tests_test_wall_LDADD = $(HEAP_LIBS)
tests_test_waits_SOURCES = tests/test_waits.c tests/waits_fixture.h
tests_test_waits_CPPFLAGS = $(HEAP_CPP)
tests_test_waits_CFLAGS = $(HEAP_CC)
tests_test_waits_LDFLAGS = $(HEAP_LINK)
tests_test_waits_LDADD = $(HEAP_HOOKS) $(HEAP_LIBS)
tests_test_waits_guest_SOURCES = tests/test_waits_guest.c tests/waits_fixture.h
tests_test_waits_guest_CPPFLAGS = $(HEAP_CPP)
tests_test_waits_guest_CFLAGS = $(HEAP_CC)
tests_test_waits_guest_LDFLAGS = $(HEAP_LINK)
tests_test_waits_guest_LDADD = $(HEAP_HOOKS) $(HEAP_LIBS)
tests_test_waits_left_SOURCES = tests/test_waits_left.c tests/waits_fixture.h
tests_test_waits_left_CPPFLAGS = $(HEAP_CPP)
tests_test_waits_left_CFLAGS = $(HEAP_CC)
tests_test_waits_left_LDFLAGS = $(HEAP_LINK)
tests_test_waits_left_LDADD = $(HEAP_HOOKS) $(HEAP_LIBS)
tests_test_waits_blame_SOURCES = tests/test_waits_blame.c tests/waits_fixture.h
tests_test_waits_blame_CPPFLAGS = $(HEAP_CPP)
tests_test_waits_blame_CFLAGS = $(HEAP_CC)
tests_test_waits_blame_LDFLAGS = $(HEAP_LINK)
tests_test_waits_blame_LDADD = $(HEAP_HOOKS) $(HEAP_LIBS)
tests_test_labels_SOURCES = tests/test_labels.c tests/labels_fixture.h
tests_test_labels_CPPFLAGS = $(HEAP_CPP)
tests_test_labels_CFLAGS = $(HEAP_CC)
tests_test_labels_LDFLAGS = $(HEAP_LINK)
tests_test_labels_LDADD = $(HEAP_HOOKS) $(HEAP_LIBS)
tests_test_labels_samples_SOURCES = tests/test_labels_samples.c tests/cpu_burn.h tests/labels_fixture.h
tests_test_labels_samples_CPPFLAGS = $(HEAP_CPP)
tests_test_labels_samples_CFLAGS = $(HEAP_CC)
tests_test_labels_samples_LDFLAGS = $(HEAP_LINK)
tests_test_labels_samples_LDADD = $(HEAP_HOOKS) $(HEAP_LIBS)
tests_test_hooks_threads_SOURCES = tests/test_hooks_threads.c
tests_test_hooks_threads_CPPFLAGS = $(HEAP_CPP)
tests_test_hooks_threads_CFLAGS = $(HEAP_CC)
tests_test_hooks_threads_LDFLAGS = $(HEAP_LINK)
tests_test_hooks_threads_LDADD = $(HEAP_HOOKS) $(HEAP_LIBS)
endif

# Interposition: the script builds programs and libraries of its own against ours.
TESTS += tests/faults.t tests/fork_handlers.t tests/hooks.t tests/hooks_cost.t tests/heap_guest.t tests/heap_identity.t tests/preload.t tests/programs_all.t tests/allocators.t tests/peers.t tests/sanitizers.t tests/languages.t tests/confined.t tests/daemons.t tests/odd_threads.t
dist_check_SCRIPTS += tests/faults.t tests/fork_handlers.t tests/hooks.t tests/hooks_cost.t tests/heap_guest.t tests/heap_identity.t tests/preload.t tests/programs_all.t tests/allocators.t tests/peers.t tests/sanitizers.t tests/languages.t tests/stress.t tests/confined.t tests/daemons.t tests/odd_threads.t
EXTRA_DIST += tests/allocators.cc tests/peers.c tests/busy.c tests/busy.go tests/busy.py tests/busy.rs tests/Busy.java tests/confined.c tests/chrooted.c tests/odd_threads.c tests/faults.c tests/fork_handlers.c tests/hooked.py tests/heap_load.c tests/heap_sizes.c tests/hooks_calls.c tests/hooks_caller.c tests/hooks_cost.c tests/hooks_host.c \
	tests/hooks_before.c tests/hooks_family.c tests/hooks_index.c tests/hooks_jemalloc.c tests/hooks_large.c tests/hooks_locks.cc tests/hooks_next.c tests/hooks_own_malloc.c tests/hooks_throws.cc tests/hooks_two_cores.c \
	tests/stress.c tests/stress.h tests/stress_blocks.c tests/stress_children.c tests/stress_plugin.c tests/stress_signals.c \
	tests/soak.py tests/stress_threads.c tests/stress_throw.cc tests/stressing.py tests/tsan.supp

# Objects whose unwind tables no program header names.
TESTS += tests/frames.t
dist_check_SCRIPTS += tests/frames.t
EXTRA_DIST += tests/frames_program.c

# Signals and cancellation, from outside.
TESTS += tests/cancel.t tests/masks.t
dist_check_SCRIPTS += tests/cancel.t tests/masks.t
EXTRA_DIST += tests/cancelled.c tests/masks.c
