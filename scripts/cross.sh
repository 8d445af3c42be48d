# cross.sh - sourced by scripts/variant behind packages.sh: a build for another processor than this machine's,
# whose programs run under qemu-user.
#
# Debian's libraries of that processor are unpacked in a folder of the build, by an apt whose
# state lies there too: the machine's own apt learns of no other architecture.  Functions
# answer 1 and set cross_why where something cannot be had; they are called in an if.
#
# The cross compiler looks into the folder of its own libc first, --sysroot or not.  That libc
# may be older than the libraries: so the folder of these is named in each command.

# What a program needs to be linked and run; what these depend on comes too.  libatomic1: for
# atomic bytes, which riscv64 has no instruction for.
cross_libraries="libc6-dev libgcc-s1 libstdc++6 libatomic1 libevent-dev zlib1g-dev libprotobuf-c-dev
	libyaml-dev liblzma-dev libunwind-dev libcmocka-dev"

# cross_fetch FOLDER ARCHITECTURE SUITE: the archives into FOLDER/apt/archives.
cross_fetch() {
	private_apt "$1" deb "$3" "APT::Architecture \"$2\"; APT::Architectures { \"$2\"; };" || return 1
	mkdir "$1/root"
	echo "== fetching $2 libraries into $1, suite: $3"
	# shellcheck disable=SC2086
	private_apt_get "$1" install -y --download-only --no-install-recommends $cross_libraries
}

# cross_sysroot FOLDER ARCHITECTURE SUITE...: unpacks the libraries in FOLDER/root, once, of
# the first suite that has them.
cross_sysroot() {
	cs_folder=$1 cs_arch=$2 cs_fetched=
	shift 2
	[ ! -e "$cs_folder/complete" ] || return 0
	command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || {
		cross_why="no apt-get and dpkg-deb to fetch Debian's $cs_arch libraries with"
		return 1
	}
	for cs_suite; do
		if cross_fetch "$cs_folder" "$cs_arch" "$cs_suite"; then
			cs_fetched=1
			break
		fi
	done
	[ -n "$cs_fetched" ] || {
		cross_why="Debian's $cs_arch libraries could not be fetched ($cs_folder/fetch.log says why)"
		return 1
	}
	for cs_package in "$cs_folder"/apt/archives/*.deb; do
		dpkg-deb -x "$cs_package" "$cs_folder/root" || {
			cross_why="$cs_package could not be unpacked"
			return 1
		}
	done
	# The loader's path begins with /lib, a link that a package of no library brings.
	[ -e "$cs_folder/root/lib" ] || ln -s usr/lib "$cs_folder/root/lib"
	rm -rf "$cs_folder/apt"
	: >"$cs_folder/complete"
}

# cross_build TOP BUILD ARCHITECTURE [CONFIGURE-ARGUMENT...]: compiler, emulator, libraries;
# configured and made in BUILD.  cross_broken is set if that fails with all of them there.
cross_build() {
	xb_top=$1 xb_build=$2 xb_arch=$3 cross_why='' cross_broken=''
	shift 3
	# riscv64 came with Debian 13.
	case $xb_arch in
	arm64) xb_cpu=aarch64 xb_suites=own ;;
	riscv64) xb_cpu=riscv64 xb_suites='trixie sid' ;;
	esac
	if ! need_packages gcc-$xb_cpu-linux-gnu g++-$xb_cpu-linux-gnu qemu-user; then
		cross_why="no cross compiler or no qemu-user"
		return 1
	fi
	mkdir -p "$xb_build"
	# shellcheck disable=SC2086
	cross_sysroot "$xb_build/sysroot" "$xb_arch" $xb_suites || return 1
	xb_root=$xb_build/sysroot/root
	xb_libraries=$xb_root/usr/lib/$xb_cpu-linux-gnu xb_headers=$xb_root/usr/include
	xb_paths="--sysroot=$xb_root -B$xb_libraries -L$xb_libraries -isystem $xb_headers/$xb_cpu-linux-gnu -isystem $xb_headers"
	configured_build "$xb_top" "$xb_build" --enable-werror --host=$xb_cpu-linux-gnu \
		CC="$xb_cpu-linux-gnu-gcc $xb_paths" CXX="$xb_cpu-linux-gnu-g++ --sysroot=$xb_root -B$xb_libraries -L$xb_libraries" \
		PKG_CONFIG_LIBDIR="$xb_libraries/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$xb_root" \
		TESTS_RUNNER="qemu-$xb_cpu -L $xb_root" "$@" || {
		cross_broken=1
		return 1
	}
}
