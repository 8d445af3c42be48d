# tests of the life of a component
LIFE_UNITS = %D%/test_config %D%/test_features %D%/test_fork %D%/test_log %D%/test_loop %D%/test_notify %D%/test_order
UNITS += $(LIFE_UNITS)
WHOLE_TESTS += %D%/signals.t
EXTRA_DIST += %D%/fixture.h %D%/order_fixture.h
LIFE_LIBS = libcomponent/lifecycle/liblifecycle.la libcomponent/metrics/libmetrics.la $(FLAGS_LIBS)
%D%/%.o: private AM_CPPFLAGS := $(INC_LIFECYCLE) $(INC_UNITS)
$(LIFE_UNITS): $(LIFE_LIBS)
$(LIFE_UNITS): private LDADD = $(LIFE_LIBS) $(YAML_LIBS) $(CMOCKA_LIBS)
