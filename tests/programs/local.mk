# tests/programs/: what the tests run and look at.  Most are built here; some by the
# scripts themselves, in several ways.
check_PROGRAMS += %D%/adopted_daemon %D%/evhttp_daemon %D%/evhttp_why %D%/fgprof_load %D%/hanging_loop %D%/hanging_threads %D%/life_daemon \
	%D%/lines_of_addresses %D%/made_up_profile %D%/made_up_trace %D%/measured_waits %D%/memory_load %D%/memory_load_allocator %D%/names_of_addresses \
	%D%/obedient_daemon %D%/options %D%/profiled_daemon %D%/starts_before_daemon %D%/threads_blocked \
	%D%/threads_blocked_fp
EXTRA_DIST += %D%/Busy.java %D%/agent_manners.c %D%/agent_names.c %D%/agent_zlib.c %D%/allocators.cc %D%/burns.c %D%/busy.c %D%/busy.go %D%/busy.rs %D%/looked_at.c %D%/looked_at.go %D%/looked_at_twice.c %D%/main_ends.c %D%/cancelled.c %D%/chrooted.c %D%/deadlocks.c \
	%D%/deep_calls.c %D%/fork_handlers.c %D%/fork_joins.c %D%/forked_works.c %D%/heap_load.c %D%/heap_sizes.c %D%/hooks_caller.c %D%/hooks_calls.c \
	%D%/hooks_cost.c %D%/hooks_earlier_malloc.c %D%/hooks_family.c %D%/hooks_index.c %D%/hooks_jemalloc.c \
	%D%/hooks_large.c %D%/hooks_locks.cc %D%/hooks_once.c %D%/hooks_own_malloc.c %D%/hooks_plugin_host.c %D%/hooks_real_functions.c \
	%D%/hooks_throws.cc %D%/hooks_two_cores.c %D%/odd_threads.c %D%/program_signals.c %D%/refused_resources.c \
	%D%/restricted_process.c %D%/scraped.go %D%/stress.c %D%/stress.h %D%/stress_blocks.c %D%/stress_children.c %D%/stress_plugin.c \
	%D%/stress_signals.c %D%/stress_threads.c %D%/stress_throw.cc

# Of the public headers alone; those that serve have the hooks, as a program that links what pkg-config says.
%D%/%.o: private AM_CPPFLAGS := $(INC_BASE) -I$(top_srcdir)/profiler/include $(EVENT_CFLAGS) -iquote $(top_srcdir)/tests/lib
HOOKED_PROGRAM = $(AM_LDFLAGS) -Wl,-u,component_hooks
HOOKED_LIBS = profiler/hooks/libcomponent_hooks_nonshared.a components/libcomponent.la -ldl
%C%_evhttp_daemon_LDFLAGS = $(HOOKED_PROGRAM)
%C%_evhttp_daemon_LDADD = $(HOOKED_LIBS) $(EVENT_LIBS)
%C%_evhttp_why_LDADD = $(EVENT_LIBS)
%C%_fgprof_load_CFLAGS = $(AM_CFLAGS) -fno-optimize-sibling-calls
%C%_fgprof_load_LDADD = components/libcomponent.la -ldl
%C%_measured_waits_CFLAGS = $(AM_CFLAGS) -g -O1 -fno-optimize-sibling-calls
%C%_measured_waits_LDFLAGS = $(HOOKED_PROGRAM)
%C%_measured_waits_LDADD = $(HOOKED_LIBS) -lrt
%C%_memory_load_CFLAGS = $(AM_CFLAGS) -g -O1 -fno-optimize-sibling-calls -fno-builtin
%C%_memory_load_LDFLAGS = $(HOOKED_PROGRAM)
%C%_memory_load_LDADD = $(HOOKED_LIBS)
# The same with an allocator of its own.
%C%_memory_load_allocator_SOURCES = %D%/memory_load.c
%C%_memory_load_allocator_CPPFLAGS = $(AM_CPPFLAGS) -DOWN_ALLOCATOR
%C%_memory_load_allocator_CFLAGS = $(%C%_memory_load_CFLAGS)
%C%_memory_load_allocator_LDFLAGS = $(HOOKED_PROGRAM)
%C%_memory_load_allocator_LDADD = $(HOOKED_LIBS)
%C%_profiled_daemon_LDFLAGS = $(HOOKED_PROGRAM)
%C%_profiled_daemon_LDADD = $(HOOKED_LIBS)

# Of a component's.
%C%_adopted_daemon_CPPFLAGS = $(INC_COMPONENTS)
%C%_adopted_daemon_LDADD = components/libcomponent.la
%C%_hanging_loop_CPPFLAGS = $(INC_EXAMPLES)
%C%_hanging_loop_LDADD = components/libcomponent.la
%C%_life_daemon_CPPFLAGS = $(INC_LIFE)
%C%_life_daemon_LDADD = $(LIFE_LIBS) $(YAML_LIBS)
%C%_obedient_daemon_CPPFLAGS = $(INC_LIFE)
%C%_obedient_daemon_LDADD = components/libcomponent.la
%C%_options_CPPFLAGS = $(INC_EXAMPLES)
%C%_options_LDADD = $(FLAGS_LIBS) $(YAML_LIBS)
%C%_starts_before_daemon_CPPFLAGS = $(INC_COMPONENTS)
%C%_starts_before_daemon_LDADD = components/libcomponent.la

