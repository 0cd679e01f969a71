#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# record.sh SECONDS DIR: boots a guest with one CPU that works (load.c and init say at what),
# records what it does with timers, and makes DIR/trace.bin of it (convert.py), and an initramfs
# with nothing but that, DIR/trace.gz.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../tests/lib.sh"

seconds=$1
out=$2
mkdir -p "$out"
out=$(cd "$out" && pwd)
stock=$("$HWT_TOP/tests/vm/kernels/get.sh" stock)
release=$(cat "$stock/release")
kdir=$("$HWT_TOP/tests/vm/kernels/get.sh" --kdir stock)
disk_modules=(virtio_pci virtio_blk crc32c_generic ext4)

# The modules of the stock kernel, which come in the package that its image came in.
fetch_modules()
{
	local tmp=$stock/load.tmp path=./lib/modules/$release
	[ ! -d "$stock/load" ] || return 0
	rm -rf "$tmp"
	mkdir -p "$tmp"
	(
		cd "$tmp"
		logged "$out/fetch.log" "fetching the modules of $release" \
			apt-get download "linux-image-$release"
		dpkg-deb --fsys-tarfile linux-image-*.deb | tar -x --wildcards "$path/modules.*" \
			"$path/kernel/"{crypto,fs/ext4,fs/jbd2,fs/mbcache.ko,lib} \
			"$path/kernel/drivers/"{virtio,block/virtio_blk.ko}
		rm linux-image-*.deb
		depmod -b . "$release"
	)
	mv "$tmp" "$stock/load"
}

# archive DIRECTORY OUTPUT
archive()
{
	(cd "$1" && find . -print0 | cpio --null -o -H newc --owner=0:0 --quiet | gzip -1) >"$2"
	rm -rf "$1"
}

# An initramfs with busybox, the load, and the modules in the order to load them.
pack()
{
	local root=$out/root module
	rm -rf "$root"
	mkdir -p "$root/bin" "$root/load"
	cp "$(command -v busybox)" "$root/bin/busybox"
	ln -s busybox "$root/bin/sh"
	cp "$here/init" "$root/init"
	gcc -O2 -Wall -Wextra -Werror -static -o "$root/load/load" "$here/load.c"
	modprobe --show-depends -d "$stock/load" -S "$release" -a "${disk_modules[@]}" |
		awk '$1 == "insmod" && !seen[$2]++ { print $2 }' >"$out/modules"
	while read -r module; do
		cp "$module" "$root/load/"
		basename "$module"
	done <"$out/modules" >"$root/load/modules"
	archive "$root" "$out/guest.gz"
}

boot()
{
	rm -f "$out"/{disk,result}.img
	truncate -s 256M "$out/disk.img"
	truncate -s 256M "$out/result.img"
	mkfs.ext4 -q -F "$out/disk.img"
	timeout 300 qemu-system-x86_64 -nodefaults -no-user-config -display none -no-reboot \
		-machine pc -cpu max -accel tcg -smp 1 -m 2G -serial stdio \
		-kernel "$stock/vmlinuz" -initrd "$out/guest.gz" \
		-drive "file=$out/disk.img,format=raw,if=virtio" \
		-drive "file=$out/result.img,format=raw,if=virtio" \
		-append "console=ttyS0 panic=-1 tsc=reliable clocksource=tsc HWT_SECONDS=$seconds"
}

with_lock "load-modules" fetch_modules
pack
logged "$out/record.log" "recording the timers of a guest that works for $seconds s" boot
grep -a -q "^hwt-trace: end" "$out/record.log" ||
	die "the guest did not get through: $out/record.log"
grep -a -q "^dropped events: 0" "$out/record.log" ||
	say "the end of the recording is lost: the buffer is too small"
python3 "$here/convert.py" "$(sed -n 's/^CONFIG_HZ=//p' "$kdir/.config")" \
	"$out/result.img" "$out/trace.bin"
rm -f "$out"/{disk,result}.img "$out/guest.gz"
mkdir -p "$out/root/hwt"
cp "$out/trace.bin" "$out/root/hwt/"
archive "$out/root" "$out/trace.gz"
