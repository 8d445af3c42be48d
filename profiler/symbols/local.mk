# symbols/: names for addresses.
noinst_LTLIBRARIES += %D%/libsymbols.la
%C%_libsymbols_la_SOURCES = %D%/symbols.c %D%/symbols.h %D%/symbols_mappings.c %D%/symbols_parts.h \
	%D%/debug_file.c %D%/debug_file.h %D%/dwarf.c %D%/dwarf.h \
	%D%/dwarf_abbrev.c %D%/dwarf_form.c %D%/dwarf_form.h %D%/dwarf_function.c %D%/dwarf_function.h \
	%D%/dwarf_line.c %D%/dwarf_line.h %D%/dwarf_names.h %D%/dwarf_ranges.c \
	%D%/dwarf_section.c %D%/dwarf_section.h %D%/dwarf_unit.c %D%/dwarf_unit.h \
	%D%/resolve.c %D%/resolve.h %D%/texts.c %D%/texts.h \
	%D%/debugdata.c %D%/debugdata.h %D%/demangle.c %D%/demangle.h %D%/demangle_cxx.c %D%/demangle_cxx.h \
	%D%/demangle_cxx_expression.c %D%/demangle_cxx_name.c %D%/demangle_cxx_print.c %D%/demangle_cxx_print.h \
	%D%/demangle_cxx_print_expression.c %D%/demangle_cxx_read.c %D%/demangle_cxx_type.c \
	%D%/demangle_operators.c %D%/demangle_operators.h %D%/demangle_out.c %D%/demangle_parts.h %D%/demangle_punycode.c \
	%D%/demangle_rust.c %D%/demangle_rust.h %D%/demangle_rust_legacy.c %D%/demangle_rust_read.c \
	%D%/gone.c %D%/gone.h %D%/idmap.c %D%/idmap.h %D%/image.c %D%/image.h \
	%D%/kept.c %D%/kept.h %D%/object.c %D%/object.h %D%/program_file.c %D%/program_file.h %D%/plt.c %D%/plt.h %D%/ranges.c %D%/ranges.h %D%/symtab.c %D%/symtab.h %D%/utf8.c %D%/utf8.h
%C%_libsymbols_la_CPPFLAGS = $(OWN_WAITS) $(INC_SYMBOLS) $(ZLIB_CFLAGS) $(LZMA_CFLAGS)
