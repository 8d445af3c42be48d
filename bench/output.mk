# Rows of what comes out: encoding, symbols, the stack table, a scrape.
BENCH_ROWS += bench/rows_serve.py
EXTRA_PROGRAMS += bench/stack_table bench/scrape
BENCH_TARGETS += bench/stack_table bench/scrape
bench_stack_table_SOURCES = bench/stack_table.c
bench_stack_table_CPPFLAGS = $(INC_UNWIND) -iquote $(top_srcdir)/bench
bench_stack_table_LDADD = $(BENCH_STACKS)
bench_scrape_SOURCES = bench/scrape.c
bench_scrape_CPPFLAGS = -D_GNU_SOURCE $(INC_EXAMPLES)
bench_scrape_CFLAGS = $(AM_CFLAGS) -fno-builtin -fno-optimize-sibling-calls
bench_scrape_LDFLAGS = $(bench_heap_linked_LDFLAGS)
bench_scrape_LDADD = $(bench_heap_linked_LDADD)

# Encoding and symbols.
BENCH_ROWS += bench/rows_encode.py
EXTRA_DIST += bench/encode_go/main.go bench/symbols
EXTRA_PROGRAMS += bench/encode bench/names
BENCH_TARGETS += bench/encode bench/names tests/programs/lines_of_addresses
bench_encode_SOURCES = bench/encode.c
bench_encode_CPPFLAGS = $(INC_ENCODE)
bench_encode_LDADD = profiler/encode/libencode.la profiler/symbols/libsymbols.la $(BENCH_STACKS) \
	$(PROTOBUFC_LIBS) $(ZLIB_LIBS)
bench_names_SOURCES = bench/names.c
bench_names_CPPFLAGS = $(INC_SYMBOLS)
bench_names_LDADD = profiler/symbols/libsymbols.la $(BENCH_STACKS) $(ZLIB_LIBS)

# The page that people look at.
BENCH_ROWS += bench/rows_viewer.py
EXTRA_DIST += bench/viewer bench/viewer_open

# Counting.
BENCH_ROWS += bench/rows_metrics.py
EXTRA_PROGRAMS += bench/metric
BENCH_TARGETS += bench/metric
bench_metric_SOURCES = bench/metric.c
bench_metric_CPPFLAGS = -D_GNU_SOURCE $(INC_EXAMPLES) -iquote $(top_srcdir)/bench
bench_metric_CFLAGS = $(BENCH_CFLAGS)
bench_metric_LDADD = components/libcomponent.la
