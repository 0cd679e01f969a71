#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# backport.sh SERIES FLAVOUR: a newer kernel, of the distribution's backports. Its
# image and headers are unpacked into the cache. Nothing is installed, and what the
# system knows of packages stays as it is, so this needs no root. Prints the
# directory: vmlinuz, and build/ to compile modules against.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../lib.sh"
. "$here/../../suite.sh"

series=$1
flavour=$2
tmp=$HWT_CACHE/kernels/$series-$flavour.tmp

# The newest release of the series and flavour, of names one a line.
newest() { grep -xE "${series//./\\.}\.[0-9]+\+[a-z0-9]+-$flavour" | sort -V | tail -n 1; }

# So that a warm run asks nobody.
cached()
{
	local release
	release=$(ls "$HWT_CACHE/kernels" 2>/dev/null | newest)
	[ -z "$release" ] || echo "$HWT_CACHE/kernels/$release"
}

fetch()
{
	local release dir file headers

	[ -z "$(cached)" ] || return 0
	suite_begin "$tmp" -backports
	mkdir "$tmp/deb"
	release=$(suite_apt cache pkgnames linux-headers- | sed 's/^linux-headers-//' | newest)
	[ -n "$release" ] || die "no kernel $series of flavour $flavour among the backports"

	# What modules are built with, beside the headers of the flavour.
	mapfile -t headers < <(suite_apt cache depends "linux-headers-$release" |
		sed -n 's/^ *Depends: \(linux-\(headers\|kbuild\)-.*\)/\1/p')
	[ "${#headers[@]}" -eq 2 ] || die "linux-headers-$release needs: ${headers[*]}?"
	cd "$tmp/deb"
	logged "$tmp.log" "fetching the image and the headers of $release" \
		suite_apt get download "linux-image-$release" "linux-headers-$release" "${headers[@]}"

	cd "$tmp"
	dpkg-deb --fsys-tarfile deb/linux-image-*.deb | tar -xO "./boot/vmlinuz-$release" >vmlinuz
	rm deb/linux-image-*.deb
	for file in deb/*.deb; do
		dpkg-deb -x "$file" .
	done
	# The one path that is used and absolute: of the headers that all flavours share.
	dir=$HWT_CACHE/kernels/$release
	sed -i "s|/usr/src/|$dir/usr/src/|" "usr/src/linux-headers-$release/Makefile"
	ln -s "usr/src/linux-headers-$release" build
	echo "$release" >release
	# Without vmlinux modules are built without BTF, which takes pahole and is not used.
	rm -rf deb sources lists cache lib build/vmlinux
	mv "$tmp" "$dir"
}

[ -n "$(cached)" ] || with_lock "backport-$series-$flavour" fetch
cached
