#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# plants.sh [SECONDS [NAME...]]: puts each fault of plants/ into a copy, and says what the torture
# has found. A line "(PARAMETER=VALUE ...)" in a patch is for the torture. Fails if one was not
# found.
#
# Environment: KERNEL=uml, or another of tests/vm/kernels/table; SEED, so that two runs can be compared.
set -eu
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../packages.sh"
. "$(dirname "$0")/../plants.sh"

seconds=${1:-40}
[ $# -eq 0 ] || shift
kernel=${KERNEL:-uml}
plants=$HWT_TOP/tests/torture/plants
top=$HWT_BUILD/torture-plants

# try NAME: is it found?
try()
{
	local log=$top/$1.log guest=$top/build/soak/$kernel hours words
	hours=$(awk -v seconds="$seconds" 'BEGIN { print (seconds + 0.5) / 3600 }')
	read -ra words < <(sed -n 's/^(\(.*\))$/\1/p' "$plants/$1.patch"; echo)
	rm -rf "$guest"
	if HWT_BUILD=$top/build KERNEL=$kernel "$top/tree/tests/torture/soak.sh" "$hours" \
		"seed=${SEED:-1}" "${words[@]}" >"$log" 2>&1; then
		return 1
	fi
	# Or it could not even be built.
	cat "$guest"/*.log >>"$log" 2>/dev/null || return 1
	grep -aoE 'FAILED \([^)]*\)' "$log" | sort | uniq -c | sort -rn |
		sed 's/^ *\([0-9]*\) FAILED (\(.*\))/\2/' | head -n 3
	grep -aoE -m 1 '(BUG|KASAN): .*|general protection fault.*' "$log" || true
	grep -aq 'hwt_torture: FAILED\|BUG: \|KASAN: \|general protection' "$log"
}

plants_try "$plants" "$top" "$@"
