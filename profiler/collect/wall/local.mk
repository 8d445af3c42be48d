# wall/: fgprof, wall-clock time.
noinst_LTLIBRARIES += %D%/libwall.la
%C%_libwall_la_SOURCES = %D%/threads.c %D%/threads.h %D%/wall.c %D%/wall.h %D%/window.c %D%/window.h
%C%_libwall_la_CPPFLAGS = $(OUR_WAITS) $(INC_COLLECT)
profiler_collect_libcollect_la_LIBADD += %D%/libwall.la
