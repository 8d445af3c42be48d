# libcomponent/: the life of a daemon, and the controller kit.
componentinclude_HEADERS += %D%/include/component/component.h %D%/include/component/controller.h \
	%D%/include/component/main.h
noinst_LTLIBRARIES += %D%/liblife.la
%C%_liblife_la_SOURCES = %D%/component.c %D%/duration.c %D%/fd.h %D%/fork.c \
	%D%/holds.c %D%/life.h \
	%D%/lifecycle.c %D%/log.c %D%/log.h %D%/log_line.c %D%/log_values.c %D%/loop.c %D%/loop.h \
	%D%/notify.c %D%/notify.h %D%/pid_file.c %D%/ready.c %D%/reload.c \
	%D%/signals.c %D%/stop.c %D%/timer.c
%C%_liblife_la_CPPFLAGS = $(INC_LIFE) -iquote $(srcdir)/%D%

# The controller kit.
%C%_liblife_la_SOURCES += %D%/controller.c %D%/controllers.c %D%/controllers.h \
	%D%/known.c %D%/known.h %D%/pace.c %D%/pace.h \
	%D%/queue.c %D%/source.c %D%/source.h
