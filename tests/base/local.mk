# tests of libcomponent/base
BASE_UNITS = %D%/test_address %D%/test_fork_slots %D%/test_pages %D%/test_listen %D%/test_nearest %D%/test_our_fd %D%/test_our_table %D%/test_our_thread \
	%D%/test_proc_status %D%/test_table %D%/test_text %D%/test_utc
UNITS += $(BASE_UNITS)
WHOLE_TESTS += %D%/fork_handlers.t
BASE_LIBS = libcomponent/base/libbase.la
%D%/%.o: private AM_CPPFLAGS := $(INC_BASE) $(INC_UNITS)
$(BASE_UNITS): $(BASE_LIBS)
$(BASE_UNITS): private LDADD = $(BASE_LIBS) $(CMOCKA_LIBS)
