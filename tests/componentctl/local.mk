# tests of components/componentctl
WHOLE_TESTS += %D%/list.t %D%/run.t
