# collect/: the samplers, and the hooks object in hooks/.
noinst_LTLIBRARIES += %D%/libcollect.la
%C%_libcollect_la_SOURCES = %D%/collector.h %D%/collectors.c %D%/cpu.h %D%/heap.h %D%/hooks.h %D%/hooks_object.h %D%/cpu.c \
	%D%/cpu_parts.h %D%/cpu_status.c %D%/own_loop.h \
	%D%/cpu_ring.c %D%/cpu_ring.h %D%/cpu_signal.c %D%/cpu_signal.h %D%/free_signal.c %D%/free_signal.h \
	%D%/cpu_slots.c %D%/cpu_timers.c %D%/cpu_timers.h %D%/cpu_timers_parts.h %D%/cpu_scan.c %D%/cpu_proc.c %D%/cpu_proc.h \
	%D%/cpu_window.c %D%/cpu_window.h \
	%D%/custom.c %D%/custom.h %D%/hooks_names.c %D%/signal_calls.c %D%/signal_calls.h %D%/heap.c %D%/heap_bind.c %D%/heap_bind.h %D%/heap_operators.c %D%/heap_operators.h \
	%D%/heap_facts.h %D%/heap_lock.c %D%/heap_lock.h %D%/heap_profile.c \
	%D%/heap_rate.c %D%/heap_rate.h %D%/heap_set.c %D%/heap_set.h \
	%D%/heap_site.c %D%/heap_site.h %D%/hooks_threads.c %D%/hooks_threads.h \
	%D%/hooks_frames.c %D%/hooks_frames.h %D%/hooks_owner.c %D%/hooks_owner.h %D%/labels_calls.c %D%/labels_record.h %D%/labels_thread.c %D%/labels_thread.h \
	%D%/sites.c %D%/sites.h %D%/threadcreate.c %D%/threadcreate.h \
	%D%/waits.c %D%/waits.h %D%/waits_calls.c %D%/waits_hooks.c %D%/waits_parts.h %D%/waits_profile.c %D%/waits_table.c %D%/waits_table.h \
	%D%/threads.c %D%/threads.h %D%/threads_dump.c %D%/threads_list.c %D%/threads_profile.c %D%/threads_quiet.c %D%/threads_quiet.h \
	%D%/filtered.c %D%/filtered.h %D%/threads_known.c %D%/threads_known.h %D%/threads_kept.c %D%/threads_kept.h %D%/threads_parts.h \
	%D%/threads_remote.c %D%/threads_remote.h %D%/threads_signal.c %D%/threads_signal.h \
	%D%/trace_calls.c %D%/trace_calls.h %D%/trace_finish.c %D%/trace_finish.h %D%/trace_perf.c %D%/trace_perf.h \
	%D%/trace_perf_read.c %D%/trace_perf_read.h %D%/trace_perf_room.c %D%/trace_perf_room.h \
	%D%/trace_look.c %D%/trace_look.h %D%/trace_threads.c %D%/trace_threads.h %D%/trace_reason.c %D%/trace_reason.h \
	%D%/trace_ring.c %D%/trace_ring.h %D%/trace_writers.c %D%/trace_writers.h %D%/trace_wait.c %D%/trace_wait.h %D%/trace_user.c %D%/tracer.c %D%/tracer.h \
	%D%/wall.c %D%/wall.h %D%/wall_threads.c %D%/wall_threads.h %D%/wall_window.c %D%/wall_window.h \
	%D%/windows.c %D%/windows.h %D%/window_counts.c %D%/window_counts.h
%C%_libcollect_la_CPPFLAGS = $(OWN_WAITS) $(INC_COLLECT)
EXTRA_DIST += %D%/collectors.def

# The hooks: one relocatable object, whatever CFLAGS say: every call of malloc goes
# through it.  The thread-local part must not be allocated at its first use, and the
# fast path is counted in instructions.  What every call runs through must not lie across
# a cache line: that costs 3 % of malloc and free.
HOOKS_DIR = %D%/hooks
HOOKS_CFLAGS = -std=gnu11 -D_GNU_SOURCE -I$(srcdir)/%D% $(INC_ARCH) $(WARN_CFLAGS) $(CPPFLAGS) $(CFLAGS) \
	-O2 -g -fPIC -ftls-model=initial-exec -fvisibility=hidden -fno-builtin -fno-lto -fno-plt \
	-fno-stack-protector -fno-sanitize=all -fno-profile-arcs -fno-test-coverage \
	-fasynchronous-unwind-tables -U_FORTIFY_SOURCE
