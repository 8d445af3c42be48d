# heap/: live blocks and allocations.
noinst_LTLIBRARIES += %D%/libheap.la
%C%_libheap_la_SOURCES = %D%/bind.c %D%/bind.h %D%/heap.c %D%/heap.h %D%/hot.h %D%/lock.c \
	%D%/lock.h %D%/operators.c %D%/operators.h %D%/profile.c %D%/rate.c %D%/rate.h %D%/set.c %D%/set.h %D%/site.c \
	%D%/site.h %D%/trails.c %D%/trails.h
%C%_libheap_la_CPPFLAGS = $(OUR_WAITS) $(INC_COLLECT)
profiler_collect_libcollect_la_LIBADD += %D%/libheap.la
