# tests of a program's own profiles
CUSTOM_UNITS = %D%/test_custom
UNITS += $(CUSTOM_UNITS)
WHOLE_TESTS += %D%/custom.t
%D%/%.o: private AM_CPPFLAGS := $(INC_COLLECT) $(INC_UNITS)
$(CUSTOM_UNITS): $(COLLECT_LIBS)
$(CUSTOM_UNITS): private LDADD = $(COLLECT_LIBS) $(CMOCKA_LIBS)
