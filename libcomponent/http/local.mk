# http/: an HTTP server on libevent's loop and buffers, and answers, whatever door they are asked for at.
noinst_LTLIBRARIES += %D%/libhttp.la
%C%_libhttp_la_CFLAGS = $(AM_CFLAGS) $(SMALL_CFLAGS)
%C%_libhttp_la_CPPFLAGS = $(OUR_WAITS) $(INC_HTTP) $(EVENT_CFLAGS)
%C%_libhttp_la_SOURCES = %D%/accept.c %D%/accept.h %D%/answer.c %D%/answer.h %D%/answer_fd.c %D%/answer_fd.h %D%/connection.c %D%/connection.h \
	%D%/event_base.c %D%/event_base.h \
	%D%/expected_library.c %D%/expected_library.h %D%/hand_over.c %D%/httpd.c %D%/httpd.h \
	%D%/listener.c %D%/listener.h %D%/loop.c %D%/places.c %D%/places.h %D%/posted_calls.c %D%/posted_calls.h \
	%D%/reply.c %D%/request.c %D%/request.h %D%/server.h
%C%_libhttp_la_LIBADD = $(EVENT_LIBS)
