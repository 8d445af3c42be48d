# tests/: a folder for each room under test, with a local.mk of one shape:
#
#	ROOM_UNITS = %D%/test_one %D%/test_two		cmocka programs that speak TAP: test_one.c
#	UNITS += $(ROOM_UNITS)
#	WHOLE_TESTS += %D%/three.t			whole programs, looked at from outside
#	%D%/%.o: private AM_CPPFLAGS := $(INC_ROOM) $(INC_UNITS)
#	$(ROOM_UNITS): $(ROOM_LIBS)
#	$(ROOM_UNITS): private LDADD = $(ROOM_LIBS) $(CMOCKA_LIBS)
#
# so that a new test is one name in a list.  HOOKED_UNITS have the hooks linked in as
# well.  What is more than that is said after the list, in automake's own variables.
# lib/ has what all share; programs/ what the scripts run; whole/ tests that are no one
# room's; project/ what holds the documents, the build and the packages to their word.
TEST_EXTENSIONS = .t
LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
# A test that hangs is an error after half an hour, or TEST_TIMEOUT seconds; the others go on.
TEST_LIMIT = timeout --foreground -k 60 $${TEST_TIMEOUT:-1800}
# TESTS_RUNNER is empty, but in a cross build.
LOG_COMPILER = $(SHELL) $(top_srcdir)/tests/lib/tap-skips $(TEST_LIMIT) $(TESTS_RUNNER)
T_LOG_COMPILER = $(TEST_LIMIT)
T_LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
AM_TESTS_ENVIRONMENT = \
	CMOCKA_MESSAGE_OUTPUT=TAP; export CMOCKA_MESSAGE_OUTPUT; \
	top_srcdir='$(abs_top_srcdir)'; export top_srcdir; \
	top_builddir='$(abs_top_builddir)'; export top_builddir; \
	cross_compiling='@cross_compiling@'; export cross_compiling; TESTS_RUNNER='$(TESTS_RUNNER)'; export TESTS_RUNNER; \
	CC='$(CC)'; export CC; CXX='$(CXX)'; export CXX;

# The longest first, so that none of them is alone at the end.
LONG_TESTS = %D%/project/packages.t %D%/project/container.t %D%/project/dist.t %D%/project/taking.t %D%/whole/stress.t %D%/project/commands.t
UNITS =
HOOKED_UNITS =
WHOLE_TESTS =
INC_UNITS = -iquote $(top_srcdir)/tests/lib $(CMOCKA_CFLAGS)
# So that a call site has a frame of its own, and its function's name.
CALL_SITES = -fno-optimize-sibling-calls -fno-builtin -U_FORTIFY_SOURCE
HOOKS_ARCHIVE = profiler/hooks/libcomponent_hooks_nonshared.a

include tests/lib/local.mk
include tests/programs/local.mk
include tests/base/local.mk
include tests/http/local.mk
include tests/metrics/local.mk
include tests/flags/local.mk
include tests/lifecycle/local.mk
include tests/controllers/local.mk
include tests/model/local.mk
include tests/unwind/local.mk
include tests/symbols/local.mk
include tests/encode/local.mk
include tests/hooks/local.mk
include tests/collect/local.mk
include tests/cpu/local.mk
include tests/wall/local.mk
include tests/heap/local.mk
include tests/componentctl/local.mk
include tests/memory/local.mk
include tests/waits/local.mk
include tests/threads/local.mk
include tests/trace/local.mk
include tests/custom/local.mk
include tests/labels/local.mk
include tests/serve/local.mk
include tests/viewer/local.mk
include tests/components/local.mk
include tests/examples/local.mk
include tests/whole/local.mk
include tests/project/local.mk

TESTS += $(LONG_TESTS) $(WHOLE_TESTS)
dist_check_SCRIPTS += $(LONG_TESTS) $(WHOLE_TESTS)
if HAVE_CMOCKA
TESTS += $(UNITS)
check_PROGRAMS += $(UNITS)
endif
$(HOOKED_UNITS): $(HOOKS_ARCHIVE)
$(HOOKED_UNITS): private AM_LDFLAGS += -Wl,-u,component_hooks

# The C programs among the tests, for a run under sanitizers.
print-c-tests:
	@echo $(filter-out %.t,$(TESTS))
# Those that qemu-user runs faithfully: unwinding, symbols, writing.  It places no
# object where another was.
print-emulated-tests:
	@echo $(filter-out %/test_generations %/test_demangle %/test_kept_answers,$(MODEL_UNITS) $(UNWIND_UNITS) \
		$(SYMBOLS_UNITS) $(ENCODE_UNITS))
.PHONY: print-c-tests print-emulated-tests
