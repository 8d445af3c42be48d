# tests of the page that people look at
WHOLE_TESTS += %D%/figures.t %D%/flame.t %D%/index.t %D%/page.t %D%/pictures.t
EXTRA_DIST += %D%/figures.js
