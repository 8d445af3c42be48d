# flags/: options.  What knows libyaml here is file.c and yaml_fault.c.
componentinclude_HEADERS += %D%/include/component/flags.h
noinst_LTLIBRARIES += %D%/libflags.la
%C%_libflags_la_SOURCES = %D%/flags.c %D%/registry.h %D%/names.c %D%/lint.c \
	%D%/parse.c %D%/fault.c %D%/round.c %D%/line.c %D%/operands.h %D%/extract.c %D%/env.c %D%/file.c %D%/yaml_fault.c %D%/yaml_fault.h \
	%D%/value.c %D%/amount.c %D%/amount.h %D%/value.h %D%/words.c %D%/words.h \
	%D%/help.c %D%/dump.c %D%/man.c %D%/completion.c
%C%_libflags_la_CFLAGS = $(AM_CFLAGS) $(SMALL_CFLAGS)
%C%_libflags_la_CPPFLAGS = $(INC_FLAGS) -iquote $(srcdir)/%D% $(YAML_CFLAGS)
