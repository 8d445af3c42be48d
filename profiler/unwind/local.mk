# unwind/: the ways to walk a stack; arch/: what each needs to know of the processor.
noinst_LTLIBRARIES += %D%/libunwinders.la
%C%_libunwinders_la_SOURCES = %D%/cfi.c %D%/cfi.h %D%/cfi_cursor.h %D%/expression.c %D%/frame.c %D%/frame.h \
	%D%/functions.c %D%/functions.h \
	%D%/guess.c %D%/guess.h %D%/recover.c %D%/recover.h %D%/refresh.c %D%/tables.c %D%/tables.h %D%/tables_code.c \
	%D%/tables_lookup.h %D%/tables_object.c %D%/tables_object.h %D%/tables_palette.c %D%/tables_palette.h %D%/trail.c %D%/trail.h \
	%D%/undescribed.c %D%/undescribed.h %D%/unwind.c %D%/unwind.h %D%/unwind_window.c %D%/unwind_window.h %D%/verdict.c \
	%D%/verdict.h %D%/wake.c %D%/wake.h %D%/want.c %D%/want.h
# A way to walk is a file, which is named here, and a row of unwinders.def.
%C%_libunwinders_la_SOURCES += %D%/by_frame_pointer.c
%C%_libunwinders_la_SOURCES += %D%/by_libunwind.c
%C%_libunwinders_la_SOURCES += %D%/by_tables.c
EXTRA_DIST += %D%/arch %D%/unwinders.def
%C%_libunwinders_la_CPPFLAGS = $(OUR_WAITS) $(INC_UNWIND)
