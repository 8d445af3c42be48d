# componentctl/: the command that finds programs which serve profiles, and looks into them.
bin_PROGRAMS += %D%/componentctl
%C%_componentctl_SOURCES = %D%/componentctl.c %D%/command.h %D%/list.c \
	%D%/loadable.c %D%/loadable.h %D%/run.c %D%/stop.c
%C%_componentctl_CPPFLAGS = $(INC_COMPONENTS) -iquote $(srcdir)/flags -DLIBDIR='"$(libdir)"'
%C%_componentctl_LDADD = flags/libflags.la libcomponent/base/libbase.la gnulib/libgnu.la $(YAML_LIBS)

# Their pages come from the commands themselves, option by option.
if RUNS_PROGRAMS
%C%_PAGES = %D%/componentctl-run.1 %D%/componentctl-list.1 %D%/componentctl-stop.1
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
