# tests of the hooks; the scripts build programs and libraries of their own against ours
HOOKS_UNITS = %D%/test_thread_start
UNITS += $(HOOKS_UNITS)
HOOKED_UNITS += $(HOOKS_UNITS)
WHOLE_TESTS += %D%/allocators.t %D%/cost.t %D%/interposition.t
%D%/%.o: private AM_CPPFLAGS := $(INC_COLLECT) $(INC_UNITS)
%D%/%.o: private AM_CFLAGS += $(CALL_SITES)
$(HOOKS_UNITS): $(COLLECT_LIBS)
$(HOOKS_UNITS): private LDADD = $(HOOKS_ARCHIVE) $(COLLECT_LIBS) $(CMOCKA_LIBS)
