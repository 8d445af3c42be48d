# mmap/: what the program has mapped itself.
noinst_LTLIBRARIES += %D%/libmmap.la
%C%_libmmap_la_SOURCES = %D%/later.c %D%/later.h %D%/live.c %D%/live.h %D%/mmap.c
%C%_libmmap_la_CPPFLAGS = $(OUR_WAITS) $(INC_COLLECT)
profiler_collect_libcollect_la_LIBADD += %D%/libmmap.la
