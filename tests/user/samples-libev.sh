#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# samples/libhwt_ev.c: a libev program's timers by libev and by libhwt, in each of the ways
# libhwt has. The program itself finds out whether each timeout has fired once and not early.
# Its figures are of an emulated machine here: shown, not judged.
#
# hwt-test: check stock
# hwt-test: timeout 240
set -eu
. "$HWT_DIR/lib.sh"

count=10000

# compared WAY [OPTION]: it measures each operation, and checks each timeout.
compared()
{
	way=$1
	shift
	"$HWT_BIN/libhwt_ev" -n $count "$@" >/tmp/libev &&
		grep -q "^$count timeouts; libhwt by $way\$" /tmp/libev &&
		[ "$(grep -cE '^(arm|push back|cancel|fire) \(ns\) +[0-9]+ +[0-9]+$' /tmp/libev)" = 4 ]
}

compare()
{
	check "libev and libhwt by $1" compared "$@"
	sed 's/^/# /' /tmp/libev
}

compare rings
compare batches --batches
count=$((count / 10))
compare "single calls" --calls

check "the first program" sh -c "'$HWT_BIN/libhwt_first' | grep -q 'an event for 42'"
rc=0
"$HWT_BIN/libhwt_ev" --count=1 2>/dev/null || rc=$?
check "a count that makes no sense is refused" [ $rc = 2 ]
plan
