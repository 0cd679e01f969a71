#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# deb.sh [DIRECTORY]: Debian packages of this source tree, as it is, to DIRECTORY (build/deb). They are
# built in a copy, so nothing is left here.
set -eu
cd "$(dirname "$0")/.."
out=${1:-build/deb}
version=$(sed -n '1s/^hwt (\(.*\)) .*/\1/p' debian/changelog)

command -v dpkg-buildpackage dh >/dev/null || {
	echo "deb.sh: install dpkg-dev, debhelper, dh-dkms and linux-kbuild-6.1" >&2
	exit 1
}
rm -rf "$out"
tools/copy.sh "$out/hwt-$version"
(cd "$out/hwt-$version" && dpkg-buildpackage -us -uc -b)
rm -rf "$out/hwt-$version"
ls "$out"/*.deb
