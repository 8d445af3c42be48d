# tests/: a fragment for each folder under test; units are cmocka programs that
# speak TAP, whole programs are tested from outside by *.t scripts.
TEST_EXTENSIONS = .t
LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
# TESTS_RUNNER is empty, but in a cross build.
LOG_COMPILER = $(SHELL) $(top_srcdir)/tests/tap-skips $(TESTS_RUNNER)
T_LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
AM_TESTS_ENVIRONMENT = \
	CMOCKA_MESSAGE_OUTPUT=TAP; export CMOCKA_MESSAGE_OUTPUT; \
	top_srcdir='$(abs_top_srcdir)'; export top_srcdir; \
	top_builddir='$(abs_top_builddir)'; export top_builddir; \
	cross_compiling='@cross_compiling@'; export cross_compiling; \
	CC='$(CC)'; export CC; CXX='$(CXX)'; export CXX;
# The longest first, so that none of them is alone at the end.
TESTS += tests/dist.t tests/stress.t tests/commands.t
include tests/base.mk
include tests/flags.mk
include tests/life.mk
include tests/stacks.mk
include tests/symbols.mk
include tests/encode.mk
include tests/collect.mk
include tests/serve.mk
include tests/components.mk
include tests/programs.mk
include tests/bench.mk

# The C programs among the tests, for a run under sanitizers.
print-c-tests:
	@echo $(filter-out %.t,$(TESTS))
# Those that qemu-user runs faithfully: unwinding, symbols, writing.  It places no
# object where another was.
print-emulated-tests:
	@echo $(filter-out tests/test_generations,$(STACKS_TESTS) $(STACKS_SHARED_TESTS)) \
		$(SYMBOLS_TESTS) $(ENCODE_TESTS)
.PHONY: print-c-tests print-emulated-tests
EXTRA_DIST += %D%/harness.py %D%/skip.h %D%/tap-skips
