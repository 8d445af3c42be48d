# http/: an HTTP server on libevent's loop and buffers, and answers, whatever door they are asked for at.
noinst_LTLIBRARIES += %D%/libhttp.la
%C%_libhttp_la_CPPFLAGS = $(OUR_WAITS) $(INC_HTTP) $(EVENT_CFLAGS)
%C%_libhttp_la_SOURCES = %D%/answer.c %D%/answer.h %D%/answer_fd.c %D%/answer_fd.h %D%/connection.c %D%/event_base.c \
	%D%/expected_library.c %D%/expected_library.h %D%/httpd.c %D%/httpd.h %D%/httpd_internal.h %D%/listener.c \
	%D%/loop.c %D%/places.c %D%/posted_calls.c %D%/reply.c %D%/request.c
%C%_libhttp_la_LIBADD = $(EVENT_LIBS)
