#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# build.sh PACKAGE FRAGMENT [um|clang]: builds a kernel from a linux-source package (see
# source.sh) with tinyconfig plus the fragment, once, and prints the directory: vmlinuz (or,
# for User Mode Linux, the program linux), and build/ to compile modules against. Takes about
# ten minutes on two cores; User Mode Linux three. clang: with that instead of gcc.
#
# A fragment may name another as its "# base:", and options of that which it does "# without:".
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../lib.sh"
. "$here/../../packages.sh"

package=$1
fragment=$here/$2
arch=x86
llvm=
case ${3:-} in
um) arch=um ;;
clang)	# modules for it are built with the same
	llvm=-14
	packages_install clang$llvm lld$llvm llvm$llvm ;;
esac
jobs=${HWT_JOBS:-$(nproc)}

source=$("$here/source.sh" "$package")

# What is edited in a copy (of links) of the source, if anything.
case $2 in
uml.config)
# User Mode Linux is to measure what other kernels do, so four things that are done
# differently there change: it runs on one CPU, so it leaves out the lock prefix; it has 100
# ticks a second; it disables interrupts for each this_cpu operation, where x86 has an
# instruction; and it multiplies 64-bit numbers in pieces, where x86-64 has an instruction.
edits='
s/^#define LOCK_PREFIX ""/#define LOCK_PREFIX "lock; "/ arch/x86/include/asm/alternative.h
/^config HZ$/,/default/s/default 100/default 250/ arch/um/Kconfig
/^#define this_cpu_generic_to_op/,/^}/s/raw_local_irq_\(save\|restore\)(__flags)/(void)__flags/ include/asm-generic/percpu.h
/^config UML_X86$/,/def_bool/s/def_bool y/&\n\tselect ARCH_SUPPORTS_INT128 if CC_HAS_INT128/ arch/x86/um/Kconfig
'
;;
kcsan.config)
# By the strictest rules the kernel has many races of its own, and one watched access of hers is
# one less of hwt's. So it does for all what its scheduler does for itself: of its own code
# only the barriers are told to KCSAN. Instrumented are modules, and what works on their
# memory in lib/.
edits='
/^\t\$(CFLAGS_KCSAN))$/s/\$(CFLAGS_KCSAN)/$(if $(KBUILD_EXTMOD)$(filter lib_llist lib_find_bit lib_bitmap lib_rbtree lib_xarray,$(obj)_$(basetarget)),&,-D__KCSAN_INSTRUMENT_BARRIERS__)/ scripts/Makefile.lib
'
;;
*)
edits=
;;
esac

# All that is asked for: of the base, then of the fragment itself.
asked()
{
	local base without
	base=$(sed -n 's/^# base: //p' "$fragment")
	without=$(sed -n 's/^# without: //p' "$fragment")
	[ -z "$base" ] ||
		grep -vE "^(# )?CONFIG_(${without// /|})( is not set|=.*)\$" "$here/$base"
	cat "$fragment"
}

# What the result depends on, and nothing else. (In the pipeline a tool that is missing would
# go unnoticed.)
gcc_version=$(gcc -dumpfullversion)
ld_version=$(ld -v)
clang_version=
[ -z "$llvm" ] || clang_version=$(clang"$llvm" -dumpversion)
key=$({ basename "$source"; echo "$gcc_version"; echo "$ld_version"; asked
	[ -z "$llvm" ] || echo "$clang_version"
	[ -z "$edits" ] || echo "$edits"; } | sha256sum | cut -c 1-12)
dir=$HWT_CACHE/kernels/$(basename "$source")-$(basename "$fragment" .config)${llvm:+-clang}-$key

kmake()
{
	make -C "$source" O="$dir.tmp/build" ARCH="$arch" ${llvm:+"LLVM=$llvm"} -j"$jobs" "$@"
}

# The modules' build refers to the source by its path: it stays.
edit_source()
{
	local command file edited
	edited=$source-$(basename "$fragment" .config)-$(sha256sum <<<"$edits" | cut -c 1-12)
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

# All that the source can be asked for, a symbol a line.
symbols()
{
	grep -rhoE --include='Kconfig*' '^[[:space:]]*(menu)?config[[:space:]]+[A-Za-z0-9_]+' "$source/" |
		sed 's/.*[[:space:]]//' | sort -u
}

# Every option asked for must be there; olddefconfig drops what it cannot
# have without a word. So must each that is to be off, or nobody notices a wrong name.
verify_config()
{
	local line symbol known bad=0
	known=$(symbols)
	while read -r line || [ -n "$line" ]; do
		if [[ $line =~ ^CONFIG_[A-Za-z0-9_]+=[^[:space:]] ]]; then
			grep -qxF -e "$line" "$1" && continue
			say "not in .config: $line"
			bad=1
		elif [[ $line =~ ^'# CONFIG_'([A-Za-z0-9_]+)' is not set'$ ]]; then
			symbol=${BASH_REMATCH[1]}
			if ! grep -qxF -e "$symbol" <<<"$known"; then
				say "no such option: CONFIG_$symbol"
				# What is the newest today may have lost it tomorrow.
				[ "$package" = newest ] || bad=1
			elif grep -q "^CONFIG_$symbol=" "$1"; then
				# That it is out of sight will do.
				say "not in .config: $line"
				bad=1
			fi
		elif [[ $line =~ ^# && ! $line =~ ^#[[:space:]]*CONFIG_ || -z $line ]]; then
			continue
		else
			say "neither an option nor a comment: $line"
			bad=1
		fi
	done < <(asked)
	[ $bad -eq 0 ] || die "the kernel would not be what $(basename "$fragment") asks for"
}

configure()
{
	kmake tinyconfig
	asked >"$dir.tmp/fragment"
	"$source/scripts/kconfig/merge_config.sh" -m -O "$dir.tmp/build" \
		"$dir.tmp/build/.config" "$dir.tmp/fragment"
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
	# Newer kernels (6.13) look for the place where it was built.
	sed -i "s|$1/build|$dir/build|" "$1/build/Makefile"
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
	[ -z "$edits" ] || edit_source
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
