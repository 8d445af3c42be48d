# tests of components
check_PROGRAMS += tests/subject tests/forker
tests_forker_SOURCES = tests/forker.c
tests_forker_CPPFLAGS = $(INC_COMPONENTS)
tests_forker_LDADD = components/libcomponent.la
tests_subject_SOURCES = tests/subject.c
tests_subject_CPPFLAGS = $(INC_LIFE)
tests_subject_LDADD = components/libcomponent.la

dist_check_SCRIPTS += tests/doors.t tests/golden.t tests/guest.t tests/health.t tests/matrix.t tests/profiling.t tests/reload.t
TESTS += tests/doors.t tests/golden.t tests/guest.t tests/health.t tests/matrix.t tests/profiling.t tests/reload.t

EXTRA_DIST += tests/golden/hello.json tests/golden/backend-controller.json tests/golden/cluster-agent.json \
	tests/golden/appstudio-controller.json

if HAVE_CMOCKA
check_PROGRAMS += tests/test_ports tests/test_health_answer
TESTS += tests/test_ports tests/test_health_answer
tests_test_ports_SOURCES = tests/test_ports.c
tests_test_ports_CPPFLAGS = $(INC_COMPONENTS) $(CMOCKA_CFLAGS)
tests_test_ports_LDADD = components/libcomponent.la $(CMOCKA_LIBS)
tests_test_health_answer_SOURCES = tests/test_health_answer.c components/health_answer.c
tests_test_health_answer_CPPFLAGS = $(INC_COMPONENTS) $(CMOCKA_CFLAGS)
tests_test_health_answer_LDADD = $(CMOCKA_LIBS)
endif
