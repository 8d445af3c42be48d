# serve/: /debug/pprof/ over HTTP, and the public door to it.
componentinclude_HEADERS += profiler/include/component/profiler.h profiler/include/component/evhttp.h profiler/include/component/labels.h \
	profiler/include/component/trace.h
noinst_LTLIBRARIES += %D%/libserve.la
%C%_libserve_la_SOURCES = %D%/addresses.c %D%/addresses.h %D%/auth.c %D%/auth.h %D%/cmdline.c \
	%D%/cmdline.h %D%/collect.c %D%/collect.h %D%/debug_page.c %D%/debug_page.h %D%/dump_to_fd.c \
	%D%/evhttp.c %D%/evhttp_ask.c %D%/evhttp_ask.h %D%/evhttp_door.c %D%/evhttp_door.h \
	%D%/index.c %D%/index.h %D%/job.c %D%/job.h %D%/limitations.c %D%/limitations.h \
	%D%/options.c %D%/options.def %D%/options.h %D%/port_file.c %D%/port_file.h %D%/profile_write.c \
	%D%/profiler.c %D%/profiler.h %D%/query.c %D%/query.h %D%/rates.c %D%/rates.h %D%/reply.c \
	%D%/reply.h %D%/request_parameters.c %D%/request_parameters.h %D%/routes.c %D%/routes.h \
	%D%/serve.c %D%/serve.h %D%/symbol.c %D%/symbol.h
%C%_libserve_la_CPPFLAGS = $(OUR_WAITS) $(INC_SERVE) $(EVENT_CFLAGS)
