#!/bin/sh
# Makes ./configure in a git checkout.  gnulib's getopt-gnu is imported by the
# distribution's gnulib-tool (Debian package gnulib) and never kept in git.
set -eu
cd "$(dirname "$0")"
command -v gnulib-tool >/dev/null || {
	echo "autogen.sh: gnulib-tool is missing: install the Debian package gnulib" >&2
	exit 1
}
if [ ! -e gnulib/local.mk ] || [ autogen.sh -nt gnulib/local.mk ]; then
	rm -rf gnulib
	mkdir -p m4 build-aux
	gnulib-tool --quiet --import --lib=libgnu --source-base=gnulib \
		--m4-base=gnulib/m4 --aux-dir=build-aux --libtool --lgpl=2 \
		--makefile-name=local.mk --automake-subdir --no-vc-files \
		--no-conditional-dependencies --macro-prefix=gl \
		getopt-gnu lib-symbol-visibility >/dev/null
	touch gnulib/local.mk
fi
exec autoreconf --install
