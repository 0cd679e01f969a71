#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# build.sh PACKAGE FRAGMENT [um]: builds a kernel from a linux-source package with
# tinyconfig plus the fragment, once, and prints the directory: vmlinuz (or, for
# User Mode Linux, the program linux), and build/ to compile modules against. Takes
# about ten minutes on two cores; User Mode Linux three.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib.sh"

package=$1
fragment=$here/$2
arch=${3:-x86}
jobs=${HWT_JOBS:-$(nproc)}

source=$("$here/source.sh" "$package")

# User Mode Linux is to measure what other kernels do, so four things that are done
# differently there are edited in a copy (of links) of the source: it runs on one CPU, so
# it leaves out the lock prefix; it has 100 ticks a second; it disables interrupts for each
# this_cpu operation, where x86 has an instruction; and it multiplies 64-bit numbers in
# pieces, where x86-64 has an instruction.
edits='
s/^#define LOCK_PREFIX ""/#define LOCK_PREFIX "lock; "/ arch/x86/include/asm/alternative.h
/^config HZ$/,/default/s/default 100/default 250/ arch/um/Kconfig
/^#define this_cpu_generic_to_op/,/^}/s/raw_local_irq_\(save\|restore\)(__flags)/(void)__flags/ include/asm-generic/percpu.h
/^config UML_X86$/,/def_bool/s/def_bool y/&\n\tselect ARCH_SUPPORTS_INT128 if CC_HAS_INT128/ arch/x86/um/Kconfig
'

# What the result depends on, and nothing else.
key=$({ basename "$source"; gcc -dumpfullversion; ld -v; cat "$fragment"
	[ "$arch" = x86 ] || echo "$edits"; } | sha256sum | cut -c 1-12)
dir=$HWT_CACHE/kernels/$(basename "$source")-$(basename "$fragment" .config)-$key

kmake() { make -C "$source" O="$dir.tmp/build" ARCH="$arch" -j"$jobs" "$@"; }

# The modules' build refers to the source by its path: it stays.
edit_source()
{
	local command file edited
	edited=$source-um-$(sha256sum <<<"$edits" | cut -c 1-12)
	if [ ! -e "$edited" ]; then
		rm -rf "$edited.tmp"
		cp -al "$source" "$edited.tmp"
		while IFS= read -r command; do
			[ -n "$command" ] || continue
			file=$edited.tmp/${command##* }
			# -i makes a new file: the source's own stays as it is.
			sed -i.orig "${command% *}" "$file"
			! cmp -s "$file" "$file.orig" || die "'$command' changes nothing"
		done <<<"$edits"
		mv "$edited.tmp" "$edited"
	fi
	source=$edited
}

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
	if [ "$arch" = um ]; then
		cp "$1/build/linux" "$1/linux"
	else
		cp "$1/build/arch/x86/boot/bzImage" "$1/vmlinuz"
	fi
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
	[ "$arch" != um ] || edit_source
	logged "$dir.tmp/config.log" "configuring $package with $(basename "$fragment")" configure
	verify_config "$dir.tmp/build/.config"
	if [ "$arch" = um ]; then
		logged "$dir.tmp/build.log" "building it, about three minutes" kmake linux modules
	else
		logged "$dir.tmp/build.log" "building it, about ten minutes" kmake bzImage modules
	fi
	trim "$dir.tmp"
	mv "$dir.tmp" "$dir"
}

[ -e "$dir" ] || with_lock "build-$key" build
echo "$dir"
