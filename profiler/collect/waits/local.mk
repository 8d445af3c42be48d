# waits/: the mutex and block profiles.
noinst_LTLIBRARIES += %D%/libwaits.la
%C%_libwaits_la_SOURCES = %D%/plain_mutex.c %D%/plain_mutex.h %D%/record.c %D%/waiters.c %D%/waiters.h %D%/waits.c %D%/waits.h
%C%_libwaits_la_CPPFLAGS = $(OUR_WAITS) $(INC_COLLECT)
profiler_collect_libcollect_la_LIBADD += %D%/libwaits.la
