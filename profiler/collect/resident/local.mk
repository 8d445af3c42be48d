# resident/: what the resident memory of this process is for; for the collectors that tell of it.
noinst_LTLIBRARIES += %D%/libresident.la
%C%_libresident_la_SOURCES = %D%/allocator.c %D%/allocator.h %D%/arenas.c %D%/malloc_info.c %D%/owners.c %D%/owners.h \
	%D%/ranges.c %D%/ranges.h %D%/resident.c %D%/resident.h %D%/smaps.c %D%/smaps.h %D%/stacks.c
%C%_libresident_la_CPPFLAGS = $(OUR_WAITS) $(INC_COLLECT)
profiler_collect_libcollect_la_LIBADD += %D%/libresident.la
