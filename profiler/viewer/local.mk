# viewer/: the page that people look at.  Its files are joined into one, which the daemon serves as it is and
# componentctl puts a profile into; nothing of it is in a library.
VIEWER_CSS = %D%/viewer.css %D%/flame.css
# In this order, for they are one function.
VIEWER_JS = %D%/number.js %D%/pattern.js %D%/decode.js %D%/profile.js %D%/tree.js %D%/color.js %D%/flame.js %D%/table.js \
	%D%/sandwich.js %D%/view.js %D%/page.js %D%/windows.js %D%/kinds.js %D%/threads.js %D%/memory.js %D%/start.js
VIEWER_PARTS = %D%/page.html $(VIEWER_CSS) $(VIEWER_JS)
EXTRA_DIST += %D%/join $(VIEWER_PARTS)

pkgdata_DATA = %D%/viewer.html.gz
CLEANFILES += %D%/viewer.html %D%/viewer.html.gz
%D%/viewer.html: %D%/join $(VIEWER_PARTS)
	$(AM_V_GEN)$(MKDIR_P) $(@D) && cd $(srcdir) && %D%/join $(VIEWER_PARTS) > '$(abs_builddir)/$@.new' && \
		mv '$(abs_builddir)/$@.new' '$(abs_builddir)/$@'
%D%/viewer.html.gz: %D%/viewer.html
	$(AM_V_GEN)gzip -9 -n -c $< > $@.new && mv $@.new $@
