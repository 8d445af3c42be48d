# tests of call stacks
UNWIND_UNITS = %D%/test_bad_registers %D%/test_functions %D%/test_generated_code %D%/test_remote %D%/test_step %D%/test_tables \
	%D%/test_trail %D%/test_trail_framed %D%/test_unwind %D%/test_verdict %D%/test_window
# Plugins want a shared build.
if HAVE_SHARED
UNWIND_UNITS += %D%/test_refresh
endif
UNITS += $(UNWIND_UNITS)
WHOLE_TESTS += %D%/cancelled_threads.t %D%/hidden_tables.t
# Of build-other/ alone: see there.
dist_check_SCRIPTS += %D%/unknown_processor.t
UNWIND_LIBS = profiler/unwind/libunwinders.la $(MODEL_LIBS)
%D%/%.o: private AM_CPPFLAGS := $(INC_UNWIND) $(INC_UNITS)
$(UNWIND_UNITS): $(UNWIND_LIBS)
$(UNWIND_UNITS): private LDADD = $(UNWIND_LIBS) $(CMOCKA_LIBS) $(ZLIB_LIBS) -ldl

%C%_test_unwind_CFLAGS = $(AM_CFLAGS) -fno-optimize-sibling-calls
%C%_test_generated_code_CFLAGS = $(AM_CFLAGS) -fno-omit-frame-pointer -fno-optimize-sibling-calls
%C%_test_trail_CFLAGS = $(AM_CFLAGS) -O2 -fno-optimize-sibling-calls -fomit-frame-pointer
%C%_test_trail_framed_SOURCES = %D%/test_trail.c
%C%_test_trail_framed_CFLAGS = $(AM_CFLAGS) -O2 -fno-optimize-sibling-calls -fno-omit-frame-pointer
%C%_test_step_CFLAGS = $(AM_CFLAGS) -O2 -fno-optimize-sibling-calls -fomit-frame-pointer
# Exceptions are libgcc's, which libunwind would take over if it came first.
%C%_test_tables_SOURCES = %D%/test_tables.c %D%/mix.h %D%/mix_throw.cc %D%/mix_tls.c
%C%_test_tables_CPPFLAGS = $(INC_UNWIND) $(INC_UNITS)
%C%_test_tables_LDADD = %D%/libmix_bare.la %D%/libmix_framed.la $(UNWIND_LIBS) $(CMOCKA_LIBS) $(ZLIB_LIBS) \
	-lgcc_s -lunwind -lm -ldl
if HAVE_CMOCKA
check_LTLIBRARIES += %D%/libmix_bare.la %D%/libmix_framed.la
endif
%C%_libmix_bare_la_SOURCES = %D%/mix_frames.c
%C%_libmix_bare_la_CPPFLAGS = $(INC_UNWIND) -DMIX=mix_bare
%C%_libmix_bare_la_CFLAGS = $(AM_CFLAGS) -O2 -fomit-frame-pointer
%C%_libmix_framed_la_SOURCES = %D%/mix_frames.c
%C%_libmix_framed_la_CPPFLAGS = $(INC_UNWIND) -DMIX=mix_framed
%C%_libmix_framed_la_CFLAGS = $(AM_CFLAGS) -O2 -fno-omit-frame-pointer
