# tests of serve
check_PROGRAMS += tests/serve_daemon
tests_serve_daemon_SOURCES = tests/serve_daemon.c
tests_serve_daemon_CPPFLAGS = $(INC_BASE) -I$(top_srcdir)/profiler/include
# With the hooks, as a program that links what pkg-config says.
tests_serve_daemon_LDFLAGS = $(AM_LDFLAGS) -Wl,-u,component_hooks
tests_serve_daemon_LDADD = profiler/hooks/libcomponent_hooks_nonshared.a components/libcomponent.la -ldl
EXTRA_DIST += tests/serving.py
# The same routes on a server of the daemon's own.
check_PROGRAMS += tests/evhttp_daemon
tests_evhttp_daemon_SOURCES = tests/evhttp_daemon.c
tests_evhttp_daemon_CPPFLAGS = $(INC_BASE) -I$(top_srcdir)/profiler/include $(EVENT_CFLAGS)
tests_evhttp_daemon_LDFLAGS = $(AM_LDFLAGS) -Wl,-u,component_hooks
tests_evhttp_daemon_LDADD = profiler/hooks/libcomponent_hooks_nonshared.a components/libcomponent.la $(EVENT_LIBS)
dist_check_SCRIPTS += tests/evhttp.t
TESTS += tests/evhttp.t
# What speaks against evhttp for our own server.
check_PROGRAMS += tests/evhttp_why
tests_evhttp_why_SOURCES = tests/evhttp_why.c
tests_evhttp_why_CPPFLAGS = -I$(top_builddir) $(EVENT_CFLAGS)
tests_evhttp_why_LDADD = $(EVENT_LIBS)
dist_check_SCRIPTS += tests/evhttp_why.t
TESTS += tests/evhttp_why.t
# QUIT and USR2 of a daemon that hangs, in the loader too.
check_PROGRAMS += tests/dump_stuck
tests_dump_stuck_SOURCES = tests/dump_stuck.c
tests_dump_stuck_CPPFLAGS = $(INC_COMPONENTS)
tests_dump_stuck_LDADD = components/libcomponent.la -ldl
check_LTLIBRARIES += tests/dump_plugin.la
tests_dump_plugin_la_SOURCES = tests/dump_plugin.c
tests_dump_plugin_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere
dist_check_SCRIPTS += tests/dump.t
TESTS += tests/dump.t
# A program whose wall time is known.
check_PROGRAMS += tests/fgprof_load
tests_fgprof_load_SOURCES = tests/fgprof_load.c
tests_fgprof_load_CPPFLAGS = $(INC_BASE) -I$(top_srcdir)/profiler/include
tests_fgprof_load_CFLAGS = $(AM_CFLAGS) -fno-optimize-sibling-calls
tests_fgprof_load_LDADD = components/libcomponent.la -ldl
serve_scripts = tests/fgprof.t tests/profile_write.t tests/generations.t tests/labels.t tests/serve_auth.t tests/http_fuzz.t tests/serve_custom.t tests/serve_delta.t tests/serve_fork.t tests/serve_genuine.t tests/serve_http.t \
	tests/serve_life.t tests/serve_limits.t tests/serve_profile.t tests/serve_rates.t tests/serve_threads.t
dist_check_SCRIPTS += $(serve_scripts)
TESTS += $(serve_scripts)
if HAVE_CMOCKA
serve_units = tests/test_auth tests/test_cmdline tests/test_options tests/test_params tests/test_profile_write
check_PROGRAMS += $(serve_units)
TESTS += $(serve_units)
serve_libs = profiler/serve/libserve.la profiler/collect/libcollect.la profiler/encode/libencode.la \
	profiler/symbols/libsymbols.la profiler/unwind/libunwinders.la profiler/model/libmodel.la libcomponent/http/libhttp.la libcomponent/base/libbase.la \
	$(ZLIB_LIBS) $(PROTOBUFC_LIBS) $(CMOCKA_LIBS)
tests_test_auth_SOURCES = tests/test_auth.c
tests_test_auth_CPPFLAGS = $(INC_SERVE) $(CMOCKA_CFLAGS)
tests_test_auth_LDADD = $(serve_libs)
tests_test_cmdline_SOURCES = tests/test_cmdline.c
tests_test_cmdline_CPPFLAGS = $(INC_SERVE) $(CMOCKA_CFLAGS)
tests_test_cmdline_LDADD = $(serve_libs)
tests_test_options_SOURCES = tests/test_options.c
tests_test_options_CPPFLAGS = $(INC_SERVE) $(CMOCKA_CFLAGS)
tests_test_options_LDADD = $(serve_libs)
tests_test_profile_write_SOURCES = tests/test_profile_write.c
tests_test_profile_write_CPPFLAGS = $(INC_BASE) -I$(top_srcdir)/profiler/include $(CMOCKA_CFLAGS)
tests_test_profile_write_LDADD = components/libcomponent.la -ldl $(CMOCKA_LIBS)
tests_test_params_SOURCES = tests/test_params.c
tests_test_params_CPPFLAGS = $(INC_SERVE) $(CMOCKA_CFLAGS)
tests_test_params_LDADD = $(serve_libs)
endif
# Execution traces of a program that measures its own waits.
check_PROGRAMS += tests/trace_program
tests_trace_program_SOURCES = tests/trace_program.c
tests_trace_program_CPPFLAGS = $(INC_BASE) -I$(top_srcdir)/profiler/include
tests_trace_program_CFLAGS = $(AM_CFLAGS) -g -O1 -fno-optimize-sibling-calls
tests_trace_program_LDFLAGS = $(AM_LDFLAGS) -Wl,-u,component_hooks
tests_trace_program_LDADD = profiler/hooks/libcomponent_hooks_nonshared.a components/libcomponent.la -ldl -lrt
TESTS += tests/trace.t
dist_check_SCRIPTS += tests/trace.t
EXTRA_DIST += tests/gotools.py
