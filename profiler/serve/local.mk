# serve/: /debug/pprof/ over HTTP, and the public door to it.
componentinclude_HEADERS += profiler/include/component/profiler.h profiler/include/component/evhttp.h profiler/include/component/labels.h \
	profiler/include/component/trace.h
noinst_LTLIBRARIES += %D%/libserve.la
%C%_libserve_la_SOURCES = %D%/addresses.c %D%/addresses.h %D%/auth.c %D%/auth.h %D%/cmdline.c \
	%D%/dump_to_fd.c %D%/evhttp.c %D%/evhttp_ask.c %D%/evhttp_ask.h %D%/evhttp_door.c %D%/evhttp_door.h %D%/index.c \
	%D%/job.c %D%/job.h %D%/options.c %D%/page.c %D%/options.def %D%/options.h %D%/profile_request.c \
	%D%/profile_request.h %D%/profile_write.c %D%/profiler.c %D%/profiler.h %D%/query.c %D%/query.h \
	%D%/rates.c %D%/rates.h %D%/reply.c %D%/reply.h %D%/routes.c %D%/routes.h %D%/serve.c %D%/serve.h \
	%D%/siblings.c %D%/siblings.h %D%/status.c %D%/stop.c %D%/symbol.c %D%/unfiltered.c %D%/unfiltered.h \
	%D%/viewer.c %D%/viewer.h
%C%_libserve_la_CFLAGS = $(AM_CFLAGS) $(SMALL_CFLAGS)
%C%_libserve_la_CPPFLAGS = $(OUR_WAITS) $(INC_SERVE) $(EVENT_CFLAGS) $(ZLIB_CFLAGS) \
	-DVIEWER_FILE='"$(pkgdatadir)/viewer.html.gz"'
