#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# foreign.sh ARCHITECTURE FLAVOUR: the distribution's kernel of another architecture, of
# this machine's series. Its image and headers, and a busybox, are unpacked into the
# cache, nothing is installed. Prints the directory: vmlinuz, build/ to compile modules
# against, and busybox.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../lib.sh"
. "$here/../../packages.sh"
. "$here/../../suite.sh"

arch=$1
flavour=$2
tmp=$HWT_CACHE/kernels/$arch-$flavour.tmp

# So that a warm run asks nobody.
cached()
{
	local release
	release=$(cd "$HWT_CACHE/kernels" 2>/dev/null && printf '%s\n' [0-9]* |
		grep -xE "[0-9.]+-[0-9]+-$flavour" | sort -V | tail -n 1)
	[ -z "$release" ] || echo "$HWT_CACHE/kernels/$release"
}

# kbuild RELEASE: the package of the tools that modules for it are built with.
kbuild() { echo "linux-kbuild-$(cut -d . -f 1-2 <<<"$1")"; }

fetch()
{
	local release dir file headers

	[ -z "$(cached)" ] || return 0
	suite_begin "$tmp" "" "$arch"
	mkdir "$tmp/deb"
	release=$(suite_apt cache depends "linux-headers-$flavour" |
		sed -n 's/^ *Depends: linux-headers-\([^:]*\).*/\1/p')
	[ -n "$release" ] || die "no kernel of flavour $flavour for $arch"
	# The headers that all flavours share.
	headers=$(suite_apt cache depends "linux-headers-$release" |
		sed -n 's/^ *Depends: \(linux-headers-[^:]*\).*/\1/p')
	cd "$tmp/deb"
	logged "$tmp.log" "fetching the image and the headers of $release" \
		suite_apt get download "linux-image-$release" "linux-headers-$release" \
		"$headers" "busybox-static:$arch"

	cd "$tmp"
	dpkg-deb --fsys-tarfile deb/linux-image-*.deb | tar -xO "./boot/vmlinuz-$release" >vmlinuz
	dpkg-deb --fsys-tarfile deb/busybox-static*.deb | tar -xO ./bin/busybox >busybox
	chmod 755 busybox
	rm deb/linux-image-*.deb deb/busybox*.deb
	for file in deb/*.deb; do
		dpkg-deb -x "$file" .
	done
	mkdir -p usr/lib
	ln -s "/usr/lib/$(kbuild "$release")" usr/lib/
	# The one path that is used and absolute.
	dir=$HWT_CACHE/kernels/$release
	sed -i "s|/usr/src/|$dir/usr/src/|" "usr/src/linux-headers-$release/Makefile"
	ln -s "usr/src/linux-headers-$release" build
	echo "$release" >release
	rm -rf deb sources lists cache lib build/vmlinux
	mv "$tmp" "$dir"
}

[ -n "$(cached)" ] || with_lock "foreign-$arch-$flavour" fetch
dir=$(cached)
# Of this machine are these tools, which the cache may have outlived, and the emulator.
packages_install "$(kbuild "${dir##*/}")"
[ "$arch" != arm64 ] || have qemu-system-aarch64 || packages_install qemu-system-arm
echo "$dir"
