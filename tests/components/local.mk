# tests of components
COMPONENTS_UNITS = %D%/test_health_answer %D%/test_ports %D%/test_serving
UNITS += $(COMPONENTS_UNITS)
WHOLE_TESTS += %D%/adopted.t %D%/agent.t %D%/enable_file.t %D%/entry_points.t %D%/golden_options.t %D%/health.t %D%/metrics.t %D%/own_table.t %D%/preload.t %D%/profiling.t %D%/reload.t \
	%D%/shared_listener.t %D%/status_pages.t %D%/when_enabled.t
EXTRA_DIST += %D%/golden/hello.json %D%/golden/backend-controller.json %D%/golden/cluster-agent.json \
	%D%/golden/appstudio-controller.json
%D%/%.o: private AM_CPPFLAGS := $(INC_COMPONENTS) $(INC_UNITS)
$(COMPONENTS_UNITS): components/libcomponent.la
$(COMPONENTS_UNITS): private LDADD = components/libcomponent.la $(CMOCKA_LIBS)

%C%_test_health_answer_SOURCES = %D%/test_health_answer.c components/health_answer.c
%C%_test_health_answer_CPPFLAGS = $(INC_COMPONENTS) $(INC_UNITS)
%C%_test_health_answer_LDADD = $(HTTP_LIBS) $(CMOCKA_LIBS)
