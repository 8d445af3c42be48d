# symbols/: names for addresses.
noinst_LTLIBRARIES += %D%/libsymbols.la
%C%_libsymbols_la_SOURCES = %D%/cache.c %D%/cache.h %D%/data.c %D%/debug_file.c %D%/debug_file.h %D%/debugdata.c \
	%D%/debugdata.h %D%/image.c %D%/image.h %D%/mappings.c %D%/object.c %D%/object.h %D%/plt.c %D%/plt.h \
	%D%/program_file.c %D%/program_file.h %D%/ranges.c %D%/ranges.h %D%/resolve.c %D%/resolve.h %D%/sources.c %D%/sources.h %D%/strings.c \
	%D%/strings.h %D%/symbols.c %D%/symbols.h %D%/symbols_state.h %D%/symtab.c %D%/symtab.h %D%/unloaded.c \
	%D%/unloaded.h \
	%D%/demangle/cxx.c %D%/demangle/cxx.h %D%/demangle/cxx_expression.c %D%/demangle/cxx_name.c \
	%D%/demangle/cxx_print.c %D%/demangle/cxx_read.c %D%/demangle/cxx_type.c %D%/demangle/demangle.c \
	%D%/demangle/demangle.h %D%/demangle/operators.c %D%/demangle/operators.h %D%/demangle/out.c \
	%D%/demangle/punycode.c %D%/demangle/room.h %D%/demangle/rust.c %D%/demangle/rust_legacy.c \
	%D%/dwarf/abbrev.c %D%/dwarf/constants.h %D%/dwarf/dwarf.c %D%/dwarf/dwarf.h %D%/dwarf/form.c %D%/dwarf/form.h \
	%D%/dwarf/function.c %D%/dwarf/function.h %D%/dwarf/line.c %D%/dwarf/line.h %D%/dwarf/ranges.c %D%/dwarf/section.c \
	%D%/dwarf/section.h %D%/dwarf/unit.c %D%/dwarf/unit.h
%C%_libsymbols_la_CPPFLAGS = $(OUR_WAITS) $(INC_SYMBOLS) $(ZLIB_CFLAGS) $(LZMA_CFLAGS)
