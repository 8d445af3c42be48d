# threadcreate/: which stacks have created threads.
noinst_LTLIBRARIES += %D%/libthreadcreate.la
%C%_libthreadcreate_la_SOURCES = %D%/threadcreate.c %D%/threadcreate.h
%C%_libthreadcreate_la_CPPFLAGS = $(OUR_WAITS) $(INC_COLLECT)
profiler_collect_libcollect_la_LIBADD += %D%/libthreadcreate.la
