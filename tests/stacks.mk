# tests of stacks
EXTRA_DIST += tests/valgrind.supp
if HAVE_CMOCKA
STACKS_TESTS = tests/test_profile tests/test_stack_table tests/test_unwind tests/test_unwind_tables \
	tests/test_unwind_step tests/test_unwind_window tests/test_unwind_absurd \
	tests/test_unwind_remote tests/test_unwind_generated tests/test_unwind_verdict tests/test_trace
check_PROGRAMS += $(STACKS_TESTS)
TESTS += $(STACKS_TESTS)
STACKS_LIBS = profiler/unwind/libunwinders.la profiler/model/libmodel.la libcomponent/base/libbase.la $(CMOCKA_LIBS)

tests_test_profile_SOURCES = tests/test_profile.c
tests_test_profile_CPPFLAGS = $(INC_UNWIND) $(CMOCKA_CFLAGS)
tests_test_profile_LDADD = $(STACKS_LIBS)
tests_test_stack_table_SOURCES = tests/test_stack_table.c
tests_test_stack_table_CPPFLAGS = $(INC_UNWIND) $(CMOCKA_CFLAGS)
tests_test_stack_table_LDADD = $(STACKS_LIBS)
tests_test_trace_SOURCES = tests/test_trace.c
tests_test_trace_CPPFLAGS = $(INC_UNWIND) $(CMOCKA_CFLAGS)
tests_test_trace_LDADD = $(STACKS_LIBS)
tests_test_unwind_SOURCES = tests/test_unwind.c
tests_test_unwind_CPPFLAGS = $(INC_UNWIND) $(CMOCKA_CFLAGS)
tests_test_unwind_CFLAGS = $(AM_CFLAGS) -fno-optimize-sibling-calls
tests_test_unwind_LDADD = $(STACKS_LIBS)
# Exceptions are libgcc's, which libunwind would take over if it came first.
tests_test_unwind_tables_SOURCES = tests/test_unwind_tables.c tests/unwind_mix.h tests/unwind_mix_throw.cc \
	tests/unwind_mix_tls.c
tests_test_unwind_tables_CPPFLAGS = $(INC_UNWIND) $(CMOCKA_CFLAGS)
tests_test_unwind_tables_LDADD = tests/libunwind_mix_bare.la tests/libunwind_mix_framed.la $(STACKS_LIBS) $(ZLIB_LIBS) \
	-lgcc_s -lunwind -lm -ldl
check_LTLIBRARIES += tests/libunwind_mix_bare.la tests/libunwind_mix_framed.la
tests_libunwind_mix_bare_la_SOURCES = tests/unwind_mix_frames.c
tests_libunwind_mix_bare_la_CPPFLAGS = $(INC_UNWIND) -DMIX=mix_bare
tests_libunwind_mix_bare_la_CFLAGS = $(AM_CFLAGS) -O2 -fomit-frame-pointer
tests_libunwind_mix_framed_la_SOURCES = tests/unwind_mix_frames.c
tests_libunwind_mix_framed_la_CPPFLAGS = $(INC_UNWIND) -DMIX=mix_framed
tests_libunwind_mix_framed_la_CFLAGS = $(AM_CFLAGS) -O2 -fno-omit-frame-pointer
tests_test_unwind_step_SOURCES = tests/test_unwind_step.c tests/cpu_burn.h
tests_test_unwind_step_CPPFLAGS = $(INC_UNWIND) $(CMOCKA_CFLAGS)
tests_test_unwind_step_CFLAGS = $(AM_CFLAGS) -O2 -fno-optimize-sibling-calls -fomit-frame-pointer
tests_test_unwind_step_LDADD = $(STACKS_LIBS)
tests_test_unwind_window_SOURCES = tests/test_unwind_window.c
tests_test_unwind_window_CPPFLAGS = $(INC_UNWIND) $(CMOCKA_CFLAGS)
tests_test_unwind_window_LDADD = $(STACKS_LIBS)
tests_test_unwind_remote_SOURCES = tests/test_unwind_remote.c
tests_test_unwind_remote_CPPFLAGS = $(INC_UNWIND) $(CMOCKA_CFLAGS)
tests_test_unwind_remote_LDADD = $(STACKS_LIBS) $(ZLIB_LIBS)
tests_test_unwind_generated_SOURCES = tests/test_unwind_generated.c
tests_test_unwind_generated_CPPFLAGS = $(INC_UNWIND) $(CMOCKA_CFLAGS)
tests_test_unwind_generated_CFLAGS = $(AM_CFLAGS) -fno-omit-frame-pointer -fno-optimize-sibling-calls
tests_test_unwind_generated_LDADD = $(STACKS_LIBS) -ldl
tests_test_unwind_verdict_SOURCES = tests/test_unwind_verdict.c
tests_test_unwind_verdict_CPPFLAGS = $(INC_UNWIND) $(CMOCKA_CFLAGS)
tests_test_unwind_verdict_LDADD = $(STACKS_LIBS)
tests_test_unwind_absurd_SOURCES = tests/test_unwind_absurd.c
tests_test_unwind_absurd_CPPFLAGS = $(INC_UNWIND) $(CMOCKA_CFLAGS)
tests_test_unwind_absurd_LDADD = $(STACKS_LIBS)

# Plugins want a shared build.
if HAVE_SHARED
STACKS_SHARED_TESTS = tests/test_unwind_refresh tests/test_generations
check_PROGRAMS += $(STACKS_SHARED_TESTS)
TESTS += $(STACKS_SHARED_TESTS)
tests_test_generations_SOURCES = tests/test_generations.c
tests_test_generations_CPPFLAGS = $(INC_UNWIND) $(CMOCKA_CFLAGS)
tests_test_generations_LDADD = $(STACKS_LIBS) -ldl
tests_test_unwind_refresh_SOURCES = tests/test_unwind_refresh.c
tests_test_unwind_refresh_CPPFLAGS = $(INC_UNWIND) $(CMOCKA_CFLAGS)
tests_test_unwind_refresh_LDADD = $(STACKS_LIBS) -ldl
# -rpath makes libtool build a module that can be opened; it is not installed.
check_LTLIBRARIES += tests/unwind_plugin_small.la tests/unwind_plugin_large.la
tests_unwind_plugin_small_la_SOURCES = tests/unwind_plugin.c
tests_unwind_plugin_small_la_CPPFLAGS = $(AM_CPPFLAGS) -DFRAME=64
tests_unwind_plugin_small_la_CFLAGS = -O2 -fomit-frame-pointer -fvisibility=default
tests_unwind_plugin_small_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
tests_unwind_plugin_large_la_SOURCES = tests/unwind_plugin.c
tests_unwind_plugin_large_la_CPPFLAGS = $(AM_CPPFLAGS) -DFRAME=640
tests_unwind_plugin_large_la_CFLAGS = -O2 -fomit-frame-pointer -fvisibility=default
tests_unwind_plugin_large_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
endif
endif
