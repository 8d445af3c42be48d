# cpu/: the CPU profile.
noinst_LTLIBRARIES += %D%/libcpu.la
%C%_libcpu_la_SOURCES = %D%/cpu.c %D%/cpu.h %D%/ring.c %D%/ring.h %D%/scan.c %D%/signal.c %D%/signal.h %D%/slots.c \
	%D%/slots.h %D%/timers.c %D%/timers.h %D%/window.c %D%/window.h
%C%_libcpu_la_CPPFLAGS = $(OUR_WAITS) $(INC_COLLECT)
profiler_collect_libcollect_la_LIBADD += %D%/libcpu.la
