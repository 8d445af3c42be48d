# unwind/: the ways to walk a stack; arch/: what each needs to know of the processor.
noinst_LTLIBRARIES += %D%/libunwinders.la
%C%_libunwinders_la_SOURCES = %D%/by_libunwind.c %D%/by_libunwind.h %D%/by_tables.c %D%/by_tables.h %D%/cfi.c \
	%D%/cfi.h %D%/cfi_cursor.h %D%/expression.c %D%/first_tables.c %D%/first_tables.h %D%/frame.c %D%/frame.h \
	%D%/guess.c %D%/guess.h %D%/recover.c %D%/recover.h %D%/refresh.c %D%/tables.c %D%/tables.h %D%/tables_code.c \
	%D%/tables_lookup.h %D%/tables_object.c %D%/tables_palette.c %D%/tables_parts.h %D%/tables_sections.c \
	%D%/undescribed.c %D%/undescribed.h %D%/unwind.c %D%/unwind.h %D%/unwind_window.c %D%/unwind_window.h %D%/verdict.c \
	%D%/verdict.h %D%/wanted.c %D%/wanted.h
EXTRA_DIST += %D%/arch
%C%_libunwinders_la_CPPFLAGS = $(OWN_WAITS) $(INC_UNWIND)
