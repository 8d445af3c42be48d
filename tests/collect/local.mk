# tests of what collectors share
COLLECT_UNITS = %D%/test_stack_counts
UNITS += $(COLLECT_UNITS)
COLLECT_LIBS = profiler/collect/libcollect.la $(UNWIND_LIBS)
%D%/%.o: private AM_CPPFLAGS := $(INC_COLLECT) $(INC_UNITS)
$(COLLECT_UNITS): $(COLLECT_LIBS)
$(COLLECT_UNITS): private LDADD = $(COLLECT_LIBS) $(CMOCKA_LIBS)
