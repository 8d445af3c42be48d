# tests of life
LIFE_TEST_CPPFLAGS = $(INC_LIFECYCLE) $(CMOCKA_CFLAGS)
LIFE_TEST_LDADD = libcomponent/lifecycle/liblifecycle.la flags/libflags.la libcomponent/base/libbase.la \
	gnulib/libgnu.la $(YAML_LIBS)
if HAVE_CMOCKA
check_PROGRAMS += %D%/test_loop %D%/test_log %D%/test_lifecycle %D%/test_life_config %D%/test_notify %D%/test_fork
TESTS += %D%/test_loop %D%/test_log %D%/test_lifecycle %D%/test_life_config %D%/test_notify %D%/test_fork
%C%_test_loop_SOURCES = %D%/test_loop.c
%C%_test_loop_CPPFLAGS = $(LIFE_TEST_CPPFLAGS)
%C%_test_loop_LDADD = $(LIFE_TEST_LDADD) $(CMOCKA_LIBS)
%C%_test_log_SOURCES = %D%/test_log.c
%C%_test_log_CPPFLAGS = $(LIFE_TEST_CPPFLAGS)
%C%_test_log_LDADD = $(LIFE_TEST_LDADD) $(CMOCKA_LIBS)
%C%_test_lifecycle_SOURCES = %D%/test_lifecycle.c %D%/life_fixture.h %D%/life_parts.h
%C%_test_lifecycle_CPPFLAGS = $(LIFE_TEST_CPPFLAGS)
%C%_test_lifecycle_LDADD = $(LIFE_TEST_LDADD) $(CMOCKA_LIBS)
%C%_test_life_config_SOURCES = %D%/test_life_config.c %D%/life_fixture.h %D%/life_parts.h
%C%_test_life_config_CPPFLAGS = $(LIFE_TEST_CPPFLAGS)
%C%_test_life_config_LDADD = $(LIFE_TEST_LDADD) $(CMOCKA_LIBS)
%C%_test_notify_SOURCES = %D%/test_notify.c %D%/life_fixture.h
%C%_test_notify_CPPFLAGS = $(LIFE_TEST_CPPFLAGS)
%C%_test_notify_LDADD = $(LIFE_TEST_LDADD) $(CMOCKA_LIBS)
%C%_test_fork_SOURCES = %D%/test_fork.c %D%/life_fixture.h
%C%_test_fork_CPPFLAGS = $(LIFE_TEST_CPPFLAGS)
%C%_test_fork_LDADD = $(LIFE_TEST_LDADD) $(CMOCKA_LIBS)
endif
check_PROGRAMS += %D%/life_daemon
%C%_life_daemon_SOURCES = %D%/life_daemon.c
%C%_life_daemon_CPPFLAGS = $(INC_LIFE)
%C%_life_daemon_LDADD = $(LIFE_TEST_LDADD)
TESTS += %D%/signals.t
dist_check_SCRIPTS += %D%/signals.t
