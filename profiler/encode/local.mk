# encode/: from a profile to bytes.  The only place that knows protobuf-c and deflate.
noinst_LTLIBRARIES += %D%/libencode.la
%C%_libencode_la_SOURCES = %D%/comments.c %D%/comments.h %D%/dump_json.c %D%/encode.h %D%/folded.c %D%/format.c %D%/format.h %D%/frames.c %D%/frames.h %D%/gzip.c \
	%D%/gzip.h %D%/html.c %D%/html.h %D%/lines.c %D%/lines.h %D%/order.c %D%/order.h %D%/panic.c %D%/pattern.c %D%/pattern.h %D%/picture.c %D%/picture.h %D%/pprof.c %D%/pprof_sample.c %D%/profile_json.c \
	%D%/pprof_sample.h %D%/residence.c %D%/svg.c %D%/text.c %D%/text_counts.c %D%/text_stack.c %D%/text_stack.h %D%/top.c %D%/view.c %D%/view.h \
	%D%/wait_state.c %D%/wait_state.h %D%/trace/annotations.c %D%/trace/annotations.h %D%/trace/go.c \
	%D%/trace/go.h %D%/trace/go_v1.c %D%/trace/go_v2.c %D%/trace/initial_threads.c %D%/trace/initial_threads.h \
	%D%/trace/perfetto.c %D%/trace/perfetto_message.c %D%/trace/perfetto_message.h %D%/trace/scheduling.c \
	%D%/trace/scheduling.h %D%/trace/stacks.c %D%/trace/stacks.h %D%/trace/story.c %D%/trace/story.h \
	%D%/trace/streams.c %D%/trace/streams.h %D%/trace/writer.c %D%/trace/writer.h %D%/profile.pb-c.c \
	%D%/profile.pb-c.h
%C%_libencode_la_CFLAGS = $(AM_CFLAGS) $(SMALL_CFLAGS)
%C%_libencode_la_CPPFLAGS = $(OUR_WAITS) $(INC_ENCODE) $(PROTOBUFC_CFLAGS) $(ZLIB_CFLAGS)

# The generated files are distributed: only a git checkout needs protoc-c.  They are
# made in the build tree; a tarball's are found in its source tree through VPATH.
# The header is touched last, so that it never looks older than its other half.
EXTRA_DIST += %D%/profile.proto
BUILT_SOURCES += %D%/profile.pb-c.h
MAINTAINERCLEANFILES += %D%/profile.pb-c.c %D%/profile.pb-c.h
if HAVE_PROTOC_C
%D%/profile.pb-c.c: %D%/profile.proto
	$(AM_V_GEN)$(MKDIR_P) %D% && \
	$(PROTOC_C) -I$(srcdir)/%D% --c_out=%D% $(srcdir)/%D%/profile.proto && \
	touch %D%/profile.pb-c.h
%D%/profile.pb-c.h: %D%/profile.pb-c.c
	@test -f $@ || { rm -f %D%/profile.pb-c.c; $(MAKE) $(AM_MAKEFLAGS) %D%/profile.pb-c.c; }
endif
