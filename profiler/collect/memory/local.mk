# memory/: where the resident memory is.
noinst_LTLIBRARIES += %D%/libmemory.la
%C%_libmemory_la_SOURCES = %D%/memory.c
%C%_libmemory_la_CPPFLAGS = $(OUR_WAITS) $(INC_COLLECT)
profiler_collect_libcollect_la_LIBADD += %D%/libmemory.la
