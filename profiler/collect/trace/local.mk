# trace/: execution traces.
noinst_LTLIBRARIES += %D%/libtrace.la
%C%_libtrace_la_SOURCES = %D%/annotations.c %D%/calls.c %D%/calls.h %D%/finish.c %D%/finish.h %D%/look.c %D%/look.h \
	%D%/perf.c %D%/perf.h %D%/reason.c %D%/reason.h %D%/threads.c %D%/threads.h %D%/tracer.c %D%/tracer.h
%C%_libtrace_la_CPPFLAGS = $(OUR_WAITS) $(INC_COLLECT)
profiler_collect_libcollect_la_LIBADD += %D%/libtrace.la
