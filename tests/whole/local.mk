# tests of whole programs that are no one room's
WHOLE_TESTS += %D%/adopt_dnsmasq.t %D%/adopt_lighttpd.t %D%/adopt_memcached.t %D%/debian_daemons.t %D%/every_program.t %D%/hunts.t %D%/languages.t %D%/odd_threads.t %D%/other_profilers.t \
	%D%/program_signals.t %D%/refused_resources.t %D%/restricted_process.t %D%/sanitizers.t %D%/short_resources.t %D%/strangers.t
