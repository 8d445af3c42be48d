# tests of labels
LABELS_UNITS = %D%/test_labels %D%/test_samples
UNITS += $(LABELS_UNITS)
HOOKED_UNITS += $(LABELS_UNITS)
WHOLE_TESTS += %D%/labels.t
EXTRA_DIST += %D%/fixture.h
%D%/%.o: private AM_CPPFLAGS := $(INC_COLLECT) $(INC_UNITS)
%D%/%.o: private AM_CFLAGS += $(CALL_SITES)
$(LABELS_UNITS): $(COLLECT_LIBS)
$(LABELS_UNITS): private LDADD = $(HOOKS_ARCHIVE) $(COLLECT_LIBS) $(CMOCKA_LIBS)
