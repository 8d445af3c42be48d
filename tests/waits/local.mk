# tests of the mutex and block profiles
WAITS_UNITS = %D%/test_abandoned %D%/test_blame %D%/test_guest %D%/test_waits
UNITS += $(WAITS_UNITS)
HOOKED_UNITS += $(WAITS_UNITS)
EXTRA_DIST += %D%/fixture.h
%D%/%.o: private AM_CPPFLAGS := $(INC_COLLECT) $(INC_UNITS)
%D%/%.o: private AM_CFLAGS += $(CALL_SITES)
$(WAITS_UNITS): $(COLLECT_LIBS)
$(WAITS_UNITS): private LDADD = $(HOOKS_ARCHIVE) $(COLLECT_LIBS) $(CMOCKA_LIBS)
