# docs/: what README.md points to, installed as it is; and the manual pages, made of that and of the headers.
nobase_dist_doc_DATA += %D%/controllers.md %D%/deadlock.md %D%/memory.md %D%/profiling.md %D%/operating.md %D%/flags.md %D%/api.md \
	%D%/componentctl.md %D%/hunts.md %D%/coming-from.md %D%/faq.md %D%/getting-started.md %D%/metrics.md %D%/packages.md %D%/porting.md %D%/programs.md %D%/security.md %D%/versions.md %D%/viewer.md \
	%D%/pictures/difference.png %D%/pictures/flame.png %D%/pictures/hot.png %D%/pictures/leak.png %D%/pictures/memory.png %D%/pictures/phone.png %D%/pictures/threads.png

# Which pages there are is only known once they are made: their names are in the last file made.
MANUALS = %D%/manuals/pages/names
MANUAL_TOOLS = $(srcdir)/%D%/manuals/roff.awk $(srcdir)/%D%/manuals/functions.awk $(srcdir)/%D%/manuals/overview.awk
MANUAL_FRAME = $(srcdir)/%D%/manuals/libcomponent.7.in
MANUAL_INPUT = $(addprefix $(srcdir)/,$(filter %.h,$(componentinclude_HEADERS)))
MANUAL_DOCUMENTS = $(addprefix $(srcdir)/,$(shell sed -n 's/^@[a-z]* \([^ ]*\).*/\1/p' $(MANUAL_FRAME)))
EXTRA_DIST += %D%/manuals/roff.awk %D%/manuals/functions.awk %D%/manuals/overview.awk %D%/manuals/libcomponent.7.in
MANUAL_AWK = $(AWK) -v version='$(VERSION)' -f $(srcdir)/%D%/manuals/roff.awk
$(MANUALS): $(MANUAL_TOOLS) $(MANUAL_FRAME) $(MANUAL_INPUT) $(MANUAL_DOCUMENTS) Makefile
	$(AM_V_GEN)new=%D%/manuals/new; rm -rf $$new && $(MKDIR_P) $$new && \
	$(MANUAL_AWK) -f $(srcdir)/%D%/manuals/functions.awk -v folder=$$new $(MANUAL_INPUT) && \
	$(MANUAL_AWK) -f $(srcdir)/%D%/manuals/overview.awk -v top='$(srcdir)' -v docdir='$(docdir)' \
		$(MANUAL_FRAME) $$new/component_*.h.3 >$$new/libcomponent.7 && \
	rm -rf %D%/manuals/pages && mv $$new %D%/manuals/pages

all-local: $(MANUALS)
install-data-local: $(MANUALS)
	$(MKDIR_P) '$(DESTDIR)$(mandir)/man3' '$(DESTDIR)$(mandir)/man7'
	cd %D%/manuals/pages && $(INSTALL_DATA) `cat names` '$(DESTDIR)$(mandir)/man3' && \
		$(INSTALL_DATA) libcomponent.7 '$(DESTDIR)$(mandir)/man7'
uninstall-local:
	test ! -f $(MANUALS) || { cd '$(DESTDIR)$(mandir)' && rm -f man7/libcomponent.7 `sed 's,^,man3/,' '$(abs_builddir)/$(MANUALS)'`; }
clean-local:
	rm -rf %D%/manuals/pages %D%/manuals/new
