#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# guest.sh KERNEL: builds for a kernel of the table, packs, boots, judges.
# Environment: QUICK=1, TEST=pattern, HWT_RESULTS=file, HWT_APPEND=words for the kernel's
# command line (NAME=value is in the environment of the tests).
set -eu
. "$(dirname "$0")/../lib.sh"

kernel=$1
quick=${QUICK:-0}
[ -n "$quick" ] || quick=0
out=$HWT_BUILD/guest/$kernel
guest=$HWT_TOP/tests/vm

results=${HWT_RESULTS:-$HWT_BUILD/results/guest-$kernel}
rm -f "$results"
mkdir -p "$out"
dir=$("$HWT_TOP/tests/vm/kernels/get.sh" "$kernel")
"$guest/build.sh" "$kernel"
"$guest/list.sh" "$kernel" "$quick" "${TEST:-*}" >"$out/list"
planned=$(grep -c '' "$out/list") || die "no test matches '${TEST:-*}'"
"$guest/pack.sh" "$kernel" "$out/list" "$out/initramfs.gz"

# Some need a Debian of their own: one at most in a guest.
disk=$(cut -d '|' -f 6 "$out/list" | sort -u | grep . || true)
[ -z "$disk" ] || disk=$("$HWT_TOP/tests/vm/debian/disk.sh" "$disk")

# Output must come while a test runs or when it ends: allow the longest one.
longest=$(cut -d '|' -f 3 "$out/list" | sort -n | tail -n 1)
arch=$("$HWT_TOP/tests/vm/kernels/get.sh" --arch "$kernel")
slow=$("$HWT_TOP/tests/vm/kernels/get.sh" --slow "$kernel")
exec python3 "$guest/run_guest.py" --kernel "$kernel" --arch "${arch:-x86_64}" \
	--vmlinuz "$dir/vmlinuz" --initrd "$out/initramfs.gz" --out "$out" --planned "$planned" \
	--results "$results" --quick "$quick" --slow "$slow" \
	--disk "$disk" --append "${HWT_APPEND:-}" --silence $((longest + 90))
