# custom/: profiles that the program keeps itself.
noinst_LTLIBRARIES += %D%/libcustom.la
%C%_libcustom_la_SOURCES = %D%/custom.c %D%/custom.h
%C%_libcustom_la_CPPFLAGS = $(OUR_WAITS) $(INC_COLLECT)
profiler_collect_libcollect_la_LIBADD += %D%/libcustom.la
