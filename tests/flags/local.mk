# tests of flags
FLAGS_UNITS = %D%/test_env %D%/test_extract %D%/test_file %D%/test_line %D%/test_lint %D%/test_memory %D%/test_precedence \
	%D%/test_reload %D%/test_value %D%/test_words
UNITS += $(FLAGS_UNITS)
WHOLE_TESTS += %D%/output.t %D%/row_types.t
EXTRA_DIST += %D%/fixture.h %D%/dump.expected %D%/help.expected %D%/help_all.expected
FLAGS_LIBS = flags/libflags.la libcomponent/base/libbase.la gnulib/libgnu.la
%D%/%.o: private AM_CPPFLAGS := $(INC_FLAGS) -iquote $(top_srcdir)/flags $(INC_UNITS)
$(FLAGS_UNITS): $(FLAGS_LIBS)
$(FLAGS_UNITS): private LDADD = $(FLAGS_LIBS) $(YAML_LIBS) $(CMOCKA_LIBS)

%C%_test_memory_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=strdup
