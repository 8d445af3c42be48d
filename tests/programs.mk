# tests of programs

# The controller kit.
CONTROLLER_TEST_CPPFLAGS = $(INC_CONTROLLERS) $(CMOCKA_CFLAGS)
CONTROLLER_TEST_LDADD = libcomponent/controllers/libcontrollers.la libcomponent/lifecycle/liblifecycle.la flags/libflags.la libcomponent/base/libbase.la \
	gnulib/libgnu.la $(YAML_LIBS) $(CMOCKA_LIBS)
if HAVE_CMOCKA
check_PROGRAMS += %D%/test_queue %D%/test_source
TESTS += %D%/test_queue %D%/test_source
%C%_test_queue_SOURCES = %D%/test_queue.c
%C%_test_queue_CPPFLAGS = $(CONTROLLER_TEST_CPPFLAGS)
%C%_test_queue_LDADD = $(CONTROLLER_TEST_LDADD)
%C%_test_source_SOURCES = %D%/test_source.c
%C%_test_source_CPPFLAGS = $(CONTROLLER_TEST_CPPFLAGS)
%C%_test_source_LDADD = $(CONTROLLER_TEST_LDADD)
check_PROGRAMS += %D%/test_controller
TESTS += %D%/test_controller
%C%_test_controller_SOURCES = %D%/test_controller.c
%C%_test_controller_CPPFLAGS = $(CONTROLLER_TEST_CPPFLAGS)
%C%_test_controller_LDADD = $(CONTROLLER_TEST_LDADD)
check_PROGRAMS += %D%/test_gitops
TESTS += %D%/test_gitops
%C%_test_gitops_SOURCES = %D%/test_gitops.c %D%/gitops_fixture.h
%C%_test_gitops_CPPFLAGS = -I$(top_builddir) $(INC_EXAMPLES) -iquote $(top_srcdir)/examples $(CMOCKA_CFLAGS)
%C%_test_gitops_LDADD = examples/libgitops.a libcomponent/base/libbase.la $(CMOCKA_LIBS)
check_PROGRAMS += %D%/test_gitops_lock
TESTS += %D%/test_gitops_lock
%C%_test_gitops_lock_SOURCES = %D%/test_gitops_lock.c %D%/gitops_fixture.h
%C%_test_gitops_lock_CPPFLAGS = -I$(top_builddir) $(INC_EXAMPLES) -iquote $(top_srcdir)/examples $(CMOCKA_CFLAGS)
%C%_test_gitops_lock_LDADD = examples/libgitops.a libcomponent/base/libbase.la $(CMOCKA_LIBS)
check_PROGRAMS += %D%/test_gitops_stop
TESTS += %D%/test_gitops_stop
%C%_test_gitops_stop_SOURCES = %D%/test_gitops_stop.c %D%/gitops_fixture.h
%C%_test_gitops_stop_CPPFLAGS = -I$(top_builddir) $(INC_EXAMPLES) -iquote $(top_srcdir)/examples $(CMOCKA_CFLAGS)
%C%_test_gitops_stop_LDADD = examples/libgitops.a libcomponent/base/libbase.la $(CMOCKA_LIBS)
endif

# The three controllers, from outside.
TESTS += %D%/controllers.t
dist_check_SCRIPTS += %D%/controllers.t
EXTRA_DIST += scripts/demo-input
# A continuous profiler looks at all three.
TESTS += %D%/scrape.t
dist_check_SCRIPTS += %D%/scrape.t
# What is installed, and what the tarball holds: slow, since they build.
TESTS += tests/install.t tests/exports.t
dist_check_SCRIPTS += tests/install.t tests/exports.t tests/dist.t
# Needs a cross compiler.
TESTS += %D%/other_arch.t
dist_check_SCRIPTS += %D%/other_arch.t
TESTS += %D%/deploy.t
dist_check_SCRIPTS += %D%/deploy.t
EXTRA_DIST += deploy/kubernetes/appstudio-controller.yaml deploy/kubernetes/backend-controller.yaml \
	deploy/kubernetes/backend-controller-env.yaml deploy/kubernetes/cluster-agent.yaml deploy/kubernetes/volume.yaml \
	deploy/systemd/appstudio-controller.service deploy/systemd/backend-controller.service \
	deploy/systemd/cluster-agent.service deploy/systemd/profiling.conf
# What the documents say, run and compared.
check_PROGRAMS += %D%/blocked
%C%_blocked_SOURCES = %D%/blocked.c
%C%_blocked_CPPFLAGS = $(INC_EXAMPLES)
%C%_blocked_LDADD = components/libcomponent.la
TESTS += %D%/adding.t %D%/count.t %D%/docs.t
dist_check_SCRIPTS += %D%/commands.t %D%/adding.t %D%/count.t %D%/docs.t
EXTRA_DIST += %D%/documents.py
