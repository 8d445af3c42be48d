# tests of what collectors make and encoders read
MODEL_UNITS = %D%/test_profile %D%/test_residence %D%/test_stack_table %D%/test_trace
if HAVE_SHARED
MODEL_UNITS += %D%/test_generations
endif
UNITS += $(MODEL_UNITS)
WHOLE_TESTS += %D%/unloaded_plugins.t
MODEL_LIBS = profiler/model/libmodel.la libcomponent/base/libbase.la
%D%/%.o: private AM_CPPFLAGS := $(INC_MODEL) $(INC_UNITS)
$(MODEL_UNITS): $(MODEL_LIBS)
$(MODEL_UNITS): private LDADD = $(MODEL_LIBS) $(CMOCKA_LIBS) -ldl
