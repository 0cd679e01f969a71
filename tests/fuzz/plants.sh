#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# plants.sh [MINUTES [NAME...]]: puts each fault of plants/ into a copy, and says after how long
# the fuzzer has found it, or, of those that say "(poison)", whether tests/user/poison.c has.
# Fails if one was not found. The seed is SEED, so that two runs can be compared.
set -eu
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../packages.sh"
. "$(dirname "$0")/../plants.sh"

minutes=${1:-10}
[ $# -eq 0 ] || shift
plants=$HWT_TOP/tests/fuzz/plants
top=$HWT_BUILD/plants

# How far it was, from its own log.
how_far()
{
	local log=$top/build/guest/fuzz/tests.log
	grep -aq '^fuzz: the corpus has' "$log" || echo "in the corpus"
	echo "$(grep -ac '^run ' "$log") programs"
	grep -a '^fuzz: *[0-9]*:' "$log" | tail -n 1 | sed 's/^fuzz: *\([0-9:]*\) .*/at \1 or soon after/'
}

# Of a guest that hung, and was sent an NMI: where in hwt.ko one of its processors was.
hung_in()
{
	sed -nE '/NMI received for unknown reason/,$s/^\[[ 0-9.]+\] +(RIP: 0010:)?(hwt_[^ ]+) \[hwt\].*/\2/p' \
		"$top/build/guest/fuzz/kernel.log" | head -n 1
}

# try NAME: is it found?
try()
{
	local name=$1 log=$top/$1.log why
	if grep -q '^(poison)' "$plants/$name.patch"; then
		if HWT_BUILD=$top/build make -C "$top/tree" check-guest KERNEL=debug TEST=poison \
			>"$log" 2>&1; then
			return 1
		fi
		grep -a -m 1 '^ *not ok debug/poison' "$log"
		return
	fi
	# From nothing but the corpus.
	rm -f "$top/build/fuzz.kept"
	if HWT_BUILD=$top/build MINUTES=$minutes SEED=${SEED:-1} "$top/tree/tests/fuzz/run.sh" \
		>"$log" 2>&1; then
		return 1
	fi
	# Or it could not even be built.
	grep -qa '^fuzz: seed' "$log" || return 1
	# The kernel's own word for it, or the fuzzer's. Of a guest that hung the host's NMI is the
	# first in the kernel log; that may be the machine's fault, if hwt.ko was not executing.
	why=$(grep -a -m 1 -oE 'kernel log: .*|fuzz: it must not.*' "$log") || true
	if [[ $why == *'NMI received for unknown reason'* ]]; then
		why=$(hung_in)
		[ -z "$why" ] || why="hangs in $why"
	fi
	[ -n "$why" ] || why=$(grep -a -m 1 -o 'FAILED: .*' "$log") || return 1
	how_far
	echo "$why"
}

plants_try "$plants" "$top" "$@"
