#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# make run: a guest in which tests/vm/demo.sh shows the module at its job.
# Exits 0 only if the demo did what it should.
set -eu
. "$(dirname "$0")/lib.sh"

"$HWT_TOP/tests/setup.sh" run
out=$HWT_BUILD/guest/demo
mkdir -p "$out" || die "$HWT_BUILD is not ours: remove it, or set HWT_BUILD"
dir=$("$HWT_TOP/tests/vm/kernels/get.sh" stock)
# Without the test modules: those need the kernel's source.
export HWT_NO_TESTS=1 HWT_TREE=demo
"$HWT_TOP/tests/vm/build.sh" stock
: >"$out/list"
"$HWT_TOP/tests/vm/pack.sh" stock "$out/list" "$out/initramfs.gz"
say "booting a guest with Linux $(cat "$dir/release"); its logs are in $out"
exec python3 "$HWT_TOP/tests/vm/run_guest.py" --mode demo --kernel stock \
	--vmlinuz "$dir/vmlinuz" --initrd "$out/initramfs.gz" --out "$out" --silence 120 --limit 600
