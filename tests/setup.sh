#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# setup.sh [run|static|guest|coverage|litmus|documented|packages|quick|check|year|bench|bench-java]: installs and
# fetches what is missing for that, and says what it does. Quick when nothing is missing.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/lib.sh"
. "$here/packages.sh"

# A guest: an emulator, something to build the modules and the initramfs with.
guest="gcc libc6-dev make python3 xz-utils kmod cpio busybox-static qemu-system-x86"
# A Debian on a disk, for what does not fit into the initramfs.
disk="mmdebstrap e2fsprogs"
# To build and to look at packages.
packages="build-essential dpkg-dev debhelper dh-dkms lintian $disk"
# The kernel's own test and check tools, and what reads C.
static="linux-source-6.1 perl sparse cppcheck clang-14 clang-tidy shellcheck man-db valgrind graphviz fonts-dejavu-core patch"
# Tests on the host.
tests="libclang-rt-14-dev spin g++ pkgconf"
# The test programs of the guest: 32-bit ones, io_uring, libev, a client in Pascal.
programs="gcc-multilib liburing-dev libev-dev fp-compiler"
# To build a kernel. What only some of them need is installed by kernels/*.sh.
kernel="flex bison bc libelf-dev"
# To measure, against these libraries' timers, and to draw.
bench="valgrind gnuplot-nox liburing-dev libuv1-dev libev-dev"
java="default-jdk-headless libnetty-java"

# What a guest needs beside a kernel.
guest_get()
{
	# shellcheck disable=SC2086 # a list of words
	packages_install $guest "$@"
	"$here/vm/emulator.sh"
}

kernels_get()
{
	local name dir
	for name in "$@"; do
		dir=$("$here/vm/kernels/get.sh" "$name")
		say "kernel $name: $(cat "$dir/release")"
	done
}

# shellcheck disable=SC2086 # lists of words
case ${1:-check} in
run)
	guest_get
	kernels_get stock
	;;
static)
	packages_install $guest $static $programs
	"$here/vm/kernels/source.sh" linux-source-6.1 >/dev/null
	kernels_get stock
	;;
guest)	# the kernel itself is fetched by what runs it
	guest_get linux-source-6.1 $programs $kernel $disk
	"$here/vm/kernels/source.sh" linux-source-6.1 >/dev/null
	;;
coverage)
	"$0" guest
	packages_install gcovr
	;;
litmus)
	packages_install linux-source-6.1 python3 xz-utils
	"$here/vm/kernels/source.sh" linux-source-6.1 >/dev/null
	"$here/verify/litmus/get.sh" >/dev/null
	;;
documented)
	"$0" guest
	kernels_get stock
	;;
packages)
	guest_get $packages
	kernels_get stock
	"$here/vm/debian/root.sh" packages >/dev/null
	;;
quick)
	guest_get $static $tests $programs
	"$here/vm/kernels/source.sh" linux-source-6.1 >/dev/null
	kernels_get stock
	;;
check)
	guest_get $static $tests $programs $kernel $packages
	"$here/vm/kernels/source.sh" linux-source-6.1 >/dev/null
	mapfile -t names < <("$here/vm/kernels/get.sh" --names)
	kernels_get "${names[@]}" uml
	"$here/vm/debian/disk.sh" trace >/dev/null
	"$here/vm/debian/root.sh" packages >/dev/null
	# Where it cannot be had those tests are skipped.
	rc=0
	"$here/verify/litmus/get.sh" >/dev/null || rc=$?
	case $rc in
	0) ;;
	77) say "going on without herd7" ;;
	*) die "herd7 was not fetched" ;;
	esac
	;;
year)
	guest_get linux-source-6.1 $kernel
	"$here/vm/kernels/source.sh" linux-source-6.1 >/dev/null
	kernels_get uml
	;;
bench*)
	guest_get linux-source-6.1 $kernel $bench
	[ "$1" != bench-java ] || packages_install $java
	"$here/vm/kernels/source.sh" linux-source-6.1 >/dev/null
	kernels_get stock uml
	;;
*)
	die "setup.sh run|static|guest|coverage|litmus|documented|packages|quick|check|year|bench|bench-java"
	;;
esac
