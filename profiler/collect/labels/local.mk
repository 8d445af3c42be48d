# labels/: labels of threads.
profiler_collect_libcollect_la_SOURCES += %D%/api.c %D%/record.h %D%/thread.c %D%/thread.h
