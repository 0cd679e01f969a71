#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# root.sh NAME: makes sure that there is a Debian of its own, as it is on a new machine, with some
# packages; prints the path of a tar file of it. Made with mmdebstrap from this system's sources,
# and kept in the cache, by what is in it.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../lib.sh"
. "$here/../../suite.sh"

case $1 in
# What looks at tracepoints.
trace) packages=bpftrace,trace-cmd,linux-perf ;;
# What hwt's packages need, a compiler for a program that uses libhwt, and what installs it by hand.
packages) packages=dkms,linux-headers-amd64,udev,adduser,kmod,gcc,libc6-dev,make,pkgconf,sudo,openssl,systemd ;;
*) die "root.sh: there is no Debian '$1'" ;;
esac

codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
key=$(echo "$codename $packages" | sha256sum | cut -c 1-12)
dir=$HWT_CACHE/roots
tar=$dir/$1-$key.tar

make_root()
{
	local sources
	mapfile -t sources < <(find "$1" -type f -size +0)
	as_root mmdebstrap --format=tar --variant=minbase --include="$packages" "$codename" "$tar.tmp" \
		"${sources[@]}"
}

make_tar()
{
	[ ! -e "$tar" ] || return 0
	rm -rf "$dir/$1.sources"
	mkdir -p "$dir/$1.sources"
	suite_sources "$dir/$1.sources" ''
	as_root rm -rf "$tar.tmp"
	logged "$dir/$1.log" "making a Debian with $packages" make_root "$dir/$1.sources"
	rm -r "$dir/$1.sources"
	# Those with other packages, and disks of them.
	as_root rm -f "$dir/$1"-*.{tar,ext4}
	mv "$tar.tmp" "$tar"
}

[ -e "$tar" ] || with_lock "root-$1" make_tar "$1"
echo "$tar"
