#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# source.sh PACKAGE: unpacks a linux-source package into the cache, once, and
# prints where; installs the package if it is not there. Nothing of it is ever copied into the repository.
# PACKAGE "newest": the newest there is, in the distribution's unstable suite.
# Not installed. The link "newest" in the cache says which one that was;
# remove it to have another look.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../lib.sh"
. "$here/../../packages.sh"
. "$here/../../suite.sh"

package=$1
link=$HWT_CACHE/source/newest

# unpack ARCHIVE: to $dir
unpack()
{
	rm -rf "$dir.tmp"
	mkdir -p "$dir.tmp"
	logged "$HWT_CACHE/unpack.log" "unpacking ${dir##*/}" \
		tar -C "$dir.tmp" --strip-components=1 -xf "$1"
	mv "$dir.tmp" "$dir"
}

unpack_installed()
{
	[ -e "$dir" ] || unpack "/usr/src/$package.tar.xz"
}

unpack_newest()
{
	local tmp=$HWT_CACHE/source/newest.tmp deb
	[ ! -e "$link" ] || return 0
	suite_begin "$tmp" sid
	package=$(suite_apt cache depends linux-source | sed -n 's/^ *Depends: \(linux-source-\)/\1/p')
	[ -n "$package" ] || die "no linux-source in the unstable suite"
	(cd "$tmp" && logged "$HWT_CACHE/source.log" "fetching $package" \
		suite_apt get download "$package")
	deb=$(echo "$tmp"/*.deb)
	dir=$HWT_CACHE/source/$package-$(dpkg-deb -f "$deb" Version)
	dpkg-deb --fsys-tarfile "$deb" | tar -C "$tmp" -x "./usr/src/$package.tar.xz"
	[ -e "$dir" ] || unpack "$tmp/usr/src/$package.tar.xz"
	ln -sfn "${dir##*/}" "$link"
	rm -rf "$tmp"
}

if [ "$package" = newest ]; then
	[ -e "$link" ] || with_lock source-newest unpack_newest
	readlink -f "$link"
else
	packages_install "$package"
	dir=$HWT_CACHE/source/$package-$(dpkg-query -W -f '${Version}' "$package")
	[ -e "$dir" ] || with_lock source unpack_installed
	echo "$dir"
fi
