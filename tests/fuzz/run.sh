#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# make fuzz [MINUTES=n] [SEED=n] [KERNEL=name]: boots a guest in which the fuzzer runs for so
# long, and shows how it gets on. It begins with what earlier runs have found worth keeping.
# make fuzz PROGRAM='...' [AGAIN=n]: only that program, so many times.
set -eu -o pipefail
. "$(dirname "$0")/../lib.sh"

kernel=${KERNEL:-debug}
seconds=$((${MINUTES:-10} * 60))
out=$HWT_BUILD/guest/fuzz
overlay=$out/overlay
kept=$HWT_BUILD/fuzz.kept

arguments=(--seconds "$seconds")
[ -z "${SEED:-}" ] || arguments+=(--seed "$SEED")
[ ! -s "$kept" ] || arguments+=(--corpus /hwt/fuzz.kept)
if [ -n "${PROGRAM:-}" ]; then
	arguments=(--again "${AGAIN:-100}" "$PROGRAM")
fi

# programs WORD: those in the log that begin with it.
programs() { grep -a "^$1 " "$out/tests.log" | sed "s/^$1 //; s/\r\$//"; }

"$HWT_TOP/tests/setup.sh" guest
arch=$("$HWT_TOP/tests/vm/kernels/get.sh" --arch "$kernel")
[ -z "$arch" ] || die "kernel $kernel is for $arch, the fuzzer is built for this machine only"
dir=$("$HWT_TOP/tests/vm/kernels/get.sh" "$kernel")
# Without the test modules, which it needs not.
export HWT_NO_TESTS=1 HWT_TREE=fuzz
"$HWT_TOP/tests/vm/build.sh" "$kernel"
make -s --no-print-directory -C "$HWT_TOP/tests/fuzz" OUT="$HWT_BUILD/user"

rm -rf "$overlay"
mkdir -p "$overlay/hwt"
cp "$HWT_TOP/tests/fuzz/guest.sh" "$overlay/hwt/demo.sh"
[ ! -s "$kept" ] || cp "$kept" "$overlay/hwt/fuzz.kept"
printf '%s\n' "${arguments[@]}" >"$overlay/hwt/fuzz.arguments"
: >"$out/list"
HWT_OVERLAY=$overlay "$HWT_TOP/tests/vm/pack.sh" "$kernel" "$out/list" "$out/initramfs.gz"

say "booting a guest with Linux $(cat "$dir/release"); its logs are in $out"
rc=0
python3 "$HWT_TOP/tests/vm/run_guest.py" --mode demo --kernel "$kernel" \
	--vmlinuz "$dir/vmlinuz" --initrd "$out/initramfs.gz" --out "$out" \
	--silence 150 --limit $((seconds + 1800)) | sed -u '/^\(run\|corpus\) /d' || rc=$?

if [ -z "${PROGRAM:-}" ]; then
	if programs corpus >"$out/corpus"; then
		cp "$out/corpus" "$kept"
		say "what reaches all that was reached: $(grep -c '' "$kept") programs in $kept"
	else
		# It did not come to its end: what has been new so far.
		programs new >>"$kept" || true
	fi
fi
if [ $rc -ne 0 ]; then
	say "the last program, to be given to make fuzz as PROGRAM='...':"
	programs run | tail -n 1 >&2 || true
fi
exit $rc
