# tests of symbols
SYMBOLS_LIBS = profiler/symbols/libsymbols.la profiler/unwind/libunwinders.la profiler/model/libmodel.la libcomponent/base/libbase.la \
	$(ZLIB_LIBS)
check_PROGRAMS += tests/symbols_sample
tests_symbols_sample_SOURCES = tests/symbols_sample.c
tests_symbols_sample_CPPFLAGS = $(INC_SYMBOLS)
tests_symbols_sample_LDADD = $(SYMBOLS_LIBS) -ldl
TESTS += tests/symbols.t tests/lines.t
dist_check_SCRIPTS += tests/symbols.t tests/lines.t

if HAVE_CMOCKA
check_PROGRAMS += tests/test_demangle tests/test_kept
TESTS += tests/test_demangle tests/test_kept
tests_test_demangle_SOURCES = tests/test_demangle.c
tests_test_demangle_CPPFLAGS = $(INC_SYMBOLS) $(CMOCKA_CFLAGS)
tests_test_demangle_LDADD = $(SYMBOLS_LIBS) $(CMOCKA_LIBS)
tests_test_kept_SOURCES = tests/test_kept.c
tests_test_kept_CPPFLAGS = $(INC_SYMBOLS) $(CMOCKA_CFLAGS)
tests_test_kept_CFLAGS = $(AM_CFLAGS) -g
tests_test_kept_LDFLAGS = $(AM_LDFLAGS) -Wl,--build-id
tests_test_kept_LDADD = $(SYMBOLS_LIBS) $(CMOCKA_LIBS)
endif

check_PROGRAMS += tests/lines_sample
# Built by scripts/fuzz, with clang.
EXTRA_DIST += tests/fuzz_symbols.c tests/dwarf_feed.h
EXTRA_DIST += tests/demangle.names
tests_lines_sample_SOURCES = tests/lines_sample.c
tests_lines_sample_CPPFLAGS = $(INC_SYMBOLS)
tests_lines_sample_LDADD = $(SYMBOLS_LIBS)

# What the hostile files are made of; -rpath makes libtool build a shared object.
check_LTLIBRARIES += tests/libvictim.la
tests_libvictim_la_SOURCES = tests/symbols_victim.c
tests_libvictim_la_LDFLAGS = -module -avoid-version -shared -rpath /nowhere -Wl,--build-id

# The same for debug information, in three forms.
DWARF_VICTIM_LDFLAGS = -module -avoid-version -shared -rpath /nowhere -Wl,--build-id
check_LTLIBRARIES += tests/libdwarf4.la tests/libdwarf5.la tests/libdwarfz.la
tests_libdwarf4_la_SOURCES = tests/dwarf_victim.c
tests_libdwarf4_la_CFLAGS = $(AM_CFLAGS) -O2 -gdwarf-4
tests_libdwarf4_la_LDFLAGS = $(DWARF_VICTIM_LDFLAGS)
tests_libdwarf5_la_SOURCES = tests/dwarf_victim.c
tests_libdwarf5_la_CFLAGS = $(AM_CFLAGS) -O2 -gdwarf-5
tests_libdwarf5_la_LDFLAGS = $(DWARF_VICTIM_LDFLAGS)
tests_libdwarfz_la_SOURCES = tests/dwarf_victim.c
tests_libdwarfz_la_CFLAGS = $(AM_CFLAGS) -O2 -gdwarf-5
tests_libdwarfz_la_LDFLAGS = $(DWARF_VICTIM_LDFLAGS) -Wl,--compress-debug-sections=zlib

if HAVE_CMOCKA
SYMBOLS_TESTS = tests/test_symbols tests/test_symbols_hostile tests/test_symbols_dwarf
check_PROGRAMS += $(SYMBOLS_TESTS)
TESTS += $(SYMBOLS_TESTS)
tests_test_symbols_SOURCES = tests/test_symbols.c
tests_test_symbols_CPPFLAGS = $(INC_SYMBOLS) $(CMOCKA_CFLAGS)
tests_test_symbols_LDADD = $(SYMBOLS_LIBS) $(CMOCKA_LIBS)
tests_test_symbols_hostile_SOURCES = tests/test_symbols_hostile.c
tests_test_symbols_hostile_CPPFLAGS = $(INC_SYMBOLS) $(CMOCKA_CFLAGS)
tests_test_symbols_hostile_LDADD = $(LZMA_LIBS) $(SYMBOLS_LIBS) $(CMOCKA_LIBS)
tests_test_symbols_dwarf_SOURCES = tests/test_symbols_dwarf.c tests/dwarf_feed.h
tests_test_symbols_dwarf_CPPFLAGS = $(INC_SYMBOLS) $(CMOCKA_CFLAGS)
tests_test_symbols_dwarf_LDADD = $(SYMBOLS_LIBS) $(CMOCKA_LIBS)
EXTRA_tests_test_symbols_dwarf_DEPENDENCIES = tests/libdwarf4.la tests/libdwarf5.la tests/libdwarfz.la
EXTRA_tests_test_symbols_hostile_DEPENDENCIES = tests/libvictim.la
endif
