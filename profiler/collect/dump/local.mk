# dump/: every thread and where it stands.
noinst_LTLIBRARIES += %D%/libdump.la
%C%_libdump_la_SOURCES = %D%/locks.c %D%/locks.h %D%/previous.c %D%/previous.h %D%/quiet.c %D%/quiet.h %D%/remote.c %D%/remote.h \
	%D%/signal.c %D%/signal.h %D%/snapshot.c %D%/snapshot.h %D%/threads.c %D%/threads.h
%C%_libdump_la_CPPFLAGS = $(OUR_WAITS) $(INC_COLLECT)
profiler_collect_libcollect_la_LIBADD += %D%/libdump.la
