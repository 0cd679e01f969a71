#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# cross.sh: a compiler for arm64, unpacked into the cache; prints what the names of its
# programs begin with. It is not installed: it and gcc-multilib, which the 32-bit
# programs are built with, exclude each other.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../lib.sh"
. "$here/../../packages.sh"

triplet=aarch64-linux-gnu
version=$(gcc -dumpversion)
dir=$HWT_CACHE/cross/$triplet-$version
packages=("gcc-$version-$triplet" "cpp-$version-$triplet" "binutils-$triplet"
	"libgcc-$version-dev-arm64-cross" libc6-dev-arm64-cross linux-libc-dev-arm64-cross)

download()
{
	logged "$HWT_CACHE/cross.log" "fetching a compiler for arm64" apt-get download "${packages[@]}"
}

fetch()
{
	local file name
	[ ! -e "$dir" ] || return 0
	packages_known "${packages[@]}"
	rm -rf "$dir.tmp"
	mkdir -p "$dir.tmp/deb" "$dir.tmp/bin"
	cd "$dir.tmp/deb"
	# Lists that are old name versions which are gone: once more with new ones.
	download || { packages_update && download; }
	cd "$dir.tmp"
	for file in deb/*.deb; do
		dpkg-deb -x "$file" .
	done
	# They look for their libraries where these would be installed.
	for file in usr/bin/"$triplet"-*; do
		name=${file##*/}
		printf '#!/bin/sh\nLD_LIBRARY_PATH=%s exec %s "$@"\n' \
			"$dir/usr/lib/$(uname -m)-linux-gnu" "$dir/$file" >"bin/$name"
		chmod 755 "bin/$name"
	done
	ln -s "$triplet-gcc-$version" "bin/$triplet-gcc"
	rm -rf deb usr/share
	mv "$dir.tmp" "$dir"
}

[ -e "$dir" ] || with_lock cross fetch
echo "$dir/bin/$triplet-"
