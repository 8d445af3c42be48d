# tests of the profiling server
SERVE_UNITS = %D%/test_auth %D%/test_cmdline %D%/test_options %D%/test_page %D%/test_params %D%/test_profile_write \
	%D%/test_siblings
UNITS += $(SERVE_UNITS)
WHOLE_TESTS += %D%/auth.t %D%/checkpoint.t %D%/delta.t %D%/evhttp.t %D%/fork.t %D%/profile_write.t %D%/rates.t %D%/replaced_library.t \
	%D%/start_stop.t %D%/view.t %D%/viewer.t
SERVE_LIBS = profiler/serve/libserve.la profiler/collect/libcollect.la profiler/encode/libencode.la \
	profiler/symbols/libsymbols.la profiler/unwind/libunwinders.la profiler/model/libmodel.la $(HTTP_LIBS)
%D%/%.o: private AM_CPPFLAGS := $(INC_SERVE) $(INC_UNITS)
$(SERVE_UNITS): $(SERVE_LIBS)
$(SERVE_UNITS): private LDADD = $(SERVE_LIBS) $(ZLIB_LIBS) $(PROTOBUFC_LIBS) $(CMOCKA_LIBS)

# As a program has it: the library.
%C%_test_page_LDADD = components/libcomponent.la -ldl $(CMOCKA_LIBS)
%C%_test_profile_write_LDADD = components/libcomponent.la -ldl $(CMOCKA_LIBS)
