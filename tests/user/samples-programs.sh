#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# The sample programs that use /dev/hwt. tests/unit/libhwt.py has those with timers in the process.
#
# hwt-test: check stock
# hwt-test: timeout 300
set -eu
. "$HWT_DIR/lib.sh"

for part in info delays cancel push-back periodic many; do
	check "tour $part" "$HWT_BIN/tour" $part
done

check "the first program" sh -c "'$HWT_BIN/libhwt_first' | grep -q 'an event for 42'"

# refused COMMAND...: the command fails with 2, and a message in /tmp/messages.
refused()
{
	program=$1 rc=0
	shift
	"$HWT_BIN/$program" "$@" >/tmp/messages 2>&1 || rc=$?
	[ $rc = 2 ] && [ -s /tmp/messages ]
}
check "tour: an unknown part" refused tour nonsense

lines() { [ "$(wc -l </tmp/monthly)" = "$1" ]; }

# monthly: let a month begin, set the clock beyond the next one, and back to the end of a month.
monthly()
{
	date -s "2030-12-31 23:59:58"
	"$HWT_BIN/libhwt_monthly" 3 >/tmp/monthly &
	wait_for 20 lines 1 && date -s "2031-02-01 00:00:05" &&
		wait_for 20 lines 2 && date -s "2031-01-31 23:59:58" && wait $! && lines 3
}
now=$(date +%s)
check "months" monthly
date -s "@$now" >/dev/null
plan
