#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# bench.sh [--quick] [--only PART,...]: sets up what the benchmarks need, builds, measures
# (bench.py), and makes tables and plots of it (report.py) in build/bench, or in its directory
# "quick".
set -eu
. "$(dirname "$0")/../tests/lib.sh"
bench=$HWT_TOP/bench
out=$HWT_BUILD/bench
results=$out
[[ " $* " != *" --quick "* ]] || results=$out/quick
mkdir -p "$results"

what="bench"
[[ "$*" != *java* ]] || what="bench-java"
"$HWT_TOP/tests/setup.sh" "$what"
uml=$("$HWT_TOP/tests/vm/kernels/get.sh" uml)
stock=$("$HWT_TOP/tests/vm/kernels/get.sh" stock)
# One that has io_uring's commands for devices, for the part "user". It cannot be had everywhere.
newer=
if [[ "$*" != *--only* || "$*" = *user* ]]; then
	newer=$("$HWT_TOP/tests/vm/kernels/get.sh" stock612) ||
		say "without kernel 6.12, and so without commands of io_uring"
fi

# pack KERNEL: the modules and the programs, with an init that measures.
pack()
{
	HWT_NO_TESTS=1 HWT_TREE=bench-$1 "$HWT_TOP/tests/vm/build.sh" "$1"
	rm -rf "$out/overlay"
	mkdir -p "$out/overlay/hwt/bin"
	cp "$bench/init" "$out/overlay/init"
	cp "$out/user/user_bench" "$out/overlay/hwt/bin/"
	: >"$out/list"
	HWT_TREE=bench-$1 HWT_OVERLAY=$out/overlay \
		"$HWT_TOP/tests/vm/pack.sh" "$1" "$out/list" "$out/$1.gz"
}

logged "$out/user.log" "building the user-space benchmark" \
	make -C "$bench/user" OUT="$out/user" -j"$(nproc)"
logged "$out/hot.log" "building the hot path in user space" \
	make -C "$bench/hot" programs -j"$(nproc)"
pack uml
pack stock
[ -z "$newer" ] || pack stock612
rc=0
python3 "$bench/bench.py" --uml "$uml" --stock "$stock" ${newer:+--newer "$newer"} \
	--out "$results" "$@" || rc=$?
python3 "$bench/report.py" "$results"
exit $rc
