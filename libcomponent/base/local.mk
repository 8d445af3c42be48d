# base/: what every other folder may use.
componentinclude_HEADERS += %D%/include/component/error.h %D%/include/component/export.h \
	%D%/include/component/log.h %D%/include/component/log_values.h \
	%D%/include/component/duration.h %D%/include/component/each.h
noinst_LTLIBRARIES += %D%/libbase.la
%C%_libbase_la_CPPFLAGS = $(OUR_WAITS) $(INC_BASE)
%C%_libbase_la_SOURCES = %D%/absolute_path.h %D%/address.c %D%/address.h %D%/arena.c %D%/arena.h \
	%D%/clock.h %D%/digits.h %D%/due_heap.c %D%/due_heap.h %D%/error.c %D%/fd.c %D%/fd.h %D%/fork.c %D%/fork.h %D%/fork_signals.c %D%/fork_mark.h \
	%D%/futex.h %D%/sort.h %D%/listen.c %D%/listen.h %D%/listen_dead.c %D%/listen_fd.c %D%/listen_owner.c %D%/listen_owner.h %D%/listen_tcp.c \
	%D%/listen_unix.c %D%/nearest.c %D%/nearest.h %D%/our_fd.c %D%/our_fd.h %D%/our_lock.c %D%/our_lock.h %D%/our_mask.h %D%/our_object.c %D%/our_object.h \
	%D%/our_table.c %D%/our_table.h %D%/our_thread.c %D%/our_thread.h %D%/our_wait.h %D%/pages.c %D%/pages.h %D%/per_thread.h %D%/proc_status.c %D%/proc_status.h %D%/process_start.c %D%/process_start.h %D%/record.c %D%/record.h \
	%D%/replacement.c %D%/replacement.h %D%/separator.h %D%/table.c %D%/table.h %D%/thread_dump.c %D%/thread_dump.h %D%/thread_id.h \
	%D%/text.c %D%/text.h %D%/utc.c %D%/utc.h %D%/utf8.c %D%/utf8.h %D%/varint.h
