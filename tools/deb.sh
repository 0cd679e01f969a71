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
	echo "deb.sh: install dpkg-dev, debhelper and dh-dkms" >&2
	exit 1
}
rm -rf "$out"
mkdir -p "$out/hwt-$version"
# What git knows or would take; without git, what is no result of a build.
{
	{ [ -e .git ] && git ls-files -z --cached --others --exclude-standard; } ||
		find . -name build -prune -o -type f ! -name '*.o' ! -name '*.ko' ! -name '*.mod' \
			! -name '*.mod.c' ! -name '.*.cmd' -print0
} | while IFS= read -r -d '' file; do
	[ ! -e "$file" ] || printf '%s\0' "$file"
done | tar --null -T - -c | tar -x -C "$out/hwt-$version"
(cd "$out/hwt-$version" && dpkg-buildpackage -us -uc -b)
rm -rf "$out/hwt-$version"
ls "$out"/*.deb
