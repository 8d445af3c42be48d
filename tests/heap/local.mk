# tests of heap profiles: units, then programs with the hooks linked in
HEAP_UNITS = %D%/test_rate %D%/test_set %D%/test_trails
HEAP_HOOKED = %D%/test_accuracy %D%/test_blocks %D%/test_guest %D%/test_heap %D%/test_heap_older
HEAP_AGENT = %D%/test_heap_agent
UNITS += $(HEAP_UNITS) $(HEAP_HOOKED) $(HEAP_AGENT)
HOOKED_UNITS += $(HEAP_HOOKED) $(HEAP_AGENT)
WHOLE_TESTS += %D%/limited_process.t %D%/sample_identity.t
EXTRA_DIST += %D%/fixture.h
%D%/%.o: private AM_CPPFLAGS := $(INC_COLLECT) $(INC_UNITS)
%D%/%.o: private AM_CFLAGS += $(CALL_SITES)
$(HEAP_UNITS) $(HEAP_HOOKED) $(HEAP_AGENT): $(COLLECT_LIBS)
$(HEAP_UNITS): private LDADD = $(COLLECT_LIBS) $(CMOCKA_LIBS) -lm
$(HEAP_HOOKED): private LDADD = $(HOOKS_ARCHIVE) $(COLLECT_LIBS) $(CMOCKA_LIBS) -lm

# The agent's hooks, which count otherwise.
%C%_test_heap_agent_SOURCES = %D%/test_heap.c
$(HEAP_AGENT): profiler/hooks/object/component_hooks_shared.o
$(HEAP_AGENT): private LDADD = profiler/hooks/object/component_hooks_shared.o $(COLLECT_LIBS) $(CMOCKA_LIBS) -lm

# The hooks of an older release, in a program that a newer library runs.
%C%_test_heap_older_SOURCES = %D%/test_heap.c
%C%_test_heap_older_CPPFLAGS = $(AM_CPPFLAGS) -DHOOKS_OF_BEFORE
