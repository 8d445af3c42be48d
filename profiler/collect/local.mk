# collect/: the samplers.  A collector is a folder, which is included here, and a row of collectors.def.
noinst_LTLIBRARIES += %D%/libcollect.la
%C%_libcollect_la_SOURCES = %D%/collector.h %D%/collectors.c %D%/cpu_sampler.h %D%/our_loop.h \
	%D%/proc_self.c %D%/proc_self.h %D%/seccomp.c %D%/seccomp.h %D%/stack_counts.c %D%/stack_counts.h %D%/touched.h %D%/threads_known.c \
	%D%/threads_known.h %D%/window_counts.c %D%/window_counts.h %D%/windows.c %D%/windows.h
%C%_libcollect_la_CPPFLAGS = $(OUR_WAITS) $(INC_COLLECT)
%C%_libcollect_la_LIBADD = profiler/hooks/libhooks.la
EXTRA_DIST += %D%/collectors.def

# What collectors share.
include profiler/collect/dump/local.mk
include profiler/collect/events/local.mk
include profiler/collect/labels/local.mk
include profiler/collect/resident/local.mk
# Collectors.
include profiler/collect/cpu/local.mk
include profiler/collect/custom/local.mk
include profiler/collect/heap/local.mk
include profiler/collect/leak/local.mk
include profiler/collect/memory/local.mk
include profiler/collect/mmap/local.mk
include profiler/collect/threadcreate/local.mk
include profiler/collect/threads/local.mk
include profiler/collect/trace/local.mk
include profiler/collect/waits/local.mk
include profiler/collect/wall/local.mk
