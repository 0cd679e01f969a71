#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# disk.sh NAME: makes sure that there is a disk with one of the Debians of root.sh, for guests: what
# is too much for their initramfs. Prints its path.
# disk.sh DIRECTORY DISK: makes one of a directory.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../lib.sh"

# fill DIRECTORY DISK: with half as much room again.
fill()
{
	local size
	size=$(as_root du -sm "$1" | cut -f 1)
	as_root rm -f "$2"
	as_root mke2fs -q -t ext4 -d "$1" "$2" $((size * 3 / 2 + 64))M >&2
	as_root chmod a+r "$2"
}

# make_disk TAR DISK
make_disk()
{
	[ ! -e "$2" ] || return 0
	as_root rm -rf "$2.root"
	mkdir "$2.root"
	as_root tar -C "$2.root" -xf "$1"
	logged "$2.log" "making a disk of a Debian" fill "$2.root" "$2.tmp"
	as_root rm -rf "$2.root"
	mv "$2.tmp" "$2"
}

if [ $# -eq 2 ]; then
	fill "$1" "$2"
	exit
fi
tar=$("$here/root.sh" "$1")
disk=${tar%.tar}.ext4
[ -e "$disk" ] || with_lock "disk-$1" make_disk "$tar" "$disk"
echo "$disk"
