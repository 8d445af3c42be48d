# serve/: /debug/pprof/ over HTTP, and the public door to it.
componentinclude_HEADERS += profiler/include/component/profiler.h profiler/include/component/evhttp.h profiler/include/component/labels.h \
	profiler/include/component/trace.h
noinst_LTLIBRARIES += %D%/libserve.la
%C%_libserve_la_SOURCES = %D%/auth.c %D%/auth.h %D%/cmdline.c %D%/cmdline.h %D%/degraded.c %D%/degraded.h %D%/dump.c %D%/evhttp.c %D%/evhttp_ask.c %D%/evhttp_ask.h %D%/evhttp_door.c %D%/evhttp_door.h %D%/index.c %D%/index.h %D%/job.c %D%/job.h %D%/job_internal.h %D%/job_stream.c %D%/options.c %D%/options.def %D%/options.h %D%/page.c %D%/page.h %D%/params.c %D%/params.h \
	%D%/port_file.c %D%/port_file.h %D%/profile_write.c %D%/profiler.c %D%/profiler.h %D%/rates.c %D%/rates.h %D%/reply.c %D%/reply.h %D%/routes.c %D%/routes.h %D%/serve.c %D%/change.c %D%/move.c %D%/serve.h %D%/spec.c %D%/spec.h %D%/symbol.c %D%/symbol.h %D%/collect.c %D%/collect.h
%C%_libserve_la_CPPFLAGS = $(OWN_WAITS) $(INC_SERVE) $(EVENT_CFLAGS)
