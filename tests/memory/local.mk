# tests of the table of resident memory
MEMORY_UNITS = %D%/test_live %D%/test_ranges %D%/test_resident
UNITS += $(MEMORY_UNITS)
WHOLE_TESTS += %D%/memory.t %D%/mmap.t %D%/real_programs.t
%D%/%.o: private AM_CPPFLAGS := $(INC_COLLECT) $(INC_UNITS)
$(MEMORY_UNITS): $(COLLECT_LIBS)
$(MEMORY_UNITS): private LDADD = $(COLLECT_LIBS) $(CMOCKA_LIBS)