HOOKS_FAST_CFLAGS = -fomit-frame-pointer -falign-functions=32
HOOKS_DEPS = $(srcdir)/%D%/local.mk $(srcdir)/profiler/stacks/arch/$(ARCH_DIR)/arch_hooks.h $(srcdir)/%D%/hooks.h $(srcdir)/%D%/hooks/hook.h $(srcdir)/%D%/hooks/lookup.h
HOOKS_FILES = %D%/hooks/malloc.c %D%/hooks/operators.c %D%/hooks/threads.c %D%/hooks/table.c \
	%D%/hooks/cold.c %D%/hooks/next.c %D%/hooks/lookup.c %D%/hooks/waits.c %D%/hooks/waits_cold.c \
	%D%/hooks/calls.c %D%/hooks/calls_cold.c %D%/hooks/signals.c %D%/hooks/frames.c
if ARCH_HOOKS
HOOKS_OBJECTS = %D%/hooks/frames_start.o %D%/hooks/malloc.o %D%/hooks/operators.o %D%/hooks/threads.o %D%/hooks/table.o \
	%D%/hooks/cold.o %D%/hooks/next.o %D%/hooks/lookup.o %D%/hooks/waits.o %D%/hooks/waits_cold.o \
	%D%/hooks/calls.o %D%/hooks/calls_cold.o %D%/hooks/signals.o %D%/hooks/frames_end.o
# The agent's, where waits.c says HOOKS_SHARED and hook.h HOOKS_PROGRAM; the same in the same places.
HOOKS_SHARED_OBJECTS = %D%/hooks/frames_start.o %D%/hooks/shared_malloc.o %D%/hooks/operators.o \
	%D%/hooks/threads.o %D%/hooks/table.o \
	%D%/hooks/cold.o %D%/hooks/next.o %D%/hooks/lookup.o %D%/hooks/shared_waits.o %D%/hooks/waits_cold.o \
	%D%/hooks/calls.o %D%/hooks/calls_cold.o %D%/hooks/signals.o %D%/hooks/frames_end.o
else
# Says to the core that nothing is hooked.
HOOKS_OBJECTS = %D%/hooks/stub.o
HOOKS_SHARED_OBJECTS = %D%/hooks/stub.o
endif
EXTRA_DIST += $(HOOKS_FILES) %D%/hooks/stub.c %D%/hooks/hook.h %D%/hooks/lookup.h

AM_V_HOOKS = $(AM_V_HOOKS_@AM_V@)
AM_V_HOOKS_ = $(AM_V_HOOKS_@AM_DEFAULT_V@)
AM_V_HOOKS_0 = @echo "  HOOKS   " $@;
HOOKS_CC = $(AM_V_HOOKS)$(MKDIR_P) $(HOOKS_DIR) && $(CC) $(HOOKS_CFLAGS)

%D%/hooks/malloc.o: %D%/hooks/malloc.c $(HOOKS_DEPS)
	$(HOOKS_CC) $(HOOKS_FAST_CFLAGS) -DHOOKS_PROGRAM -c -o $@ $(srcdir)/%D%/hooks/malloc.c
%D%/hooks/shared_malloc.o: %D%/hooks/malloc.c $(HOOKS_DEPS)
	$(HOOKS_CC) $(HOOKS_FAST_CFLAGS) -c -o $@ $(srcdir)/%D%/hooks/malloc.c
%D%/hooks/operators.o: %D%/hooks/operators.c $(HOOKS_DEPS)
	$(HOOKS_CC) $(HOOKS_FAST_CFLAGS) -c -o $@ $(srcdir)/%D%/hooks/operators.c
%D%/hooks/threads.o: %D%/hooks/threads.c $(HOOKS_DEPS)
	$(HOOKS_CC) -fomit-frame-pointer -c -o $@ $(srcdir)/%D%/hooks/threads.c
%D%/hooks/table.o: %D%/hooks/table.c $(HOOKS_DEPS)
	$(HOOKS_CC) -fomit-frame-pointer -c -o $@ $(srcdir)/%D%/hooks/table.c
%D%/hooks/lookup.o: %D%/hooks/lookup.c $(HOOKS_DEPS)
	$(HOOKS_CC) -fomit-frame-pointer -c -o $@ $(srcdir)/%D%/hooks/lookup.c
%D%/hooks/cold.o: %D%/hooks/cold.c $(HOOKS_DEPS)
	$(HOOKS_CC) -fno-omit-frame-pointer -c -o $@ $(srcdir)/%D%/hooks/cold.c
