#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# disk.sh NAME: makes sure that there is a disk with a Debian of its own, for guests: what is too
# much for their initramfs. Prints its path. Made with mmdebstrap from the packages of this
# system's sources; in the cache, by what is on it.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib.sh"
. "$here/../packages.sh"
. "$here/../suite.sh"

case $1 in
# What looks at tracepoints.
trace) packages="bpftrace trace-cmd linux-perf" ;;
*) die "disk.sh: there is no disk '$1'" ;;
esac

codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
key=$(echo "$codename $packages" | sha256sum | cut -c 1-12)
dir=$HWT_CACHE/disks
disk=$dir/$1-$key.ext4

make_root()
{
	local sources
	mkdir "$dir/$1.sources"
	suite_sources "$dir/$1.sources" ''
	mapfile -t sources < <(find "$dir/$1.sources" -type f -size +0)
	as_root mmdebstrap --variant=minbase --include="$packages" "$codename" "$dir/$1.tmp" \
		"${sources[@]}"
}

# Half as much again, for what a test writes to its copy.
make_disk()
{
	local size
	size=$(as_root du -sm "$dir/$1.tmp" | cut -f 1)
	as_root mke2fs -q -t ext4 -d "$dir/$1.tmp" "$disk.tmp" $((size * 3 / 2 + 64))M
	as_root chmod a+r "$disk.tmp"
}

make()
{
	[ ! -e "$disk" ] || return 0
	as_root rm -rf "$dir/$1".{tmp,sources} "$disk.tmp"
	mkdir -p "$dir"
	logged "$dir/$1.log" "making a disk with a Debian: $packages" make_root "$1"
	logged "$dir/$1.log" "... and a file system of it" make_disk "$1"
	as_root rm -rf "$dir/$1".{tmp,sources}
	as_root mv "$disk.tmp" "$disk"
}

[ -e "$disk" ] || with_lock "disk-$1" make "$1"
echo "$disk"
