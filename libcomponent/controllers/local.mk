# controllers/: the controller kit: a source, a work queue, workers.
componentinclude_HEADERS += libcomponent/include/component/controller.h
noinst_LTLIBRARIES += %D%/libcontrollers.la
%C%_libcontrollers_la_CFLAGS = $(AM_CFLAGS) $(SMALL_CFLAGS)
%C%_libcontrollers_la_CPPFLAGS = $(INC_CONTROLLERS)
%C%_libcontrollers_la_SOURCES = %D%/controller.c %D%/controllers.c %D%/controllers.h %D%/figures.c %D%/figures.h \
	%D%/leader.c %D%/leader.h %D%/leader_flock.c %D%/leader_options.c %D%/queue.c %D%/retry_delay.c %D%/retry_delay.h %D%/source.c %D%/source.h \
	%D%/watched.c %D%/watched.h
