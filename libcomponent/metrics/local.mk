# metrics/: counters, gauges and histograms of the process, and how Prometheus reads them.
componentinclude_HEADERS += libcomponent/include/component/metrics.h
noinst_LTLIBRARIES += %D%/libmetrics.la
%C%_libmetrics_la_CPPFLAGS = $(OUR_WAITS) $(INC_METRICS)
%C%_libmetrics_la_SOURCES = %D%/exposition.c %D%/exposition.h %D%/metric.c %D%/metric.h
