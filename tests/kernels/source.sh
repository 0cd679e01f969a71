#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# source.sh PACKAGE: unpacks a linux-source package into the cache, once, and
# prints where. Nothing of it is ever copied into the repository.
set -eu
. "$(dirname "$0")/../lib.sh"

package=$1
version=$(dpkg-query -W -f '${Version}' "$package")
dir=$HWT_CACHE/source/$package-$version

unpack()
{
	[ ! -e "$dir" ] || return 0
	rm -rf "$dir.tmp"
	mkdir -p "$dir.tmp"
	logged "$HWT_CACHE/unpack.log" "unpacking $package $version" \
		tar -C "$dir.tmp" --strip-components=1 -xf "/usr/src/$package.tar.xz"
	mv "$dir.tmp" "$dir"
}

[ -e "$dir" ] || with_lock source unpack
echo "$dir"
