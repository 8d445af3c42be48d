# labels/: labels of threads.
noinst_LTLIBRARIES += %D%/liblabels.la
%C%_liblabels_la_SOURCES = %D%/api.c %D%/record.h %D%/thread.c %D%/thread.h
%C%_liblabels_la_CPPFLAGS = $(OUR_WAITS) $(INC_COLLECT)
profiler_collect_libcollect_la_LIBADD += %D%/liblabels.la
