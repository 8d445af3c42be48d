# packages.sh - sourced by scripts/demo and scripts/test: puts missing Debian
# packages in place and says which.  Nothing is asked of a machine that has all.

# need_packages PACKAGE...: installs the ones dpkg does not know as installed.
need_packages() {
	np_missing=
	for np_package; do
		case $(dpkg-query -W -f '${db:Status-Status}' "$np_package" 2>/dev/null) in
		installed) ;;
		*) np_missing="$np_missing $np_package" ;;
		esac
	done
	[ -n "$np_missing" ] || return 0
	if ! command -v apt-get >/dev/null; then
		echo "$0: these packages are missing and apt-get is not here to install them:$np_missing" >&2
		return 1
	fi
	np_sudo=
	if [ "$(id -u)" != 0 ]; then
		command -v sudo >/dev/null || {
			echo "$0: run as root, or install as root first: apt-get install$np_missing" >&2
			return 1
		}
		np_sudo=sudo
	fi
	echo "== installing with apt-get:$np_missing"
	$np_sudo apt-get update -qq
	# shellcheck disable=SC2086
	$np_sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $np_missing |
		sed -n 's/^\(Setting up\|Unpacking\) \([^ ]*\).*/   \1 \2/p'
	for np_package in $np_missing; do
		[ "$(dpkg-query -W -f '${db:Status-Status}' "$np_package" 2>/dev/null)" = installed ] || {
			echo "$0: apt-get could not install $np_package; try: apt-get install$np_missing" >&2
			return 1
		}
	done
}

# unpacked_packages FOLDER PACKAGE...: what of these, and of what they depend on, is not
# installed lies in FOLDER/root afterwards.  Installed, a daemon would be started.  1 where
# that cannot be; FOLDER/fetch.log says why.
unpacked_packages() {
	up_folder=$1
	shift
	[ "$(cat "$up_folder/complete" 2>/dev/null)" != "$*" ] || return 0
	rm -rf "$up_folder"
	mkdir -p "$up_folder/archives/partial" "$up_folder/root"
	command -v apt-get >/dev/null || return 1
	echo "== fetching into $up_folder: $*"
	until apt-get -o Dir::Cache="$up_folder/" -o APT::Sandbox::User=root -o Debug::NoLocking=1 -o Acquire::Retries=2 \
		install -qq -y --download-only --no-install-recommends "$@" >"$up_folder/fetch.log" 2>&1; do
		# Its lists may be of another month.
		[ "$(id -u)" = 0 ] && [ ! -e "$up_folder/updated" ] && : >"$up_folder/updated" && apt-get update -qq || return 1
	done
	for up_package in "$up_folder"/archives/*.deb; do
		[ ! -e "$up_package" ] || dpkg-deb -x "$up_package" "$up_folder/root" || return 1
	done
	rm -rf "$up_folder/archives" "$up_folder"/*.bin
	echo "$*" >"$up_folder/complete"
}

# private_apt FOLDER KIND SUITE [SETTING]: FOLDER is made anew, and FOLDER/apt is the state of an apt of
# its own, so that the machine's apt learns nothing.  It reads KIND (deb, deb-src) of that SUITE
# of Debian, from the mirror that the machine's sources name; SUITE "own": these sources.
# 1 where they name no mirror; FOLDER/fetch.log says so.
private_apt() {
	pa_apt=$1/apt pa_sources=
	rm -rf "$1"
	mkdir -p "$pa_apt/lists/partial" "$pa_apt/archives/partial"
	: >"$pa_apt/status"
	if [ "$3" != own ]; then
		pa_mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' 2>/dev/null |
			head -n 1)
		[ -n "$pa_mirror" ] || {
			echo "apt's sources name no mirror of Debian; has apt-get update been run?" >"$1/fetch.log"
			return 1
		}
		echo "$2 [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $pa_mirror $3 main" >"$pa_apt/sources.list"
		pa_sources="Dir::Etc::sourcelist \"$pa_apt/sources.list\"; Dir::Etc::sourceparts \"-\";"
	fi
	cat >"$pa_apt/apt.conf" <<-EOF
		Dir::State::lists "$pa_apt/lists/";
		Dir::State::extended_states "$pa_apt/extended";
		Dir::State::status "$pa_apt/status";
		Dir::Cache "$pa_apt/";
		$pa_sources
		${4:-}
		APT::Sandbox::User "root";
		Acquire::Languages "none";
		Acquire::Retries "2";
		Acquire::http::Timeout "30";
	EOF
}

# private_apt_get FOLDER ARGUMENT...: apt-get update, then apt-get with these, in FOLDER, of that apt.
private_apt_get() (
	cd "$1" && exec >"$1/fetch.log" 2>&1 || return 1
	export APT_CONFIG="$1/apt/apt.conf"
	shift
	apt-get update -qq && apt-get -qq "$@"
)

# unpacked_sources FOLDER PACKAGE...: the sources of these lie in FOLDER/PACKAGE-VERSION afterwards, of
# this machine's release: the machine's own apt may name no sources.  Each by itself: 1 where one
# cannot be had; FOLDER/fetch.log says why.
unpacked_sources() {
	us_folder=$1 us_new=$1/new us_status=0 us_missing=
	shift
	for us_package; do
		[ -e "$us_folder/$us_package.complete" ] || us_missing="$us_missing $us_package"
	done
	[ -n "$us_missing" ] || return 0
	command -v apt-get >/dev/null && command -v dpkg-source >/dev/null || return 1
	private_apt "$us_new" deb-src "$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)" || us_missing= us_status=1
	echo "== fetching sources into $us_folder:$us_missing"
	for us_package in $us_missing; do
		if private_apt_get "$us_new" source "$us_package"; then
			rm -rf "$us_folder/$us_package"-*/
			mv "$us_new/$us_package"-*/ "$us_folder/"
			: >"$us_folder/$us_package.complete"
			rm -f "$us_new/fetch.log"
		else
			us_status=1
			mv "$us_new/fetch.log" "$us_folder/"
		fi
	done
	[ ! -e "$us_new/fetch.log" ] || mv "$us_new/fetch.log" "$us_folder/"
	rm -rf "$us_new"
	return $us_status
}

