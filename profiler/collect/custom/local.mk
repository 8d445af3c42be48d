# custom/: profiles that the program keeps itself.
profiler_collect_libcollect_la_SOURCES += %D%/custom.c %D%/custom.h
