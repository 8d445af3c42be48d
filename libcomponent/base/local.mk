# base/: what every other folder may use.
componentinclude_HEADERS += %D%/include/component/error.h %D%/include/component/export.h \
	%D%/include/component/log.h %D%/include/component/log_values.h \
	%D%/include/component/each.h
noinst_LTLIBRARIES += %D%/libbase.la
%C%_libbase_la_SOURCES = %D%/error.c %D%/address.c %D%/address.h %D%/listen.c \
	%D%/fork.c %D%/fork.h %D%/listen_fd.c %D%/listen_owner.c %D%/listen_unix.c %D%/listen_parts.h %D%/httpd.h %D%/listen.h %D%/own_thread.h %D%/thread_id.h \
	%D%/thread_dump.c %D%/thread_dump.h
%C%_libbase_la_CPPFLAGS = $(OWN_WAITS) $(INC_BASE) $(EVENT_CFLAGS)
%C%_libbase_la_SOURCES += %D%/heap_sort.h %D%/own_object.c %D%/own_object.h %D%/own_thread.c %D%/own_wait.h %D%/own_fd.c %D%/own_fd.h %D%/own_mask.h %D%/utc.c %D%/utc.h
%C%_libbase_la_SOURCES += %D%/answer.c %D%/answer.h %D%/answer_fd.c %D%/answer_fd.h %D%/beside.c %D%/beside.h %D%/genuine.c %D%/genuine.h %D%/httpd.c %D%/httpd_base.c %D%/httpd_conn.c %D%/httpd_place.c \
	%D%/httpd_internal.h %D%/httpd_listener.c %D%/httpd_loop.c %D%/httpd_reply.c %D%/httpd_request.c %D%/httpd_wake.c
%C%_libbase_la_SOURCES += %D%/arena.c %D%/arena.h %D%/clock.h %D%/futex.h %D%/pages.h %D%/proc_status.c %D%/proc_status.h %D%/table.c %D%/table.h %D%/varint.h
%C%_libbase_la_LIBADD = $(EVENT_LIBS)
