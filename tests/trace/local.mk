# tests of execution traces
TRACE_UNITS = %D%/test_ring_writers
TRACE_HOOKED = %D%/test_tracer
UNITS += $(TRACE_UNITS) $(TRACE_HOOKED)
HOOKED_UNITS += $(TRACE_HOOKED)
WHOLE_TESTS += %D%/measured_waits.t
%D%/%.o: private AM_CPPFLAGS := $(INC_COLLECT) $(INC_UNITS)
$(TRACE_UNITS) $(TRACE_HOOKED): $(COLLECT_LIBS)
$(TRACE_UNITS): private LDADD = $(COLLECT_LIBS) $(CMOCKA_LIBS)
$(TRACE_HOOKED): private LDADD = $(HOOKS_ARCHIVE) $(COLLECT_LIBS) $(CMOCKA_LIBS)
%C%_test_tracer_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=ioctl,--wrap=mremap,--wrap=our_fd_open,--wrap=unwind_capture
