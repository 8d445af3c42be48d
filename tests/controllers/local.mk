# tests of the controller kit
CONTROLLERS_UNITS = %D%/test_controller %D%/test_figures %D%/test_leader %D%/test_queue %D%/test_source
UNITS += $(CONTROLLERS_UNITS)
CONTROLLERS_LIBS = libcomponent/controllers/libcontrollers.la $(LIFE_LIBS)
%D%/%.o: private AM_CPPFLAGS := $(INC_CONTROLLERS) $(INC_UNITS)
$(CONTROLLERS_UNITS): $(CONTROLLERS_LIBS)
$(CONTROLLERS_UNITS): private LDADD = $(CONTROLLERS_LIBS) $(YAML_LIBS) $(CMOCKA_LIBS)

%C%_test_controller_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=pthread_create,--wrap=component_queue_add,--wrap=component_queue_add_after
%C%_test_queue_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=realloc,--wrap=pthread_cond_signal
%C%_test_source_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=clock_gettime,--wrap=fstatfs,--wrap=readdir,--wrap=twalk_r

# The text that all of them are shown in.
%C%_test_figures_CPPFLAGS = $(INC_CONTROLLERS) -iquote $(top_srcdir)/libcomponent/metrics $(INC_UNITS)
