# tests of libcomponent/http
HTTP_UNITS = %D%/test_accept %D%/test_event_base %D%/test_listener %D%/test_posted_calls
UNITS += $(HTTP_UNITS)
WHOLE_TESTS += %D%/evhttp_why.t %D%/fuzz.t %D%/limits.t %D%/protocol.t
HTTP_LIBS = libcomponent/http/libhttp.la libcomponent/base/libbase.la
%D%/%.o: private AM_CPPFLAGS := $(INC_HTTP) $(EVENT_CFLAGS) $(INC_UNITS)
$(HTTP_UNITS): $(HTTP_LIBS)
$(HTTP_UNITS): private LDADD = $(HTTP_LIBS) $(CMOCKA_LIBS)
