# bench/: "make bench" measures us beside the peers; README.md here says how.
# Nothing of it is built by "make all" or installed.  A program that cannot be built
# here (its peer's headers are missing) is a skipped row.
EXTRA_DIST += %D%/results.json %D%/results.about %D%/README.md %D%/run %D%/method.py %D%/report.py
BENCH_TARGETS =
BENCH_ROWS =
EXTRA_PROGRAMS =
EXTRA_DIST += $(BENCH_ROWS)
# What is measured is a daemon's build, whatever the tests' one is.
BENCH_CFLAGS = $(AM_CFLAGS) -O2 -fno-optimize-sibling-calls

bench: all
	@for p in $(BENCH_TARGETS); do $(MAKE) -s $(AM_MAKEFLAGS) "$$p" || echo "bench: $$p cannot be built here"; done
	@CC='$(CC)' python3 $(top_srcdir)/bench/run --build . $(BENCH)
# All of them or an error: for the tests.
bench-programs: $(BENCH_TARGETS)
.PHONY: bench bench-programs
CLEANFILES += $(EXTRA_PROGRAMS)
include bench/engine.mk
include bench/output.mk
