# events/: what hooks, handlers and annotations tell a trace.
noinst_LTLIBRARIES += %D%/libevents.la
%C%_libevents_la_SOURCES = %D%/ring.c %D%/ring.h %D%/wait.c %D%/wait.h %D%/writers.c %D%/writers.h
%C%_libevents_la_CPPFLAGS = $(OUR_WAITS) $(INC_COLLECT)
profiler_collect_libcollect_la_LIBADD += %D%/libevents.la
