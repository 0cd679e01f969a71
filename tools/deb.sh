#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# deb.sh [DIRECTORY]: build Debian packages of this source tree, committed or not, into DIRECTORY
# (build/deb). They are built in a copy of the tree, so nothing else is left behind.
set -eu
cd "$(dirname "$0")/.."
out=${1:-build/deb}
version=$(sed -n '1s/^hwt (\(.*\)) .*/\1/p' debian/changelog)

command -v dpkg-buildpackage dh >/dev/null || {
	echo "deb.sh: \"sudo apt-get build-dep ./\" installs what debian/control asks for" >&2
	exit 1
}
rm -rf "$out"
tools/copy.sh "$out/hwt-$version"
(cd "$out/hwt-$version" && dpkg-buildpackage -us -uc -b)
rm -rf "$out/hwt-$version"
ls "$out"/*.deb
