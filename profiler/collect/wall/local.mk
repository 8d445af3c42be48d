# wall/: fgprof, wall-clock time.
profiler_collect_libcollect_la_SOURCES += %D%/threads.c %D%/threads.h %D%/wall.c %D%/wall.h %D%/window.c %D%/window.h
