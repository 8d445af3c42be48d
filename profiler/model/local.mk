# model/: what collectors make and encoders read, and what the process has mapped.
noinst_LTLIBRARIES += %D%/libmodel.la
%C%_libmodel_la_SOURCES = %D%/build_id.c %D%/build_id.h %D%/dump.c %D%/dump.h \
	%D%/file.c %D%/file.h %D%/generations.c %D%/generations.h %D%/generations_ranges.c %D%/generations_ranges.h %D%/labels.c \
	%D%/labels.h %D%/maps.c %D%/maps.h %D%/maps_loader.c %D%/memory.c %D%/memory.h %D%/process.c %D%/process.h %D%/product.c \
	%D%/product.h %D%/profile.c %D%/profile.h %D%/residence.c %D%/residence.h %D%/stack_lock.c %D%/stack_lock.h %D%/stack_memory.c %D%/stack_memory.h \
	%D%/stack_table.c %D%/stack_table.h %D%/trace.c %D%/trace.h %D%/under_valgrind.c %D%/under_valgrind.h
%C%_libmodel_la_CPPFLAGS = $(OUR_WAITS) $(INC_MODEL) $(INC_ARCH)