# What building takes, from a git checkout.
build_packages="gcc g++ make autoconf automake libtool gnulib pkg-config protobuf-c-compiler
	libprotobuf-c-dev libevent-dev zlib1g-dev libunwind-dev libyaml-dev liblzma-dev libcurl4-openssl-dev git ca-certificates"

# is_configured BUILD CONFIGURE-ARGUMENT...: with these among others, and with what is installed now, which
# decides what is built (the tests in C need cmocka, which scripts/demo does not).
is_configured() {
	ic_build=$1
	shift
	[ -e "$ic_build/Makefile" ] && [ ! /var/lib/dpkg/status -nt "$ic_build/config.status" ] || return 1
	for ic_word; do
		"$ic_build/config.status" --config | grep -qF -- "$ic_word" || return 1
	done
}

# configured_build SOURCE BUILD [CONFIGURE-ARGUMENT...]: autogen, configure and
# make, each only where it is not done already.
configured_build() {
	cb_source=$1 cb_build=$2
	shift 2
	if [ ! -x "$cb_source/configure" ] || [ "$cb_source/autogen.sh" -nt "$cb_source/configure" ]; then
		echo "== autogen.sh (imports gnulib, makes ./configure)"
		(cd "$cb_source" && ./autogen.sh >autogen.log 2>&1) || {
			tail -n 30 "$cb_source/autogen.log" >&2
			return 1
		}
		rm -f "$cb_source/autogen.log"
	fi
	if ! is_configured "$cb_build" "$@"; then
		echo "== configure in $cb_build"
		mkdir -p "$cb_build"
		(cd "$cb_build" && "$cb_source/configure" -q "$@" >configure.out 2>&1) || {
			tail -n 30 "$cb_build/configure.out" >&2
			return 1
		}
	fi
	echo "== make in $cb_build"
	make -s -C "$cb_build" -j "$(nproc)" all
}

# need_newer_go MINOR PACKAGE: a Go of at least 1.MINOR beside one that is older, from
# Debian's backports.  1 and a word about it where that cannot be.
need_newer_go() {
	for ng_go in go /usr/local/go/bin/go /usr/lib/go-1.*/bin/go; do
		ng_minor=$("$ng_go" env GOVERSION 2>/dev/null | sed -n 's/^go1\.\([0-9]*\).*/\1/p')
		[ "${ng_minor:-0}" -lt "$1" ] || return 0
	done
	ng_codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
	ng_list=/etc/apt/sources.list.d/$ng_codename-backports.list
	if [ "$ng_codename" = bookworm ] && [ "$(id -u)" = 0 ] && ! apt-cache show "$2" >/dev/null 2>&1; then
		echo "== adding Debian's backports to apt: $ng_list"
		echo "deb http://deb.debian.org/debian $ng_codename-backports main" >"$ng_list"
	fi
	need_packages "$2" || {
		echo "$0: no Go from 1.$1 on is here; what needs one is skipped" >&2
		return 1
	}
}
