# threadcreate/: which stacks have created threads.
profiler_collect_libcollect_la_SOURCES += %D%/threadcreate.c %D%/threadcreate.h
