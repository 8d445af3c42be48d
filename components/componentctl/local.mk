# componentctl/: the command that finds programs which serve profiles, and looks into them.
bin_PROGRAMS += %D%/componentctl
%C%_componentctl_SOURCES = %D%/annotate.c %D%/componentctl.c %D%/command.h %D%/container.c %D%/container.h %D%/enable.c %D%/list.c %D%/manifest.c %D%/manifest.h \
	%D%/records.c %D%/records.h %D%/save.c %D%/save.h %D%/sd.c \
	%D%/loadable.c %D%/loadable.h %D%/run.c %D%/stop.c
%C%_componentctl_CPPFLAGS = $(INC_COMPONENTS) -iquote $(srcdir)/flags -DLIBDIR='"$(libdir)"' $(YAML_CFLAGS) $(LOOKING_CPPFLAGS)
%C%_componentctl_LDADD = $(LOOKING_LIBS) flags/libflags.la libcomponent/base/libbase.la gnulib/libgnu.la $(YAML_LIBS)

# What looks into programs: the commands that need libcurl.  Of encode/ they take the message that protobuf-c makes.
LOOKING = %D%/folded.c %D%/graph.c %D%/graph.h %D%/legacy.c %D%/legacy.h %D%/legacy_map.c %D%/legacy_map.h %D%/listing.c %D%/match.c %D%/match.h %D%/merge.c %D%/merge.h %D%/read.c %D%/read.h %D%/shown.c %D%/shown.h \
	%D%/top.c %D%/top.h %D%/units.c %D%/units.h %D%/write.c %D%/write.h
INC_LOOKING = -iquote $(srcdir)/components/componentctl -iquote $(srcdir)/profiler/symbols -iquote $(srcdir)/profiler/encode \
	-iquote profiler/encode $(PROTOBUFC_CFLAGS) $(ZLIB_CFLAGS)
READING_LIBS = profiler/encode/libencode.la profiler/symbols/libsymbols.la $(ZLIB_LIBS) $(PROTOBUFC_LIBS) -lm
%C%_componentctl_SOURCES += %D%/profile.h
if HAVE_LIBCURL
%C%_componentctl_SOURCES += $(LOOKING) %D%/bar.c %D%/bar.h %D%/cgroup.c %D%/doctor.c %D%/doctor.h %D%/facts.c %D%/facts.h \
	%D%/findings.c %D%/findings.h %D%/names.c %D%/names.h %D%/package.c %D%/package.h %D%/notes.c %D%/notes.h %D%/family.c %D%/family.h %D%/fetch.c %D%/fetch.h %D%/live.c %D%/live.h %D%/live_threads.c %D%/live_threads.h \
	%D%/profile.c %D%/screen.c %D%/screen.h %D%/target.c %D%/target.h %D%/unserved.c %D%/unserved.h
LOOKING_CPPFLAGS = $(INC_LOOKING) -iquote $(srcdir)/profiler/outside $(LIBCURL_CFLAGS)
LOOKING_LIBS = profiler/outside/liboutside.la $(READING_LIBS) profiler/collect/libcollect.la profiler/unwind/libunwinders.la \
	profiler/model/libmodel.la $(LIBCURL_LIBS)
LOOKING_PAGES = %D%/componentctl-doctor.1 %D%/componentctl-dump.1 %D%/componentctl-memory.1 %D%/componentctl-profile.1 %D%/componentctl-top.1 \
	%D%/componentctl-trace.1
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
