# componentctl/: the command that finds programs which serve profiles, and looks into them.
bin_PROGRAMS += %D%/componentctl
%C%_componentctl_SOURCES = %D%/command.h %D%/componentctl.c %D%/profile.h \
	%D%/annotate/annotate.c %D%/annotate/container.c %D%/annotate/container.h %D%/annotate/manifest.c \
	%D%/annotate/manifest.h %D%/processes/enable.c %D%/processes/end_windows.c %D%/processes/end_windows.h %D%/processes/list.c %D%/processes/loadable.c \
	%D%/processes/loadable.h %D%/processes/records.c %D%/processes/records.h %D%/processes/run.c \
	%D%/processes/sd.c %D%/processes/stop.c %D%/processes/witness.c %D%/processes/witness.h %D%/files/save.c %D%/files/save.h
%C%_componentctl_CPPFLAGS = $(INC_COMPONENTS) -iquote $(srcdir)/flags -DLIBDIR='"$(libdir)"' $(INC_CTL) -DVIEWER_FILE='"$(pkgdatadir)/viewer.html.gz"' \
	$(YAML_CFLAGS) $(LOOKING_CPPFLAGS)
%C%_componentctl_LDADD = $(LOOKING_LIBS) flags/libflags.la libcomponent/base/libbase.la gnulib/libgnu.la $(YAML_LIBS)
INC_CTL = -iquote $(srcdir)/%D% -iquote $(srcdir)/%D%/annotate -iquote $(srcdir)/%D%/processes \
	-iquote $(srcdir)/%D%/files -iquote $(srcdir)/%D%/doctor -iquote $(srcdir)/%D%/live -iquote $(srcdir)/%D%/target

# What looks into programs: the commands that need libcurl.  Of encode/ they take the message that protobuf-c makes.
LOOKING = %D%/files/legacy/contention.c %D%/files/legacy/cpu.c %D%/files/legacy/draft.c %D%/files/legacy/draft.h \
	%D%/files/legacy/heap.c %D%/files/legacy/legacy.c %D%/files/legacy/legacy.h %D%/files/legacy/legacy_map.c \
	%D%/files/legacy/legacy_map.h %D%/files/merge.c %D%/files/merge.h %D%/files/read.c %D%/files/read.h %D%/files/write.c %D%/files/write.h \
	%D%/files/checkpoints.c %D%/files/checkpoints.h %D%/views/folded.c %D%/views/graph.c %D%/views/graph.h %D%/views/listing.c %D%/views/match.c \
	%D%/views/match.h %D%/views/picture_view.c %D%/views/shown.c %D%/views/shown.h %D%/views/top.c %D%/views/top.h \
	%D%/views/units.c %D%/views/units.h
INC_LOOKING = -iquote $(srcdir)/%D%/files -iquote $(srcdir)/%D%/files/legacy -iquote $(srcdir)/%D%/views -iquote $(srcdir)/profiler/symbols \
	-iquote $(srcdir)/profiler/encode -iquote profiler/encode $(PROTOBUFC_CFLAGS) $(ZLIB_CFLAGS)
READING_LIBS = profiler/encode/libencode.la profiler/symbols/libsymbols.la $(ZLIB_LIBS) $(PROTOBUFC_LIBS) -lm
if HAVE_LIBCURL
%C%_componentctl_SOURCES += $(LOOKING) %D%/profile.c %D%/files/page.c %D%/files/page.h \
	%D%/doctor/cgroup.c %D%/doctor/doctor.c %D%/doctor/doctor.h %D%/doctor/facts.c %D%/doctor/facts.h \
	%D%/doctor/findings.c %D%/doctor/findings.h %D%/doctor/names.c %D%/doctor/names.h %D%/doctor/notes.c \
	%D%/doctor/notes.h %D%/doctor/package.c %D%/doctor/package.h %D%/doctor/shell.c %D%/doctor/shell.h \
	%D%/live/live_table.c %D%/live/live_table.h \
	%D%/live/live_threads.c %D%/live/live_threads.h %D%/live/screen.c %D%/live/screen.h %D%/target/bar.c \
	%D%/target/bar.h %D%/target/family.c %D%/target/family.h %D%/target/fetch.c %D%/target/fetch.h \
	%D%/target/target.c %D%/target/target.h %D%/target/unserved.c %D%/target/unserved.h
LOOKING_CPPFLAGS = $(INC_LOOKING) -iquote $(srcdir)/profiler/outside $(LIBCURL_CFLAGS)
LOOKING_LIBS = profiler/outside/liboutside.la $(READING_LIBS) profiler/collect/libcollect.la profiler/unwind/libunwinders.la \
	profiler/model/libmodel.la $(LIBCURL_LIBS)
LOOKING_PAGES = %D%/componentctl-doctor.1 %D%/componentctl-dump.1 %D%/componentctl-memory.1 %D%/componentctl-profile.1 \
	%D%/componentctl-top.1 %D%/componentctl-trace.1
endif

# Their pages come from the commands themselves, option by option.
if RUNS_PROGRAMS
%C%_PAGES = %D%/componentctl-annotate.1 %D%/componentctl-disable.1 %D%/componentctl-enable.1 %D%/componentctl-list.1 \
	%D%/componentctl-run.1 %D%/componentctl-sd.1 %D%/componentctl-stop.1 $(LOOKING_PAGES)
nodist_man_MANS += %D%/componentctl.1 $(%C%_PAGES)
bashcompletion_DATA += %D%/completions/componentctl
CLEANFILES += %D%/componentctl.1 $(%C%_PAGES) %D%/completions/componentctl
%D%/completions/componentctl: %D%/componentctl$(EXEEXT)
	$(AM_V_GEN)$(MKDIR_P) %D%/completions && ./$< --completion=bash > $@.new && mv $@.new $@
%D%/componentctl.1: %D%/componentctl$(EXEEXT)
	$(AM_V_GEN)./$< --generate-man > $@.new && mv $@.new $@
$(%C%_PAGES): %D%/componentctl$(EXEEXT)
	$(AM_V_GEN)./$< $$(basename $@ .1 | sed 's/componentctl-//') --generate-man > $@.new && mv $@.new $@
endif
