# examples/

# What "pkg-config --libs libcomponent" says, in the build tree.
EXAMPLES_LINK = $(AM_LDFLAGS) -Wl,-u,component_hooks
EXAMPLES_LIBS = profiler/hooks/libcomponent_hooks_nonshared.a components/libcomponent.la

# Installed as they are, to be copied; adopt/ goes into the sources of others.
nobase_dist_doc_DATA += %D%/adopt/dnsmasq %D%/adopt/lighttpd %D%/adopt/memcached %D%/hello.c %D%/own-loop.c %D%/options.c %D%/one-call.c %D%/hunts.c %D%/evhttp.c \
	%D%/backend-controller.c %D%/cluster-agent.c %D%/appstudio-controller.c $(%C%_libgitops_a_SOURCES)

# One program a door, each as short as it can be; built, not installed.
noinst_PROGRAMS += %D%/hello %D%/own-loop %D%/options %D%/one-call %D%/hunts
%C%_hello_SOURCES = %D%/hello.c
%C%_hello_CPPFLAGS = $(INC_EXAMPLES)
%C%_hello_LDFLAGS = $(EXAMPLES_LINK)
%C%_hello_LDADD = $(EXAMPLES_LIBS)
%C%_own_loop_SOURCES = %D%/own-loop.c
%C%_own_loop_CPPFLAGS = $(INC_EXAMPLES)
%C%_own_loop_LDFLAGS = $(EXAMPLES_LINK)
%C%_own_loop_LDADD = $(EXAMPLES_LIBS)
%C%_options_SOURCES = %D%/options.c
%C%_options_CPPFLAGS = $(INC_EXAMPLES)
%C%_options_LDFLAGS = $(EXAMPLES_LINK)
%C%_options_LDADD = $(EXAMPLES_LIBS)
%C%_one_call_SOURCES = %D%/one-call.c
%C%_one_call_CPPFLAGS = $(INC_EXAMPLES)
%C%_one_call_LDFLAGS = $(EXAMPLES_LINK)
%C%_one_call_LDADD = $(EXAMPLES_LIBS)
# What docs/hunts.md looks into.
%C%_hunts_SOURCES = %D%/hunts.c
%C%_hunts_CPPFLAGS = $(INC_EXAMPLES)
%C%_hunts_LDFLAGS = $(EXAMPLES_LINK)
%C%_hunts_LDADD = $(EXAMPLES_LIBS)
# A door that is libevent's.
noinst_PROGRAMS += %D%/evhttp
%C%_evhttp_SOURCES = %D%/evhttp.c
%C%_evhttp_CPPFLAGS = $(INC_EXAMPLES) $(EVENT_CFLAGS)
%C%_evhttp_LDFLAGS = $(EXAMPLES_LINK)
%C%_evhttp_LDADD = $(EXAMPLES_LIBS) $(EVENT_LIBS)

# The three controllers, written as an outsider would, and what they share.
noinst_LIBRARIES += %D%/libgitops.a
%C%_libgitops_a_SOURCES = %D%/gitops/gitops.h %D%/gitops/claims.c %D%/gitops/copies.c \
	%D%/gitops/check.c %D%/gitops/directories.c %D%/gitops/document.c %D%/gitops/files.c %D%/gitops/lock.c \
	%D%/gitops/root.c %D%/gitops/root.h %D%/gitops/sha256.c %D%/gitops/stop.c %D%/gitops/sync.c %D%/gitops/tree.c
%C%_libgitops_a_CPPFLAGS = $(INC_EXAMPLES)
bin_PROGRAMS += %D%/backend-controller %D%/cluster-agent %D%/appstudio-controller
%C%_backend_controller_SOURCES = %D%/backend-controller.c
%C%_backend_controller_CPPFLAGS = $(INC_EXAMPLES)
%C%_cluster_agent_SOURCES = %D%/cluster-agent.c
%C%_cluster_agent_CPPFLAGS = $(INC_EXAMPLES)
%C%_appstudio_controller_SOURCES = %D%/appstudio-controller.c
%C%_appstudio_controller_CPPFLAGS = $(INC_EXAMPLES)
%C%_backend_controller_LDFLAGS = $(EXAMPLES_LINK)
%C%_backend_controller_LDADD = %D%/libgitops.a $(EXAMPLES_LIBS)
%C%_cluster_agent_LDFLAGS = $(EXAMPLES_LINK)
%C%_cluster_agent_LDADD = %D%/libgitops.a $(EXAMPLES_LIBS)
%C%_appstudio_controller_LDFLAGS = $(EXAMPLES_LINK)
%C%_appstudio_controller_LDADD = %D%/libgitops.a $(EXAMPLES_LIBS)

# Man pages and completions come from the programs themselves, option by option.
if RUNS_PROGRAMS
nodist_man_MANS += %D%/backend-controller.1 %D%/cluster-agent.1 %D%/appstudio-controller.1
bashcompletion_DATA += %D%/completions/backend-controller %D%/completions/cluster-agent \
	%D%/completions/appstudio-controller
CLEANFILES += $(nodist_man_MANS) $(bashcompletion_DATA)
%D%/backend-controller.1: %D%/backend-controller$(EXEEXT)
	$(AM_V_GEN)./$< --generate-man > $@.new && mv $@.new $@
%D%/completions/backend-controller: %D%/backend-controller$(EXEEXT)
	$(AM_V_GEN)$(MKDIR_P) %D%/completions && ./$< --completion=bash > $@.new && mv $@.new $@
%D%/cluster-agent.1: %D%/cluster-agent$(EXEEXT)
	$(AM_V_GEN)./$< --generate-man > $@.new && mv $@.new $@
%D%/completions/cluster-agent: %D%/cluster-agent$(EXEEXT)
	$(AM_V_GEN)$(MKDIR_P) %D%/completions && ./$< --completion=bash > $@.new && mv $@.new $@
%D%/appstudio-controller.1: %D%/appstudio-controller$(EXEEXT)
	$(AM_V_GEN)./$< --generate-man > $@.new && mv $@.new $@
%D%/completions/appstudio-controller: %D%/appstudio-controller$(EXEEXT)
	$(AM_V_GEN)$(MKDIR_P) %D%/completions && ./$< --completion=bash > $@.new && mv $@.new $@
endif
