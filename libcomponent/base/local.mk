# base/: what every other folder may use.
componentinclude_HEADERS += %D%/include/component/error.h %D%/include/component/export.h \
	%D%/include/component/log.h %D%/include/component/log_values.h \
	%D%/include/component/each.h
noinst_LTLIBRARIES += %D%/libbase.la
%C%_libbase_la_CPPFLAGS = $(OWN_WAITS) $(INC_BASE)
%C%_libbase_la_SOURCES = %D%/address.c %D%/address.h %D%/arena.c %D%/arena.h %D%/clock.h %D%/error.c %D%/fd.h %D%/fork.c %D%/fork.h \
	%D%/futex.h %D%/heap_sort.h %D%/listen.c %D%/listen.h %D%/listen_fd.c %D%/listen_owner.c %D%/listen_parts.h \
	%D%/listen_unix.c %D%/own_fd.c %D%/own_fd.h %D%/own_mask.h %D%/own_object.c %D%/own_object.h \
	%D%/own_thread.c %D%/own_thread.h %D%/own_wait.h %D%/pages.h %D%/proc_status.c %D%/proc_status.h \
	%D%/replacement.c %D%/replacement.h %D%/separator.h %D%/table.c %D%/table.h %D%/thread_dump.c %D%/thread_dump.h %D%/thread_id.h \
	%D%/utc.c %D%/utc.h %D%/varint.h
