# outside/: another process, looked at from outside.  For tools: no daemon has it.
noinst_LTLIBRARIES += %D%/liboutside.la
%C%_liboutside_la_SOURCES = %D%/cpu.c %D%/outside.c %D%/outside.h %D%/perf.c %D%/perf.h %D%/refused.c %D%/refused.h %D%/threads.c
%C%_liboutside_la_CPPFLAGS = $(INC_OUTSIDE)
