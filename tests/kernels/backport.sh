#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# backport.sh SERIES FLAVOUR: a newer kernel, of the distribution's backports. Its
# image and headers are unpacked into the cache. Nothing is installed, and what the
# system knows of packages stays as it is, so this needs no root. Prints the
# directory: vmlinuz, and build/ to compile modules against.
set -eu
. "$(dirname "$0")/../lib.sh"

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

# The system's own sources of $1, with that suite's backports in its place.
sources()
{
	local file
	mkdir -p "$tmp/sources"
	for file in /etc/apt/sources.list.d/*.sources; do
		[ -e "$file" ] || continue
		awk -v suite="$1" 'BEGIN { RS = ""; ORS = "\n\n" }
			$0 ~ "(^|\n)Suites:[^\n]*[ \t]" suite "([ \t\n]|$)" {
				sub("Suites:[^\n]*", "Suites: " suite "-backports")
				print
			}' "$file" >"$tmp/sources/${file##*/}"
	done
	for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
		[ -e "$file" ] || continue
		sed -n "s/^\(deb[[:space:]].*[[:space:]]$1\)\([[:space:]]\)/\1-backports\2/p" \
			"$file" >"$tmp/sources/${file##*/}"
	done
}

# apt TOOL ARGS...: with those sources, and lists of its own.
apt()
{
	"apt-$1" -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$tmp/sources" \
		-o Dir::State::Lists="$tmp/lists" -o Dir::Cache="$tmp/cache" "${@:2}"
}

fetch()
{
	local codename release dir file headers

	[ -z "$(cached)" ] || return 0
	rm -rf "$tmp"
	mkdir -p "$tmp/lists/partial" "$tmp/cache/archives/partial" "$tmp/deb"
	codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
	sources "$codename"
	logged "$HWT_CACHE/backports.log" "fetching the list of $codename-backports" \
		apt get -o APT::Update::Error-Mode=any update ||
		die "no kernel $series without $codename-backports, which cannot be had here"
	release=$(apt cache pkgnames linux-headers- | sed 's/^linux-headers-//' | newest)
	[ -n "$release" ] || die "no kernel $series of flavour $flavour in $codename-backports"

	# What modules are built with, beside the headers of the flavour.
	mapfile -t headers < <(apt cache depends "linux-headers-$release" |
		sed -n 's/^ *Depends: \(linux-\(headers\|kbuild\)-.*\)/\1/p')
	[ "${#headers[@]}" -eq 2 ] || die "linux-headers-$release needs: ${headers[*]}?"
	cd "$tmp/deb"
	logged "$HWT_CACHE/image.log" "fetching the image and the headers of $release" \
		apt get download "linux-image-$release" "linux-headers-$release" "${headers[@]}"

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
