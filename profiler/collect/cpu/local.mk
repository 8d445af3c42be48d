# cpu/: the CPU profile.
profiler_collect_libcollect_la_SOURCES += %D%/cpu.c %D%/cpu.h %D%/parts.h %D%/ring.c %D%/ring.h %D%/scan.c \
	%D%/signal.c %D%/signal.h %D%/slots.c %D%/status.c %D%/timers.c %D%/timers.h %D%/timers_parts.h