# Of the profiler's rooms.
%C%_lines_of_addresses_CPPFLAGS = $(INC_SYMBOLS)
%C%_lines_of_addresses_LDADD = $(SYMBOLS_LIBS) $(ZLIB_LIBS)
%C%_made_up_profile_CPPFLAGS = $(INC_ENCODE) -iquote $(top_srcdir)/tests/lib
%C%_made_up_profile_LDADD = $(ENCODE_LIBS) $(PROTOBUFC_LIBS) $(ZLIB_LIBS)
%C%_made_up_trace_CPPFLAGS = $(INC_ENCODE) -iquote $(top_srcdir)/tests/lib
%C%_made_up_trace_CFLAGS = $(AM_CFLAGS) -g -O1
%C%_made_up_trace_LDADD = $(ENCODE_LIBS) $(PROTOBUFC_LIBS) $(ZLIB_LIBS)
%C%_names_of_addresses_CPPFLAGS = $(INC_SYMBOLS)
%C%_names_of_addresses_LDADD = $(SYMBOLS_LIBS) $(ZLIB_LIBS) -ldl
# The same program with and without frame pointers.
BLOCKED_CC = $(AM_CFLAGS) -O2 -fno-optimize-sibling-calls
%C%_threads_blocked_CPPFLAGS = $(INC_COLLECT)
%C%_threads_blocked_CFLAGS = $(BLOCKED_CC) -fomit-frame-pointer
%C%_threads_blocked_LDADD = $(COLLECT_LIBS)
%C%_threads_blocked_fp_SOURCES = %D%/threads_blocked.c
%C%_threads_blocked_fp_CPPFLAGS = $(INC_COLLECT)
%C%_threads_blocked_fp_CFLAGS = $(BLOCKED_CC) -fno-omit-frame-pointer
%C%_threads_blocked_fp_LDADD = $(COLLECT_LIBS)

# Plugins, and libraries that tests break; -rpath makes libtool build a shared object, which is not installed.
PLUGIN = -module -avoid-version -shared -rpath /nowhere
check_LTLIBRARIES += %D%/hanging_plugin.la %D%/libdwarf4.la %D%/libdwarf5.la %D%/libdwarfz.la %D%/libvictim.la
%C%_hanging_plugin_la_SOURCES = %D%/hanging_plugin.c
%C%_hanging_plugin_la_LDFLAGS = $(PLUGIN)
%C%_hanging_threads_CPPFLAGS = $(INC_COMPONENTS)
%C%_hanging_threads_LDADD = components/libcomponent.la -ldl
%C%_libvictim_la_SOURCES = %D%/symbols_victim.c
%C%_libvictim_la_LDFLAGS = $(PLUGIN) -Wl,--build-id
# Debug information in three forms.
%C%_libdwarf4_la_SOURCES = %D%/dwarf_victim.c
%C%_libdwarf4_la_CFLAGS = $(AM_CFLAGS) -O2 -gdwarf-4
%C%_libdwarf4_la_LDFLAGS = $(PLUGIN) -Wl,--build-id
%C%_libdwarf5_la_SOURCES = %D%/dwarf_victim.c
%C%_libdwarf5_la_CFLAGS = $(AM_CFLAGS) -O2 -gdwarf-5
%C%_libdwarf5_la_LDFLAGS = $(PLUGIN) -Wl,--build-id
%C%_libdwarfz_la_SOURCES = %D%/dwarf_victim.c
%C%_libdwarfz_la_CFLAGS = $(AM_CFLAGS) -O2 -gdwarf-5
%C%_libdwarfz_la_LDFLAGS = $(PLUGIN) -Wl,--build-id -Wl,--compress-debug-sections=zlib
if HAVE_SHARED
check_LTLIBRARIES += %D%/unwind_plugin_large.la %D%/unwind_plugin_short_id.la %D%/unwind_plugin_small.la
endif
%C%_unwind_plugin_large_la_SOURCES = %D%/unwind_plugin.c
%C%_unwind_plugin_large_la_CPPFLAGS = $(AM_CPPFLAGS) -DFRAME=640
%C%_unwind_plugin_large_la_CFLAGS = -O2 -fomit-frame-pointer -fvisibility=default
%C%_unwind_plugin_large_la_LDFLAGS = $(PLUGIN)
%C%_unwind_plugin_short_id_la_SOURCES = %D%/unwind_plugin.c
%C%_unwind_plugin_short_id_la_CPPFLAGS = $(AM_CPPFLAGS) -DFRAME=64
%C%_unwind_plugin_short_id_la_CFLAGS = -fvisibility=default
%C%_unwind_plugin_short_id_la_LDFLAGS = $(PLUGIN) -Wl,--build-id=0xab
%C%_unwind_plugin_small_la_SOURCES = %D%/unwind_plugin.c
%C%_unwind_plugin_small_la_CPPFLAGS = $(AM_CPPFLAGS) -DFRAME=64
%C%_unwind_plugin_small_la_CFLAGS = -O2 -fomit-frame-pointer -fvisibility=default
%C%_unwind_plugin_small_la_LDFLAGS = $(PLUGIN)
