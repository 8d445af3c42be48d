# Rows of the engine: unwinding, the heap's hooks, CPU samples.
EXTRA_DIST += bench/bench.h bench/deep.h bench/library bench/unwind_agreement
BENCH_ROWS += bench/rows_unwind.py
BENCH_STACKS = profiler/unwind/libunwinders.la profiler/model/libmodel.la libcomponent/base/libbase.la

EXTRA_PROGRAMS += bench/unwind bench/unwind_build
BENCH_TARGETS += bench/unwind bench/unwind_build
bench_unwind_SOURCES = bench/unwind.c
bench_unwind_CPPFLAGS = $(INC_UNWIND) -iquote $(top_srcdir)/bench
bench_unwind_CFLAGS = $(BENCH_CFLAGS)
bench_unwind_LDADD = $(BENCH_STACKS)
bench_unwind_build_SOURCES = bench/unwind_build.c
bench_unwind_build_CPPFLAGS = $(INC_UNWIND) -iquote $(top_srcdir)/bench
bench_unwind_build_CFLAGS = $(BENCH_CFLAGS)
bench_unwind_build_LDADD = $(BENCH_STACKS)
# The comparison with libunwind is a test's.
if HAVE_CMOCKA
BENCH_TARGETS += tests/unwind/test_tables
endif

# The heap's hooks: the same object with and without them.
BENCH_ROWS += bench/rows_heap.py bench/rows_programs.py
EXTRA_PROGRAMS += bench/heap_plain bench/heap_linked
BENCH_TARGETS += bench/heap_plain bench/heap_linked
bench_heap_plain_SOURCES = bench/heap.c
bench_heap_plain_CPPFLAGS = -D_GNU_SOURCE
bench_heap_plain_CFLAGS = $(AM_CFLAGS) -O2 -fno-builtin
bench_heap_plain_LDADD = -ldl
bench_heap_linked_SOURCES = $(bench_heap_plain_SOURCES)
bench_heap_linked_CPPFLAGS = $(bench_heap_plain_CPPFLAGS)
bench_heap_linked_CFLAGS = $(bench_heap_plain_CFLAGS)
bench_heap_linked_LDFLAGS = $(AM_LDFLAGS) -no-install -Wl,--no-as-needed -Wl,-u,component_hooks
bench_heap_linked_LDADD = profiler/hooks/libcomponent_hooks_nonshared.a components/libcomponent.la

# CPU samples.
BENCH_ROWS += bench/rows_cpu.py
EXTRA_DIST += bench/cpu_accuracy_go bench/accuracy/main.go
BENCH_CPU_CPPFLAGS = $(INC_COLLECT) -iquote $(top_srcdir)/bench -iquote $(top_srcdir)/tests/lib
EXTRA_PROGRAMS += bench/cpu_signal bench/cpu_accuracy
BENCH_TARGETS += bench/cpu_signal bench/cpu_accuracy
bench_cpu_signal_SOURCES = bench/cpu_signal.c
bench_cpu_signal_CPPFLAGS = $(BENCH_CPU_CPPFLAGS)
bench_cpu_signal_CFLAGS = $(BENCH_CFLAGS)
bench_cpu_signal_LDADD = profiler/collect/libcollect.la $(BENCH_STACKS)
# Short threads are seen by the pthread_create hook.
bench_cpu_accuracy_SOURCES = bench/cpu_accuracy.c tests/lib/cpu_burn.h
bench_cpu_accuracy_CPPFLAGS = $(BENCH_CPU_CPPFLAGS)
bench_cpu_accuracy_CFLAGS = $(BENCH_CFLAGS)
bench_cpu_accuracy_LDFLAGS = $(AM_LDFLAGS) -Wl,-u,component_hooks
bench_cpu_accuracy_LDADD = profiler/hooks/libcomponent_hooks_nonshared.a profiler/collect/libcollect.la $(BENCH_STACKS)

