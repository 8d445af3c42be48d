# tests of encode
check_PROGRAMS += tests/encode_sample
tests_encode_sample_SOURCES = tests/encode_sample.c tests/named_function.h
tests_encode_sample_CPPFLAGS = $(INC_ENCODE)
tests_encode_sample_LDADD = profiler/encode/libencode.la profiler/symbols/libsymbols.la \
	profiler/unwind/libunwinders.la profiler/model/libmodel.la libcomponent/base/libbase.la $(PROTOBUFC_LIBS) $(ZLIB_LIBS)

if HAVE_CMOCKA
ENCODE_TESTS = tests/test_encode tests/test_encode_text tests/test_gotrace
check_PROGRAMS += $(ENCODE_TESTS)
TESTS += $(ENCODE_TESTS)
tests_test_encode_SOURCES = tests/test_encode.c tests/encode_fixture.h tests/named_function.h
tests_test_encode_CPPFLAGS = $(INC_ENCODE) $(PROTOBUFC_CFLAGS) $(ZLIB_CFLAGS) $(CMOCKA_CFLAGS)
tests_test_encode_LDADD = $(tests_encode_sample_LDADD) $(CMOCKA_LIBS)
tests_test_encode_text_SOURCES = tests/test_encode_text.c tests/encode_fixture.h tests/named_function.h
tests_test_encode_text_CPPFLAGS = $(INC_ENCODE) $(CMOCKA_CFLAGS)
tests_test_encode_text_LDADD = $(tests_encode_sample_LDADD) $(CMOCKA_LIBS)
tests_test_gotrace_SOURCES = tests/test_gotrace.c
tests_test_gotrace_CPPFLAGS = $(INC_ENCODE) $(ZLIB_CFLAGS) $(CMOCKA_CFLAGS)
tests_test_gotrace_LDADD = $(tests_encode_sample_LDADD) $(CMOCKA_LIBS)
endif
TESTS += tests/encode.t
dist_check_SCRIPTS += tests/encode.t
EXTRA_DIST += tests/pprof_reader.py

# Execution traces: a simulator, whose traces the real go tool trace opens.
check_PROGRAMS += tests/gotrace_sample
tests_gotrace_sample_SOURCES = tests/gotrace_sample.c tests/named_function.h
tests_gotrace_sample_CPPFLAGS = $(INC_ENCODE)
tests_gotrace_sample_CFLAGS = $(AM_CFLAGS) -g -O1
tests_gotrace_sample_LDADD = $(tests_encode_sample_LDADD)
TESTS += tests/gotrace.t
dist_check_SCRIPTS += tests/gotrace.t
