#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# pack.sh KERNEL LIST OUTPUT: the initramfs: busybox, init, modules, programs,
# scripts, and the list of what to run.
set -eu
. "$(dirname "$0")/../lib.sh"

kernel=$1
list=$2
output=$3
guest=$HWT_TOP/tests/vm
root=$output.root

copy()
{
	local to=$1 file
	shift
	for file in "$@"; do
		if [ -f "$file" ] && [[ $file != *.d ]]; then
			cp "$file" "$root/$to/"
		fi
	done
}

rm -rf "$root"
mkdir -p "$root"/{bin,dev,hwt/modules,hwt/bin,hwt/scripts,hwt/tools}
arch=$("$HWT_TOP/tests/vm/kernels/get.sh" --arch "$kernel")
busybox=$(command -v busybox)
[ -z "$arch" ] || busybox=$("$HWT_TOP/tests/vm/kernels/get.sh" "$kernel")/busybox
cp "$busybox" "$root/bin/busybox"
cp "$guest/init" "$root/init"
ln -s busybox "$root/bin/sh"
chmod 755 "$root/init"
cp "$guest/lib.sh" "$root/hwt/lib.sh"
cp "$list" "$root/hwt/list"
copy hwt "$guest/demo.sh" "$HWT_TOP/tools/60-hwt.rules"
copy hwt/tools "$HWT_TOP"/tools/*.bt
copy hwt/scripts "$HWT_TOP"/tests/{kernel,user}/*.sh "$HWT_TOP/tests/user/lib/hwtctl.inc" "$HWT_TOP/tests/torture/torture.sh"
copy hwt/bin "$HWT_BUILD/user${arch:+-$arch}"/*
copy hwt/modules "$HWT_BUILD/modules/${HWT_TREE:-$kernel}"/{,samples/,tests/kernel/,tests/kernel/lib/,bench/,tests/torture/}*.ko
# What it needs for a disk, if it has one.
if cut -d '|' -f 6 "$list" | grep -q .; then
	mkdir "$root/hwt/disk"
	copy hwt/disk "$("$HWT_TOP/tests/vm/kernels/get.sh" "$kernel")"/modules/*
fi
# What a caller adds, for the tests of the harness.
[ -z "${HWT_OVERLAY:-}" ] || cp -r "$HWT_OVERLAY"/. "$root/"
(cd "$root" && find . -print0 | cpio --null -o -H newc --owner=0:0 --quiet | gzip -1) >"$output"
rm -rf "$root"