# Sizes and start-up: the same object with and without us, and with the run path that only
# a build tree has.
BENCH_ROWS += bench/rows_size.py
EXTRA_DIST += bench/so_size bench/programs bench/one_jump.c bench/second_thread.c bench/slow_time.c
EXTRA_PROGRAMS += bench/door_plain bench/door_linked
BENCH_TARGETS += bench/door_plain bench/door_linked
bench_door_plain_SOURCES = bench/door.c
bench_door_plain_CPPFLAGS = -D_GNU_SOURCE
bench_door_plain_LDFLAGS = $(AM_LDFLAGS) -Wl,-rpath,$(abs_top_builddir)/components/.libs
bench_door_plain_LDADD = -ldl
bench_door_linked_SOURCES = $(bench_door_plain_SOURCES)
bench_door_linked_CPPFLAGS = $(bench_door_plain_CPPFLAGS)
bench_door_linked_LDFLAGS = $(bench_heap_linked_LDFLAGS)
bench_door_linked_LDADD = $(bench_heap_linked_LDADD)

# Dumps of all threads.
BENCH_ROWS += bench/rows_dump.py
EXTRA_PROGRAMS += bench/dump
BENCH_TARGETS += bench/dump
bench_dump_SOURCES = bench/dump.c
bench_dump_CPPFLAGS = $(INC_COLLECT) $(INC_ENCODE) -iquote $(top_srcdir)/bench
bench_dump_CFLAGS = $(BENCH_CFLAGS)
bench_dump_LDADD = profiler/collect/libcollect.la profiler/encode/libencode.la profiler/symbols/libsymbols.la \
	$(BENCH_STACKS) $(PROTOBUFC_LIBS) $(ZLIB_LIBS)

# Labels of threads.
BENCH_ROWS += bench/rows_labels.py
EXTRA_PROGRAMS += bench/labels
BENCH_TARGETS += bench/labels
bench_labels_SOURCES = bench/labels.c
bench_labels_CPPFLAGS = -D_GNU_SOURCE -I$(top_srcdir)/libcomponent/base/include -I$(top_srcdir)/profiler/include
bench_labels_CFLAGS = $(BENCH_CFLAGS)
bench_labels_LDFLAGS = $(AM_LDFLAGS) -no-install
bench_labels_LDADD = components/libcomponent.la

# Locks and waits: the same object with and without the hooks.
BENCH_ROWS += bench/rows_locks.py
EXTRA_PROGRAMS += bench/locks_plain bench/locks_linked
BENCH_TARGETS += bench/locks_plain bench/locks_linked
bench_locks_plain_SOURCES = bench/locks.c
bench_locks_plain_CPPFLAGS = -D_GNU_SOURCE
bench_locks_plain_CFLAGS = $(bench_heap_plain_CFLAGS)
bench_locks_plain_LDADD = -ldl
bench_locks_linked_SOURCES = $(bench_locks_plain_SOURCES)
bench_locks_linked_CPPFLAGS = $(bench_locks_plain_CPPFLAGS)
bench_locks_linked_CFLAGS = $(bench_locks_plain_CFLAGS)
bench_locks_linked_LDFLAGS = $(bench_heap_linked_LDFLAGS)
bench_locks_linked_LDADD = $(bench_heap_linked_LDADD)

# Mappings: the same object with and without the hooks.
BENCH_ROWS += bench/rows_mmap.py
EXTRA_PROGRAMS += bench/mmap_plain bench/mmap_linked
BENCH_TARGETS += bench/mmap_plain bench/mmap_linked
bench_mmap_plain_SOURCES = bench/mmap.c
bench_mmap_plain_CPPFLAGS = -D_GNU_SOURCE
bench_mmap_plain_CFLAGS = $(bench_heap_plain_CFLAGS)
bench_mmap_plain_LDADD = -ldl
bench_mmap_linked_SOURCES = $(bench_mmap_plain_SOURCES)
bench_mmap_linked_CPPFLAGS = $(bench_mmap_plain_CPPFLAGS)
bench_mmap_linked_CFLAGS = $(bench_mmap_plain_CFLAGS)
bench_mmap_linked_LDFLAGS = $(bench_heap_linked_LDFLAGS)
bench_mmap_linked_LDADD = $(bench_heap_linked_LDADD)
