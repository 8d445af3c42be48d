# heap/: live blocks and allocations.
profiler_collect_libcollect_la_SOURCES += %D%/bind.c %D%/bind.h %D%/facts.h %D%/heap.c %D%/heap.h %D%/lock.c \
	%D%/lock.h %D%/operators.c %D%/operators.h %D%/profile.c %D%/rate.c %D%/rate.h %D%/set.c %D%/set.h %D%/site.c \
	%D%/site.h
