# tests of components/componentctl
COMPONENTCTL_UNITS = %D%/test_read %D%/test_target
WHOLE_TESTS += %D%/annotate.t %D%/children.t %D%/dapr.t %D%/debug_files.t %D%/ends_meanwhile.t %D%/doctor.t %D%/enable.t %D%/follow_forks.t %D%/legacy.t %D%/list.t %D%/listing.t %D%/one_thread.t %D%/outside.t %D%/outside_changes.t %D%/profile.t %D%/records.t %D%/run.t %D%/sd.t \
	%D%/servers.t %D%/top.t %D%/usage.t %D%/views.t
UNITS += $(COMPONENTCTL_UNITS)
%C%_test_read_SOURCES = %D%/test_read.c $(LOOKING)
%C%_test_read_CPPFLAGS = $(INC_COMPONENTS) $(INC_LOOKING) $(INC_UNITS)
%C%_test_read_LDADD = $(READING_LIBS) profiler/model/libmodel.la $(BASE_LIBS) $(CMOCKA_LIBS)
%C%_test_target_SOURCES = %D%/test_target.c components/componentctl/target/target.c
%C%_test_target_CPPFLAGS = $(INC_COMPONENTS) $(INC_CTL) $(INC_UNITS)
%C%_test_target_LDADD = $(BASE_LIBS) $(CMOCKA_LIBS)
