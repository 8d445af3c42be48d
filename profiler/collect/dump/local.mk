# dump/: every thread and where it stands.
profiler_collect_libcollect_la_SOURCES += %D%/list.c %D%/parts.h %D%/previous.c %D%/previous.h %D%/quiet.c %D%/quiet.h \
	%D%/remote.c %D%/remote.h %D%/signal.c %D%/signal.h %D%/threads.c %D%/threads.h %D%/threads_dump.c
