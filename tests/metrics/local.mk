# tests of libcomponent/metrics
METRICS_UNITS = %D%/test_metric
UNITS += $(METRICS_UNITS)
METRICS_LIBS = libcomponent/metrics/libmetrics.la libcomponent/base/libbase.la
%D%/%.o: private AM_CPPFLAGS := $(INC_METRICS) $(INC_UNITS)
$(METRICS_UNITS): $(METRICS_LIBS)
$(METRICS_UNITS): private LDADD = $(METRICS_LIBS) $(CMOCKA_LIBS)
