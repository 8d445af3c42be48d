# tests of the three controllers
GITOPS_UNITS = %D%/test_gitops %D%/test_gitops_lock %D%/test_gitops_stop
UNITS += $(GITOPS_UNITS)
WHOLE_TESTS += %D%/continuous_scrape.t %D%/controllers.t %D%/leader.t
EXTRA_DIST += %D%/gitops_fixture.h scripts/demo-input
GITOPS_LIBS = examples/libgitops.a libcomponent/base/libbase.la
%D%/%.o: private AM_CPPFLAGS := -I$(top_builddir) $(INC_EXAMPLES) -iquote $(top_srcdir)/examples $(INC_UNITS)
$(GITOPS_UNITS): $(GITOPS_LIBS)
$(GITOPS_UNITS): private LDADD = $(GITOPS_LIBS) $(CMOCKA_LIBS)
