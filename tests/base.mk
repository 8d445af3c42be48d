# tests of base
if HAVE_CMOCKA
check_PROGRAMS += tests/test_own_thread
TESTS += tests/test_own_thread
tests_test_own_thread_SOURCES = tests/test_own_thread.c
tests_test_own_thread_CPPFLAGS = $(INC_BASE) $(CMOCKA_CFLAGS)
tests_test_own_thread_LDADD = libcomponent/base/libbase.la $(CMOCKA_LIBS)

check_PROGRAMS += tests/test_utc
TESTS += tests/test_utc
tests_test_utc_SOURCES = tests/test_utc.c
tests_test_utc_CPPFLAGS = $(INC_BASE) $(CMOCKA_CFLAGS)
tests_test_utc_LDADD = libcomponent/base/libbase.la $(CMOCKA_LIBS)

check_PROGRAMS += tests/test_fork_slots
TESTS += tests/test_fork_slots
tests_test_fork_slots_SOURCES = tests/test_fork_slots.c
tests_test_fork_slots_CPPFLAGS = $(INC_BASE) $(CMOCKA_CFLAGS)
tests_test_fork_slots_LDADD = libcomponent/base/libbase.la $(CMOCKA_LIBS)

check_PROGRAMS += tests/test_proc_status
TESTS += tests/test_proc_status
tests_test_proc_status_SOURCES = tests/test_proc_status.c
tests_test_proc_status_CPPFLAGS = $(INC_BASE) $(CMOCKA_CFLAGS)
tests_test_proc_status_LDADD = libcomponent/base/libbase.la $(CMOCKA_LIBS)

check_PROGRAMS += tests/test_own_fd
TESTS += tests/test_own_fd
tests_test_own_fd_SOURCES = tests/test_own_fd.c
tests_test_own_fd_CPPFLAGS = $(INC_BASE) $(CMOCKA_CFLAGS)
tests_test_own_fd_LDADD = libcomponent/base/libbase.la $(CMOCKA_LIBS)

check_PROGRAMS += tests/test_address
TESTS += tests/test_address
tests_test_address_SOURCES = tests/test_address.c
tests_test_address_CPPFLAGS = $(INC_BASE) $(CMOCKA_CFLAGS)
tests_test_address_LDADD = libcomponent/base/libbase.la $(CMOCKA_LIBS)

check_PROGRAMS += tests/test_listen
TESTS += tests/test_listen
tests_test_listen_SOURCES = tests/test_listen.c
tests_test_listen_CPPFLAGS = $(INC_BASE) $(CMOCKA_CFLAGS)
tests_test_listen_LDADD = libcomponent/base/libbase.la $(CMOCKA_LIBS)

check_PROGRAMS += tests/test_httpd_base
TESTS += tests/test_httpd_base
tests_test_httpd_base_SOURCES = tests/test_httpd_base.c
tests_test_httpd_base_CPPFLAGS = $(INC_HTTP) $(EVENT_CFLAGS) $(CMOCKA_CFLAGS)
tests_test_httpd_base_LDADD = libcomponent/http/libhttp.la libcomponent/base/libbase.la $(CMOCKA_LIBS)

check_PROGRAMS += tests/test_httpd_wake
TESTS += tests/test_httpd_wake
tests_test_httpd_wake_SOURCES = tests/test_httpd_wake.c
tests_test_httpd_wake_CPPFLAGS = $(INC_HTTP) $(EVENT_CFLAGS) $(CMOCKA_CFLAGS)
tests_test_httpd_wake_LDADD = libcomponent/http/libhttp.la libcomponent/base/libbase.la $(CMOCKA_LIBS)
endif
