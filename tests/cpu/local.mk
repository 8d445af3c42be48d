# tests of CPU profiles
CPU_UNITS = %D%/test_cpu %D%/test_guest %D%/test_limits %D%/test_ring %D%/test_signals
CPU_HOOKED = %D%/test_threads
UNITS += $(CPU_UNITS) $(CPU_HOOKED)
HOOKED_UNITS += $(CPU_HOOKED)
WHOLE_TESTS += %D%/windows.t
EXTRA_DIST += %D%/guest.h
%D%/%.o: private AM_CPPFLAGS := $(INC_COLLECT) $(INC_UNITS)
$(CPU_UNITS) $(CPU_HOOKED): $(COLLECT_LIBS)
$(CPU_UNITS): private LDADD = $(COLLECT_LIBS) $(CMOCKA_LIBS)
$(CPU_HOOKED): private LDADD = $(HOOKS_ARCHIVE) $(COLLECT_LIBS) $(CMOCKA_LIBS)

%C%_test_cpu_CFLAGS = $(AM_CFLAGS) -fno-optimize-sibling-calls
