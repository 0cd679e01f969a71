#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# run.sh [PARAMETER=VALUE...]: a year in minutes. Builds hwt and hwt_year for User Mode Linux,
# packs them, has year.py run and judge them. The parameters are those of hwt_year.ko.
# Environment: HWT_RESULTS=file.
set -eu
. "$(dirname "$0")/../../lib.sh"

here=$HWT_TOP/tests/vm/year
out=$HWT_BUILD/year
tree=$HWT_BUILD/modules/year
results=${HWT_RESULTS:-$HWT_BUILD/results/year}
rm -f "$results"
mkdir -p "$out" "$tree/tests/vm/year" "$tree/tests/kernel/lib"
uml=$("$HWT_TOP/tests/vm/kernels/get.sh" uml)
source=$("$HWT_TOP/tests/vm/kernels/source.sh" linux-source-6.1)
list=$("$HWT_TOP/tests/vm/kernels/get.sh" --make uml)
mapfile -t words <<<"$list"

# An external module is built where its source is: links, as build.sh makes them.
build_year()
{
	ln -sfn "$here"/* "$tree/tests/vm/year/"
	ln -sfn "$HWT_TOP"/tests/kernel/lib/*.h "$tree/tests/kernel/lib/"
	make -C "$uml/build" M="$tree/tests/vm/year" "${words[@]}" KCFLAGS=-Werror W=1 \
		KBUILD_EXTRA_SYMBOLS="$tree/Module.symvers" \
		HWT_KSELFTEST="$source/tools/testing/selftests" modules
}

# Nothing but hwt.ko.
HWT_NO_TESTS=1 HWT_TREE=year "$HWT_TOP/tests/vm/build.sh" uml HWT_TESTS=
logged "$out/build.log" "building hwt_year" build_year

rm -rf "$out/overlay"
mkdir -p "$out/overlay/hwt/modules"
cp "$here/init" "$out/overlay/init"
cp "$tree/tests/vm/year/hwt_year.ko" "$out/overlay/hwt/modules/"
: >"$out/list"
HWT_TREE=year HWT_OVERLAY=$out/overlay "$HWT_TOP/tests/vm/pack.sh" uml "$out/list" "$out/initramfs.gz"

exec python3 "$here/year.py" --linux "$uml/linux" --initrd "$out/initramfs.gz" --out "$out" \
	--results "$results" -- "$@"
