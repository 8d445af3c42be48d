# tests of wall-clock profiles
WALL_UNITS = %D%/test_wall
UNITS += $(WALL_UNITS)
WHOLE_TESTS += %D%/fgprof.t
%D%/%.o: private AM_CPPFLAGS := $(INC_COLLECT) $(INC_UNITS)
$(WALL_UNITS): $(COLLECT_LIBS)
$(WALL_UNITS): private LDADD = $(COLLECT_LIBS) $(CMOCKA_LIBS)
