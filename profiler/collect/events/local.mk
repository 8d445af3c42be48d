# events/: what hooks, handlers and annotations tell a trace.
profiler_collect_libcollect_la_SOURCES += %D%/ring.c %D%/ring.h %D%/wait.c %D%/wait.h %D%/writers.c %D%/writers.h
