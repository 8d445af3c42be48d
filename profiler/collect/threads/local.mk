# threads/: goroutine and threads, a profile of a dump.
profiler_collect_libcollect_la_SOURCES += %D%/threads.c
