# tests of bench/: its arithmetic and its files; nothing is timed
TESTS += tests/bench.t
dist_check_SCRIPTS += tests/bench.t
