# stacks/: unwinding, the stack table, struct profile.
noinst_LTLIBRARIES += %D%/libstacks.la
%C%_libstacks_la_SOURCES = %D%/dump.c %D%/dump.h %D%/product.c %D%/product.h %D%/trace.c %D%/trace.h %D%/labels.c %D%/labels.h %D%/profile.c %D%/profile.h %D%/stack_table.c %D%/stack_table.h \
	%D%/generations.c %D%/generations.h %D%/generations_id.c %D%/generations_parts.h %D%/generations_ranges.c %D%/generations_tag.c \
	%D%/stack_lock.c %D%/stack_lock.h %D%/stack_memory.c %D%/stack_memory.h \
	%D%/unwind.c %D%/unwind.h %D%/unwind_load.h %D%/unwind_recover.c %D%/unwind_recover.h %D%/unwind_first.c %D%/unwind_first.h %D%/unwind_guess.c %D%/unwind_guess.h %D%/unwind_refresh.c %D%/unwind_tables.c %D%/unwind_tables.h \
	%D%/unwind_expression.c %D%/unwind_frame.c %D%/unwind_frame.h %D%/unwind_undescribed.c %D%/unwind_undescribed.h %D%/unwind_want.c %D%/unwind_want.h %D%/unwind_verdict.c %D%/unwind_verdict.h %D%/unwind_window.c %D%/unwind_remote.c %D%/unwind_remote.h %D%/tables_lookup.h \
	%D%/tables.c %D%/tables.h %D%/tables_code.c %D%/tables_object.c %D%/tables_palette.c %D%/tables_sections.c %D%/tables_parts.h %D%/cfi.c %D%/cfi.h %D%/cfi_cursor.h %D%/maps.c %D%/maps.h %D%/maps_loader.c %D%/maps_parts.h %D%/file.c %D%/file.h %D%/memory.c %D%/memory.h \
	%D%/under_valgrind.c %D%/under_valgrind.h
EXTRA_DIST += %D%/arch
%C%_libstacks_la_CPPFLAGS = $(OWN_WAITS) $(INC_STACKS)
