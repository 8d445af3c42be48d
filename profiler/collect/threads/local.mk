# threads/: goroutine and threads, a profile of a dump.
noinst_LTLIBRARIES += %D%/libthreads.la
%C%_libthreads_la_SOURCES = %D%/threads.c
%C%_libthreads_la_CPPFLAGS = $(OUR_WAITS) $(INC_COLLECT)
profiler_collect_libcollect_la_LIBADD += %D%/libthreads.la
