# waits/: the mutex and block profiles.
profiler_collect_libcollect_la_SOURCES += %D%/calls.c %D%/parts.h %D%/profile.c %D%/record.c %D%/waiters.c \
	%D%/waiters.h %D%/waits.c %D%/waits.h
