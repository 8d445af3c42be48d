# tests of thread dumps
THREADS_UNITS = %D%/test_previous_dump %D%/test_remote_dump %D%/test_running_threads %D%/test_without_proc
UNITS += $(THREADS_UNITS)
WHOLE_TESTS += %D%/deadlock.t %D%/goroutine.t %D%/hanging_daemon.t %D%/thousand_blocked.t
DUMP_LIBS = profiler/collect/libcollect.la profiler/encode/libencode.la profiler/symbols/libsymbols.la $(UNWIND_LIBS)
%D%/%.o: private AM_CPPFLAGS := $(INC_COLLECT) $(INC_ENCODE) $(INC_UNITS)
$(THREADS_UNITS): $(DUMP_LIBS)
$(THREADS_UNITS): private LDADD = $(DUMP_LIBS) $(CMOCKA_LIBS) $(PROTOBUFC_LIBS) $(ZLIB_LIBS)
