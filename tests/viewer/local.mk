# tests of the page that people look at
WHOLE_TESTS += %D%/figures.t
EXTRA_DIST += %D%/figures.js
