#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# get.sh: herd7, which says what a memory model allows. Prints the command. If it is not
# installed, it is unpacked into the cache from a later suite of the distribution, with the C
# library that it wants. Nothing is installed, so this needs no root. Exit code 77: that suite
# cannot be had (see suite.sh).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../lib.sh"
. "$here/../../suite.sh"

suite=sid
dir=$HWT_CACHE/herd
tmp=$dir.tmp

fetch()
{
	local file loader

	[ ! -e "$dir" ] || return 0
	suite_begin "$tmp" "$suite"
	mkdir "$tmp/deb"
	cd "$tmp/deb"
	logged "$HWT_CACHE/herd.log" "fetching herdtools7" \
		suite_apt get download herdtools7 libc6 libgmp10
	cd "$tmp"
	for file in deb/*.deb; do
		dpkg-deb -x "$file" .
	done
	loader=$(find usr/lib -path '*-linux-gnu*/ld-linux*.so.*' | head -n 1)
	[ -n "$loader" ] || die "no loader in libc6 of $suite"
	# Wherever it is.
	cat >herd7 <<-EOF
		#!/bin/sh
		dir=\${0%/*}
		exec "\$dir/$loader" --library-path "\$dir/${loader%/*}" "\$dir/usr/bin/herd7" \\
			-set-libdir "\$dir/usr/share/herdtools7/herd" "\$@"
	EOF
	chmod +x herd7
	"$tmp/herd7" -version >/dev/null || die "herd7 of $suite does not run here"
	# The other tools of the suite are large.
	find usr/bin -type f ! -name herd7 -delete
	rm -rf deb sources lists cache
	mv "$tmp" "$dir"
}

if have herd7; then
	command -v herd7
else
	[ -e "$dir" ] || with_lock herd fetch
	echo "$dir/herd7"
fi
