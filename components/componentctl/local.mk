# componentctl/: the command that finds programs which serve profiles, and looks into them.
bin_PROGRAMS += %D%/componentctl
%C%_componentctl_SOURCES = %D%/componentctl.c %D%/command.h %D%/list.c %D%/stop.c
%C%_componentctl_CPPFLAGS = $(INC_COMPONENTS) -iquote $(srcdir)/flags
%C%_componentctl_LDADD = flags/libflags.la libcomponent/base/libbase.la gnulib/libgnu.la $(YAML_LIBS)
