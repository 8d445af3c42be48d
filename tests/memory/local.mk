# tests of the table of resident memory
MEMORY_UNITS = %D%/test_live %D%/test_ranges %D%/test_resident
MEMORY_HOOKED = %D%/test_mmap
UNITS += $(MEMORY_UNITS) $(MEMORY_HOOKED)
HOOKED_UNITS += $(MEMORY_HOOKED)
WHOLE_TESTS += %D%/memory.t %D%/mmap.t %D%/real_programs.t
%D%/%.o: private AM_CPPFLAGS := $(INC_COLLECT) $(INC_UNITS)
%D%/%.o: private AM_CFLAGS += $(CALL_SITES)
$(MEMORY_UNITS) $(MEMORY_HOOKED): $(COLLECT_LIBS)
$(MEMORY_UNITS): private LDADD = $(COLLECT_LIBS) $(CMOCKA_LIBS)
$(MEMORY_HOOKED): private LDADD = $(HOOKS_ARCHIVE) $(COLLECT_LIBS) $(CMOCKA_LIBS)
