# tests of what is written
ENCODE_UNITS = %D%/test_gotrace %D%/test_pprof %D%/test_profile_json %D%/test_text %D%/test_view
UNITS += $(ENCODE_UNITS)
WHOLE_TESTS += %D%/gotrace.t %D%/pprof.t
EXTRA_DIST += %D%/fixture.h
ENCODE_LIBS = profiler/encode/libencode.la $(SYMBOLS_LIBS)
%D%/%.o: private AM_CPPFLAGS := $(INC_ENCODE) $(PROTOBUFC_CFLAGS) $(ZLIB_CFLAGS) $(INC_UNITS)
$(ENCODE_UNITS): $(ENCODE_LIBS)
$(ENCODE_UNITS): private LDADD = $(ENCODE_LIBS) $(PROTOBUFC_LIBS) $(ZLIB_LIBS) $(CMOCKA_LIBS)
