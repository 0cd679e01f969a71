#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# soak.sh HOURS [PARAMETER=VALUE...]: the torture for so long, in a guest. Shows its summaries as
# they come, and a verdict in the end. HOURS may be a fraction. The parameters are those of
# hwt_torture.ko; a seed that failed is given again by seed=N.
#
# Environment: KERNEL=stock, or another of tests/vm/kernels/table, uml among them.
set -eu
. "$(dirname "$0")/../lib.sh"

[[ ${1:-} =~ ^[0-9]*\.?[0-9]+$ ]] || die "soak.sh HOURS [PARAMETER=VALUE...]"
seconds=$(awk -v hours="$1" 'BEGIN { print int(hours * 3600) }')
shift
[ "$seconds" -gt 0 ] || die "that is no time"
kernel=${KERNEL:-stock}
here=$HWT_TOP/tests/torture
guest=$HWT_TOP/tests/vm
out=$HWT_BUILD/soak/$kernel
# Until it has begun and ended; waiting for what does not come takes minutes.
limit=$((seconds + 1800))
parameters="seconds=$seconds report=30 $*"

mkdir -p "$out"
dir=$("$HWT_TOP/tests/vm/kernels/get.sh" "$kernel")
arch=$("$HWT_TOP/tests/vm/kernels/get.sh" --arch "$kernel")
slow=$("$HWT_TOP/tests/vm/kernels/get.sh" --slow "$kernel")
HWT_NO_TESTS=1 HWT_TREE=soak-$kernel "$guest/build.sh" "$kernel"
echo "torture|script|$limit|0|||torture.sh|$parameters" >"$out/list"

pack()
{
	HWT_TREE=soak-$kernel "$guest/pack.sh" "$kernel" "$out/list" "$out/initramfs.gz"
}

if [ "$kernel" = uml ]; then
	rm -rf "$out/overlay"
	mkdir -p "$out/overlay"
	cp "$here/init" "$out/overlay/init"
	HWT_OVERLAY=$out/overlay pack
	exec python3 "$here/soak.py" --uml "$dir/linux" --initrd "$out/initramfs.gz" --out "$out" \
		--limit "$limit" -- "$parameters"
fi
pack
exec python3 "$here/soak.py" --out "$out" --limit "$limit" -- \
	python3 "$guest/run_guest.py" --kernel "$kernel" --arch "${arch:-x86_64}" \
	--vmlinuz "$dir/vmlinuz" --initrd "$out/initramfs.gz" --out "$out" --planned 1 --slow "$slow" \
	--results "$out/results" --silence 900 --limit "$limit"
