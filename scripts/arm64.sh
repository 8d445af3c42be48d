# arm64.sh - sourced by scripts/variant: a build for aarch64 on a machine that is none,
# whose programs run under qemu-user.
#
# Debian's arm64 libraries are unpacked in a folder of the build, by an apt whose state
# lies there too: the machine's own apt learns of no other architecture.  Functions
# answer 1 and set arm64_why where something cannot be had; they are called in an if.

# What a program for aarch64 needs to be linked and run; what these depend on comes too.
arm64_libraries="libc6-dev libgcc-s1 libstdc++6 libevent-dev zlib1g-dev libprotobuf-c-dev
	libyaml-dev liblzma-dev libunwind-dev libcmocka-dev"

# arm64_sysroot FOLDER: unpacks the libraries in FOLDER/root, once.
arm64_sysroot() {
	as_apt=$1/apt
	[ ! -e "$1/complete" ] || return 0
	command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || {
		arm64_why="no apt-get and dpkg-deb to fetch Debian's arm64 libraries with"
		return 1
	}
	rm -rf "$1"
	mkdir -p "$as_apt/lists/partial" "$as_apt/archives/partial" "$1/root"
	: >"$as_apt/status"
	cat >"$as_apt/apt.conf" <<-EOF
		Dir::State::lists "$as_apt/lists/";
		Dir::State::extended_states "$as_apt/extended";
		Dir::State::status "$as_apt/status";
		Dir::Cache "$as_apt/";
		APT::Architecture "arm64";
		APT::Architectures { "arm64"; };
		APT::Sandbox::User "root";
		Acquire::Languages "none";
		Acquire::Retries "2";
		Acquire::http::Timeout "30";
	EOF
	echo "== fetching arm64 libraries into $1"
	# shellcheck disable=SC2086
	if ! (APT_CONFIG=$as_apt/apt.conf && export APT_CONFIG && apt-get update -qq &&
		apt-get install -qq -y --download-only --no-install-recommends $arm64_libraries) >"$1/fetch.log" 2>&1; then
		arm64_why="Debian's arm64 libraries could not be fetched ($1/fetch.log says why)"
		return 1
	fi
	for as_package in "$as_apt"/archives/*.deb; do
		dpkg-deb -x "$as_package" "$1/root" || {
			arm64_why="$as_package could not be unpacked"
			return 1
		}
	done
	rm -rf "$as_apt"
	: >"$1/complete"
}

# arm64_build TOP BUILD: compiler, emulator, libraries; configured and made in BUILD.
arm64_build() {
	if ! need_packages gcc-aarch64-linux-gnu g++-aarch64-linux-gnu qemu-user; then
		arm64_why="no cross compiler or no qemu-user"
		return 1
	fi
	mkdir -p "$2"
	arm64_sysroot "$2/sysroot" || return 1
	ab_root=$2/sysroot/root
	configured_build "$1" "$2" --enable-werror --host=aarch64-linux-gnu \
		CC="aarch64-linux-gnu-gcc --sysroot=$ab_root" CXX="aarch64-linux-gnu-g++ --sysroot=$ab_root" \
		PKG_CONFIG_LIBDIR="$ab_root/usr/lib/aarch64-linux-gnu/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$ab_root" \
		TESTS_RUNNER="qemu-aarch64 -L $ab_root" || {
		arm64_broken=1
		return 1
	}
}
