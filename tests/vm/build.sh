#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# build.sh KERNEL [MAKE-ARGS...]: builds all modules for that kernel, and the guest's
# programs. External modules are built in their source directory, so each kernel
# has a tree of symlinks of its own: build/modules/KERNEL.
#
# HWT_TREE=name: another name for the tree.
# HWT_NO_TESTS=1: only what the demo needs (no kernel source package).
set -eu
. "$(dirname "$0")/../lib.sh"

kernel=$1
name=${HWT_TREE:-$kernel}
tree=$HWT_BUILD/modules/$name
kdir=$("$HWT_TOP/tests/vm/kernels/get.sh" --kdir "$kernel")
# Of another architecture, or by another compiler.
list=$("$HWT_TOP/tests/vm/kernels/get.sh" --make "$kernel")
words=()
[ -z "$list" ] || mapfile -t words <<<"$list"
arch=$("$HWT_TOP/tests/vm/kernels/get.sh" --arch "$kernel")
programs=$HWT_BUILD/user${arch:+-$arch}
kselftest=
[ -n "${HWT_NO_TESTS:-}" ] ||
	kselftest=$("$HWT_TOP/tests/vm/kernels/source.sh" linux-source-6.1)/tools/testing/selftests

link_sources()
{
	local dir source
	mkdir -p "$tree" "$programs"
	# Links whose source is gone, with what was built of them.
	find "$tree" -xtype l -print | while IFS= read -r source; do
		rm -f "$source" "${source%.c}".{o,ko,mod,mod.c,mod.o}
	done
	for dir in . samples tests/kernel tests/kernel/lib bench tests/torture; do
		mkdir -p "$tree/$dir"
		for source in "$HWT_TOP/$dir"/Kbuild "$HWT_TOP/$dir"/*.[ch]; do
			[ -e "$source" ] || continue
			# Test modules need the kernel's source; the demo does without.
			[[ -n $kselftest || $source != */tests/kernel/*.c ]] || continue
			# A module built before in the checkout leaves *.mod.c there.
			[[ $source != *.mod.c ]] || continue
			ln -sfn "$source" "$tree/$dir/$(basename "$source")"
		done
	done
}

make_modules()
{
	make -C "$kdir" M="$tree" HWT_TESTS=1 HWT_KSELFTEST="$kselftest" \
		KCFLAGS=-Werror "${words[@]}" -j"${HWT_JOBS:-$(nproc)}" "$@" modules
}

make_programs()
{
	make -C "$HWT_TOP/tools" OUT="$HWT_BUILD/user" STATIC=1 CFLAGS='-O2 -Werror' || return
	if [ -n "$kselftest" ]; then
		make -C "$HWT_TOP/tests/fuzz" OUT="$HWT_BUILD/user" || return
		make -C "$HWT_TOP/tests/user" OUT="$HWT_BUILD/user" HWT_KSELFTEST="$kselftest" \
			-j"${HWT_JOBS:-$(nproc)}"
	else
		make -C "$HWT_TOP/tests/user" OUT="$HWT_BUILD/user" samples
	fi
}

# The tests of another architecture that need no library.
make_foreign_programs()
{
	local cc="gcc -m32"
	# These tests need the kernel's source, as the modules' do.
	[ -n "$kselftest" ] || return 0
	[ "$arch" = i386 ] || cc=$("$HWT_TOP/tests/vm/kernels/cross.sh")gcc
	# shellcheck disable=SC2046 # words
	make -C "$HWT_TOP/tests/user" CC="$cc" OUT="$programs" HWT_KSELFTEST="$kselftest" \
		-j"${HWT_JOBS:-$(nproc)}" \
		$(cd "$HWT_TOP/tests/user" && grep -LE 'hwt-test:[[:space:]]*libs' -- *.c |
			sed "s|\(.*\)\.c|$programs/\1|")
}

link_sources
shift
logged "$HWT_BUILD/modules/$name.log" "building the modules for kernel $kernel" make_modules "$@"
# One at a time: static.sh builds them, too, beside the guests.
exec 9>"$programs.lock"
flock 9
if [ -n "$arch" ]; then
	logged "$programs.log" "building the programs for $arch" make_foreign_programs
else
	logged "$HWT_BUILD/user.log" "building the programs for the guest" make_programs
fi
