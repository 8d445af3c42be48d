# components/: the ready-made parts, component_main(), and the library itself.
lib_LTLIBRARIES += %D%/libcomponent.la
componentinclude_HEADERS += %D%/include/component/ports.h %D%/include/component/ports.def
%C%_libcomponent_la_SOURCES = %D%/component_main.c  \
	%D%/enable_file.c %D%/enable_file.h %D%/front.c %D%/front.h %D%/health.c %D%/health.h %D%/health_answer.c \
	%D%/ports.c %D%/profiling.c %D%/profiling.h %D%/profiling_extract.c \
	%D%/profiling_rows.c %D%/profiling_rows.h %D%/status_pages.c %D%/status_pages.h %D%/scrape.c %D%/scrape.h %D%/scrape_process.c %D%/scrape_profiler.c
%C%_libcomponent_la_CPPFLAGS = $(OUR_WAITS) $(INC_COMPONENTS)
%C%_libcomponent_la_LIBADD = libcomponent/controllers/libcontrollers.la libcomponent/lifecycle/liblifecycle.la \
	profiler/serve/libserve.la \
	profiler/collect/libcollect.la profiler/encode/libencode.la profiler/symbols/libsymbols.la \
	profiler/unwind/libunwinders.la profiler/model/libmodel.la flags/libflags.la libcomponent/http/libhttp.la libcomponent/metrics/libmetrics.la libcomponent/base/libbase.la gnulib/libgnu.la \
	$(EVENT_LIBS) $(ZLIB_LIBS) $(PROTOBUFC_LIBS) $(YAML_LIBS)
# -z now: a hook inside malloc must not enter the loader to bind a symbol;
# -z nodelete: hooks in the program, and handlers, call into it as long as it lives.
# ABI: any code change r+1; a symbol added, removed or changed c+1, r=0; added also
# a+1; removed or changed a=0.  Changed at releases only.
%C%_libcomponent_la_LDFLAGS = $(AM_LDFLAGS) -Wl,-z,now -Wl,--gc-sections -no-undefined -version-info 0:0:0 \
	-Wl,-z,nodelete -Wl,--version-script=$(srcdir)/%D%/libcomponent.map
EXTRA_%C%_libcomponent_la_DEPENDENCIES = %D%/libcomponent.map
EXTRA_DIST += %D%/libcomponent.map
pkgconfig_DATA += %D%/libcomponent.pc %D%/libcomponent-core.pc

# The agent.  By hand and not by libtool, which would not link the hooks object or foreign
# archives into a shared library.  Its core, which it loads from beside itself, is the profiler alone.
if AGENT
PRELOAD = %D%/preload/libcomponent-preload.so
PRELOAD_CORE = %D%/preload/libcomponent-preload-core.so
hooks_DATA += $(PRELOAD) $(PRELOAD_CORE)
AGENT_LINK = $(AM_V_CC)$(MKDIR_P) %D%/preload && \
	$(CC) -D_GNU_SOURCE $(INC_COMPONENTS) $(CPPFLAGS) $(AM_CFLAGS) $(CFLAGS) -fPIC -shared \
		-Wl,-soname,$(@F) -Wl,-z,now -Wl,-z,defs $(LDFLAGS) -o $@
AGENT_ROOMS = profiler/serve/libserve.la profiler/collect/libcollect.la profiler/encode/libencode.la \
	profiler/symbols/libsymbols.la profiler/unwind/libunwinders.la profiler/model/libmodel.la \
	libcomponent/http/libhttp.la libcomponent/base/libbase.la gnulib/libgnu.la

$(PRELOAD): %D%/preload/preload.c %D%/preload/one_thread.c %D%/preload/one_thread.h %D%/preload/at_exit.h %D%/preload/rest.h %D%/preload/follow_forks.h %D%/preload/under_run.h profiler/hooks/object/component_hooks_shared.o $(PRELOAD_CORE)
	$(AGENT_LINK) $(INC_HOOKS) -DCORE_LINKED=\"$$(sed -n "s/^dlname='\(.*\)'/\1/p" %D%/libcomponent.la)\" \
		$(srcdir)/%D%/preload/preload.c $(srcdir)/%D%/preload/one_thread.c profiler/hooks/object/component_hooks_shared.o \
		$(PRELOAD_VERSIONS) -ldl -pthread
$(PRELOAD_CORE): $(srcdir)/%D%/local.mk %D%/preload/apart.c %D%/preload/apart.h %D%/preload/at_exit.c %D%/preload/at_exit.h %D%/preload/core.c %D%/preload/follow_forks.c %D%/preload/follow_forks.h %D%/preload/rest.c %D%/preload/rest.h %D%/preload/safe_point.c %D%/preload/safe_point.h %D%/preload/under_run.h %D%/preload/core.map $(AGENT_ROOMS) $(AGENT_ARCHIVES) %D%/libcomponent.la
	$(AGENT_LINK) $(INC_SERVE) $(srcdir)/%D%/preload/apart.c $(srcdir)/%D%/preload/at_exit.c $(srcdir)/%D%/preload/core.c $(srcdir)/%D%/preload/follow_forks.c $(srcdir)/%D%/preload/rest.c $(srcdir)/%D%/preload/safe_point.c -Wl,-z,nodelete -Wl,-z,text -Wl,--gc-sections -Wl,-Bsymbolic \
		-Wl,--wrap=stderr -Wl,--wrap=epoll_create1 -Wl,--wrap=pipe2 -Wl,--version-script=$(srcdir)/%D%/preload/core.map \
		-Wl,--whole-archive $$(echo $(AGENT_ROOMS) | sed 's,\([a-z]*\)\.la,.libs/\1.a,g') -Wl,--no-whole-archive \
		-Wl,-u,evhttp_uri_get_path -Wl,--start-group $(AGENT_ARCHIVES) -Wl,--end-group $(LIBS) -ldl -pthread
CLEANFILES += $(PRELOAD) $(PRELOAD_CORE)
# Where there are functions of two versions among the hooks.
PRELOAD_MAP = $(srcdir)/profiler/unwind/arch/$(ARCH_DIR)/preload.map
PRELOAD_VERSIONS = $$(test ! -f $(PRELOAD_MAP) || echo -Wl,--version-script=$(PRELOAD_MAP))
endif
EXTRA_DIST += %D%/preload/apart.c %D%/preload/apart.h %D%/preload/at_exit.c %D%/preload/at_exit.h %D%/preload/core.c %D%/preload/core.map %D%/preload/follow_forks.c %D%/preload/follow_forks.h %D%/preload/one_thread.c %D%/preload/one_thread.h \
	%D%/preload/preload.c %D%/preload/rest.c %D%/preload/rest.h %D%/preload/safe_point.c %D%/preload/safe_point.h %D%/preload/under_run.h
