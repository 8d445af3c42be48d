# leak/: goroutineleak, threads that wait for ever.
noinst_LTLIBRARIES += %D%/libleak.la
%C%_libleak_la_SOURCES = %D%/leak.c
%C%_libleak_la_CPPFLAGS = $(OUR_WAITS) $(INC_COLLECT)
profiler_collect_libcollect_la_LIBADD += %D%/libleak.la
