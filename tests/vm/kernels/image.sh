#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# image.sh META FLAVOUR: a distribution kernel. Installs the headers that the
# meta package asks for, fetches the image of the same release (unpacked into
# the cache, not installed), and prints the directory: vmlinuz, and modules/ with what a
# guest needs for a disk, in the order in which they are to be loaded.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../lib.sh"
. "$here/../../packages.sh"

meta=$1
flavour=$2

# The newest release that is complete here, so that a warm run asks nobody.
cached()
{
	local release found=
	for release in $(cd "$HWT_CACHE/kernels" 2>/dev/null && printf '%s\n' [0-9]* | sort -V); do
		[[ $release =~ ^[0-9.]+-[0-9]+-$flavour$ ]] || continue
		[ -e "$HWT_CACHE/kernels/$release/vmlinuz" ] || continue
		[ -d "$HWT_CACHE/kernels/$release/modules" ] || continue
		[ -d "/lib/modules/$release/build" ] || continue
		found=$HWT_CACHE/kernels/$release
	done
	echo "$found"
}

# keep_modules RELEASE: of what is unpacked in deb/.
keep_modules()
{
	local n=10 words
	mkdir modules
	depmod -b deb "$1"
	# Each with what it needs before it.
	modprobe -d "$PWD/deb" -S "$1" --show-depends -a virtio_pci virtio_blk ext4 >depends
	while read -ra words; do
		[ "${words[0]}" = insmod ] && ! compgen -G "modules/*-${words[1]##*/}" >/dev/null ||
			continue
		cp "${words[1]}" "modules/$n-${words[1]##*/}"
		n=$((n + 1))
	done <depends
	rm depends
}

fetch()
{
	local release dir

	[ -z "$(cached)" ] || return 0
	# Lists that are old name a release that is gone.
	packages_update
	release=$(apt-cache depends "$meta" | sed -n 's/^ *Depends: linux-headers-//p' | head -n 1)
	[ -n "$release" ] || die "no headers package behind $meta"
	packages_install "linux-headers-$release"

	dir=$HWT_CACHE/kernels/$release
	rm -rf "$dir.tmp"
	mkdir -p "$dir.tmp/deb"
	(
		cd "$dir.tmp"
		logged "$dir.log" "fetching the image of $release" \
			apt-get download "linux-image-$release"
		dpkg-deb -x linux-image-*.deb deb
		cp "deb/boot/vmlinuz-$release" vmlinuz
		echo "$release" >release
		keep_modules "$release"
		rm -rf deb linux-image-*.deb
	)
	rm -rf "$dir"
	mv "$dir.tmp" "$dir"
}

if [ -z "$(cached)" ]; then
	with_lock "image-$flavour" fetch
fi
cached
