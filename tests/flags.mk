# tests of flags
FLAGS_TEST_CPPFLAGS = $(INC_FLAGS) -iquote $(top_srcdir)/flags $(CMOCKA_CFLAGS)
FLAGS_TEST_LDADD = flags/libflags.la libcomponent/base/libbase.la gnulib/libgnu.la $(YAML_LIBS) $(CMOCKA_LIBS)
if HAVE_CMOCKA
check_PROGRAMS += %D%/test_flags_env
TESTS += %D%/test_flags_env
%C%_test_flags_env_SOURCES = %D%/test_flags_env.c %D%/flags_fixture.h
%C%_test_flags_env_CPPFLAGS = $(FLAGS_TEST_CPPFLAGS)
%C%_test_flags_env_LDADD = $(FLAGS_TEST_LDADD)

check_PROGRAMS += %D%/test_flags_file
TESTS += %D%/test_flags_file
%C%_test_flags_file_SOURCES = %D%/test_flags_file.c %D%/flags_fixture.h
%C%_test_flags_file_CPPFLAGS = $(FLAGS_TEST_CPPFLAGS)
%C%_test_flags_file_LDADD = $(FLAGS_TEST_LDADD)

check_PROGRAMS += %D%/test_flags_line
TESTS += %D%/test_flags_line
%C%_test_flags_line_SOURCES = %D%/test_flags_line.c %D%/flags_fixture.h
%C%_test_flags_line_CPPFLAGS = $(FLAGS_TEST_CPPFLAGS)
%C%_test_flags_line_LDADD = $(FLAGS_TEST_LDADD)

check_PROGRAMS += %D%/test_flags_lint
TESTS += %D%/test_flags_lint
%C%_test_flags_lint_SOURCES = %D%/test_flags_lint.c %D%/flags_fixture.h
%C%_test_flags_lint_CPPFLAGS = $(FLAGS_TEST_CPPFLAGS)
%C%_test_flags_lint_LDADD = $(FLAGS_TEST_LDADD)

check_PROGRAMS += %D%/test_flags_memory
TESTS += %D%/test_flags_memory
%C%_test_flags_memory_SOURCES = %D%/test_flags_memory.c %D%/flags_fixture.h
%C%_test_flags_memory_CPPFLAGS = $(FLAGS_TEST_CPPFLAGS)
%C%_test_flags_memory_LDADD = $(FLAGS_TEST_LDADD)

check_PROGRAMS += %D%/test_flags_precedence
TESTS += %D%/test_flags_precedence
%C%_test_flags_precedence_SOURCES = %D%/test_flags_precedence.c %D%/flags_fixture.h
%C%_test_flags_precedence_CPPFLAGS = $(FLAGS_TEST_CPPFLAGS)
%C%_test_flags_precedence_LDADD = $(FLAGS_TEST_LDADD)

check_PROGRAMS += %D%/test_flags_reload
TESTS += %D%/test_flags_reload
%C%_test_flags_reload_SOURCES = %D%/test_flags_reload.c %D%/flags_fixture.h
%C%_test_flags_reload_CPPFLAGS = $(FLAGS_TEST_CPPFLAGS)
%C%_test_flags_reload_LDADD = $(FLAGS_TEST_LDADD)

check_PROGRAMS += %D%/test_flags_text
TESTS += %D%/test_flags_text
%C%_test_flags_text_SOURCES = %D%/test_flags_text.c %D%/flags_fixture.h
%C%_test_flags_text_CPPFLAGS = $(FLAGS_TEST_CPPFLAGS)
%C%_test_flags_text_LDADD = $(FLAGS_TEST_LDADD)

check_PROGRAMS += %D%/test_flags_value
TESTS += %D%/test_flags_value
%C%_test_flags_value_SOURCES = %D%/test_flags_value.c %D%/flags_fixture.h
%C%_test_flags_value_CPPFLAGS = $(FLAGS_TEST_CPPFLAGS)
%C%_test_flags_value_LDADD = $(FLAGS_TEST_LDADD)

%C%_test_flags_memory_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=strdup
endif

check_PROGRAMS += %D%/flags_program
%C%_flags_program_SOURCES = %D%/flags_program.c
%C%_flags_program_CPPFLAGS = $(INC_EXAMPLES)
%C%_flags_program_LDADD = flags/libflags.la libcomponent/base/libbase.la gnulib/libgnu.la $(YAML_LIBS)

TESTS += %D%/flags_program.t
dist_check_SCRIPTS += %D%/flags_program.t

TESTS += %D%/flags_types.t
dist_check_SCRIPTS += %D%/flags_types.t
EXTRA_DIST += %D%/flags_dump.expected %D%/flags_help.expected %D%/flags_help_all.expected
