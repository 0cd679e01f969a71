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

count=100000
case $HWT_SLOW$HWT_QUICK in
*1*) count=10000 ;;
esac

# The name of the way, and its option.
compare()
{
	way=$1
	shift
	if "$HWT_BIN/libhwt_ev" -n $count "$@" >/tmp/libev &&
	   grep -q "^$count timeouts; libhwt by $way\$" /tmp/libev &&
	   [ "$(grep -cE '^(arm|push back|cancel|fire) \(ns\) +[0-9]+ +[0-9]+$' /tmp/libev)" = 4 ]; then
		ok "libev and libhwt by $way"
	else
		not_ok "libev and libhwt by $way"
	fi
	sed 's/^/# /' /tmp/libev
}

compare rings
compare batches --batches
count=$((count / 10))
compare "single calls" --calls

if "$HWT_BIN/libhwt_first" | grep -q 'an event for 42'; then
	ok "the first program"
else
	not_ok "the first program"
fi
rc=0
"$HWT_BIN/libhwt_ev" --count=1 2>/dev/null || rc=$?
if [ $rc = 2 ]; then
	ok "a count that makes no sense is refused"
else
	not_ok "a count that makes no sense is refused (exit status $rc)"
fi
plan
