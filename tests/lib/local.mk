# tests/lib/: what the tests share
WHOLE_TESTS += %D%/harness.t
EXTRA_DIST += %D%/harness.py %D%/serving.py %D%/service_manager.py %D%/hooked.py %D%/stressing.py %D%/gotools.py %D%/documents.py %D%/installed.py \
	%D%/adopting.py %D%/at_work.py %D%/checkpoints.py %D%/ctl.py %D%/daemons.py %D%/demo_input.py %D%/memory_load.py %D%/perfetto_reader.py %D%/pprof_reader.py %D%/pprof_writer.py %D%/quick_tests.py %D%/records.py %D%/busy.py %D%/browser.py %D%/shell_job.py %D%/soak.py %D%/unit_filter.py %D%/wall_looks.py %D%/tap-skips %D%/tsan.supp %D%/valgrind.supp \
	%D%/futex_waits.h %D%/skip.h %D%/waiting.h %D%/tree.h %D%/refused_call.h %D%/cpu_burn.h %D%/named_function.h
