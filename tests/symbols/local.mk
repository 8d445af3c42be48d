# tests of names and lines
SYMBOLS_UNITS = %D%/test_demangle %D%/test_dwarf %D%/test_hostile %D%/test_kept_answers %D%/test_symbols
UNITS += $(SYMBOLS_UNITS)
WHOLE_TESTS += %D%/lines.t %D%/names.t
# fuzz.c is built by scripts/fuzz, with clang.
EXTRA_DIST += %D%/demangle.names %D%/dwarf_feed.h %D%/fuzz.c
SYMBOLS_LIBS = profiler/symbols/libsymbols.la $(MODEL_LIBS)
%D%/%.o: private AM_CPPFLAGS := $(INC_SYMBOLS) $(INC_UNITS)
$(SYMBOLS_UNITS): $(SYMBOLS_LIBS)
$(SYMBOLS_UNITS): private LDADD = $(LZMA_LIBS) $(SYMBOLS_LIBS) $(ZLIB_LIBS) $(CMOCKA_LIBS)

%C%_test_kept_answers_CFLAGS = $(AM_CFLAGS) -g
%C%_test_kept_answers_LDFLAGS = $(AM_LDFLAGS) -Wl,--build-id
EXTRA_%C%_test_dwarf_DEPENDENCIES = tests/programs/libdwarf4.la tests/programs/libdwarf5.la tests/programs/libdwarfz.la
EXTRA_%C%_test_hostile_DEPENDENCIES = tests/programs/libvictim.la
