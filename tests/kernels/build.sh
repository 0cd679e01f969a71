#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# build.sh PACKAGE FRAGMENT: builds a kernel from a linux-source package with
# tinyconfig plus the fragment, once, and prints the directory: vmlinuz, and
# build/ to compile modules against. Takes about ten minutes on two cores.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib.sh"

package=$1
fragment=$here/$2
jobs=${HWT_JOBS:-$(nproc)}

source=$("$here/source.sh" "$package")

# What the result depends on, and nothing else.
key=$({ basename "$source"; gcc -dumpfullversion; ld -v; cat "$fragment"; } |
	sha256sum | cut -c 1-12)
dir=$HWT_CACHE/kernels/$(basename "$source")-$(basename "$fragment" .config)-$key

kmake() { make -C "$source" O="$dir.tmp/build" -j"$jobs" "$@"; }

# Every option asked for must be there; olddefconfig drops what it cannot
# have without a word.
verify_config()
{
	local line missing=0
	while read -r line; do
		case $line in
		CONFIG_*=*|'# CONFIG_'*' is not set') ;;
		*) continue ;;
		esac
		grep -qxF "$line" "$1" && continue
		case $line in
		'# '*)	# "not set" also when the symbol is out of sight
			line=${line#\# }
			grep -q "^${line%% *}=" "$1" || continue ;;
		esac
		say "not in .config: $line"
		missing=1
	done <"$fragment"
	[ $missing -eq 0 ] || die "the kernel would lack options of $(basename "$fragment")"
}

configure()
{
	kmake tinyconfig
	"$source/scripts/kconfig/merge_config.sh" -m -O "$dir.tmp/build" \
		"$dir.tmp/build/.config" "$fragment"
	kmake olddefconfig
}

# Modules need the headers, the scripts, objtool and Module.symvers; the
# objects are ten times as much.
trim()
{
	cp "$1/build/arch/x86/boot/bzImage" "$1/vmlinuz"
	cp "$1/build/include/config/kernel.release" "$1/release"
	find "$1/build" -path "$1/build/scripts" -prune -o \
		-path "$1/build/tools" -prune -o \
		\( -name '*.o' -o -name '*.a' -o -name '.*.cmd' \
		   -o -name '.tmp_*' -o -name 'vmlinux.bin*' -o -name bzImage \) \
		-type f -exec rm -f {} +
}

build()
{
	[ ! -e "$dir" ] || return 0
	rm -rf "$dir.tmp"
	mkdir -p "$dir.tmp/build"
	logged "$dir.tmp/config.log" "configuring $package with $(basename "$fragment")" configure
	verify_config "$dir.tmp/build/.config"
	logged "$dir.tmp/build.log" "building it, about ten minutes" kmake bzImage modules
	trim "$dir.tmp"
	mv "$dir.tmp" "$dir"
}

[ -e "$dir" ] || with_lock "build-$key" build
echo "$dir"