%D%/hooks/waits.o: %D%/hooks/waits.c $(HOOKS_DEPS)
	$(HOOKS_CC) $(HOOKS_FAST_CFLAGS) -c -o $@ $(srcdir)/%D%/hooks/waits.c
%D%/hooks/shared_waits.o: %D%/hooks/waits.c $(HOOKS_DEPS)
	$(HOOKS_CC) $(HOOKS_FAST_CFLAGS) -DHOOKS_SHARED -c -o $@ $(srcdir)/%D%/hooks/waits.c
%D%/hooks/waits_cold.o: %D%/hooks/waits_cold.c $(HOOKS_DEPS)
	$(HOOKS_CC) -fno-omit-frame-pointer -c -o $@ $(srcdir)/%D%/hooks/waits_cold.c
%D%/hooks/calls.o: %D%/hooks/calls.c $(HOOKS_DEPS)
	$(HOOKS_CC) -fomit-frame-pointer -c -o $@ $(srcdir)/%D%/hooks/calls.c
%D%/hooks/calls_cold.o: %D%/hooks/calls_cold.c $(HOOKS_DEPS)
	$(HOOKS_CC) -fno-omit-frame-pointer -c -o $@ $(srcdir)/%D%/hooks/calls_cold.c
%D%/hooks/signals.o: %D%/hooks/signals.c $(HOOKS_DEPS)
	$(HOOKS_CC) -fomit-frame-pointer -c -o $@ $(srcdir)/%D%/hooks/signals.c
%D%/hooks/next.o: %D%/hooks/next.c $(HOOKS_DEPS)
	$(HOOKS_CC) -fomit-frame-pointer -c -o $@ $(srcdir)/%D%/hooks/next.c
%D%/hooks/frames_start.o: %D%/hooks/frames.c
	$(HOOKS_CC) -DFRAMES_LABEL=hooks_frames_start -c -o $@ $(srcdir)/%D%/hooks/frames.c
%D%/hooks/frames_end.o: %D%/hooks/frames.c
	$(HOOKS_CC) -DFRAMES_LABEL=hooks_frames_end -c -o $@ $(srcdir)/%D%/hooks/frames.c
%D%/hooks/stub.o: %D%/hooks/stub.c $(HOOKS_DEPS)
	$(HOOKS_CC) -c -o $@ $(srcdir)/%D%/hooks/stub.c

# Names that only these files share become local: none of them can meet the daemon's.
%D%/hooks/component_hooks.o: $(HOOKS_OBJECTS)
	$(AM_V_HOOKS)$(CC) $(CFLAGS) -fno-lto -fno-sanitize=all -nostdlib -r -o $@ $(HOOKS_OBJECTS) && \
		$(OBJCOPY) --localize-hidden $@
%D%/hooks/component_hooks_shared.o: $(HOOKS_SHARED_OBJECTS)
	$(AM_V_HOOKS)$(CC) $(CFLAGS) -fno-lto -fno-sanitize=all -nostdlib -r -o $@ $(HOOKS_SHARED_OBJECTS) && \
		$(OBJCOPY) --localize-hidden $@
%D%/libcomponent_hooks_nonshared.a: %D%/hooks/component_hooks.o
	$(AM_V_HOOKS)rm -f $@ && $(AR) cr $@ %D%/hooks/component_hooks.o
%D%/libcomponent_hooks.a: %D%/hooks/stub.o
	$(AM_V_HOOKS)rm -f $@ && $(AR) cr $@ %D%/hooks/stub.o
# -ldl: where dlsym is not in libc itself (glibc before 2.34).  ldconfig takes a lib*.so
# that is text for a broken library and complains on each run, but for these three words.
# A name without -l is looked for beside this file first: meson names the file and no -L.
%D%/libcomponent_hooks.so: Makefile
	$(AM_V_HOOKS)$(MKDIR_P) %D% && \
		echo '/* GNU ld script. For executables: hooks, linked in whole. */ INPUT(libcomponent_hooks_nonshared.a AS_NEEDED(-ldl))' > $@

hooks_DATA += %D%/libcomponent_hooks_nonshared.a %D%/libcomponent_hooks.a %D%/libcomponent_hooks.so
CLEANFILES += $(hooks_DATA) $(HOOKS_OBJECTS) $(HOOKS_SHARED_OBJECTS) %D%/hooks/stub.o \
	%D%/hooks/component_hooks.o %D%/hooks/component_hooks_shared.o
