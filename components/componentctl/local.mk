# componentctl/: the command that finds programs which serve profiles, and looks into them.
bin_PROGRAMS += %D%/componentctl
%C%_componentctl_SOURCES = %D%/componentctl.c %D%/command.h %D%/list.c \
	%D%/loadable.c %D%/loadable.h %D%/run.c %D%/stop.c
%C%_componentctl_CPPFLAGS = $(INC_COMPONENTS) -iquote $(srcdir)/flags -DLIBDIR='"$(libdir)"'
%C%_componentctl_LDADD = flags/libflags.la libcomponent/base/libbase.la gnulib/libgnu.la $(YAML_LIBS)
