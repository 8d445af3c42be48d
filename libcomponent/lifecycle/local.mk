# lifecycle/: the life of a daemon: start, loop, log, signals, reload, stop.
componentinclude_HEADERS += libcomponent/include/component/component.h libcomponent/include/component/main.h
noinst_LTLIBRARIES += %D%/liblifecycle.la
%C%_liblifecycle_la_CFLAGS = $(AM_CFLAGS) $(SMALL_CFLAGS)
%C%_liblifecycle_la_CPPFLAGS = $(INC_LIFECYCLE)
%C%_liblifecycle_la_SOURCES = %D%/component.c %D%/duration.c %D%/features.c %D%/fork.c %D%/held_work.c %D%/life.h %D%/lifecycle.c \
	%D%/log.c %D%/log.h %D%/log_line.c %D%/log_values.c %D%/loop.c %D%/loop.h %D%/notify.c %D%/notify.h \
	%D%/phase.c %D%/pid_file.c %D%/ready.c %D%/reload.c %D%/report.c %D%/sections.c %D%/signals.c %D%/stop.c %D%/timer.c
