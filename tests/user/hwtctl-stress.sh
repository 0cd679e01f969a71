#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# hwtctl stress: its figures add up, and it notices errors.
#
# hwt-test: check stock
# hwt-test: timeout 150
# hwt-test: load max_timeouts=500 max_user_timeouts=1000000
set -eu
. "$HWT_DIR/lib.sh"
# shellcheck source=lib/hwtctl.inc
. "$HWT_DIR/scripts/hwtctl.inc"

seconds=3
[ "$HWT_QUICK" = 1 ] && seconds=1

# stress OPTION...: run it, with output in /tmp/said and messages in /tmp/messages.
stress()
{
	rc=0
	"$ctl" stress "$@" >/tmp/said 2>/tmp/messages || rc=$?
	return $rc
}
# value KEY: print a value of the JSON output.
value() { sed -n "s/.*\"$1\":\([a-z0-9.]*\).*/\1/p" /tmp/said; }
kept() { [ "$(value kept)" = true ] && [ "$(value errors)" = 0 ]; }
adds_up() { [ "$(value scheduled)" -eq $(($(value fired) + $(value cancelled))) ]; }

check "success" stress --seconds $seconds --timeouts 400 --json
note "$(cat /tmp/said)"
check "success in the output" kept
check "each timeout has fired or was cancelled" adds_up
check "no count is 0" sh -c "
	! grep -qE '\"(schedule_operations|modify_operations|cancel_operations|read_operations|fired|cancelled)\":0' /tmp/said"
check "no call was refused" [ "$(value refused)" = 0 ]
check "a line of progress each second" sh -c "
	grep -q '^1 of $seconds s, [0-9]* operations/s, 0 refused, 0 wrong\$' /tmp/messages"
check "no bar without a terminal" sh -c "! grep -q '[[#]' /tmp/messages"

check "text" stress --quiet --seconds 1 --threads 4 --contexts 7 --timeouts 10 --seed 42
note "$(cat /tmp/said)"
check "the options are printed" sh -c "head -n 1 /tmp/said |
	grep -qx '[0-9.]* s, 4 threads, 7 contexts of up to 10 timeouts, seed 42'"
expect "the verdict" 0 "early 0, strange 0, lost 0, errors 0, miscounted 0: every promise kept" \
	tail -n 1 /tmp/said
check "quiet" [ ! -s /tmp/messages ]

# kept_by NAME OPTION...: expect success with these options.
kept_by()
{
	name=$1
	shift
	check "$name" stress --quiet --json --seconds 1 "$@"
	check "$name: every promise is kept" kept
	check "$name: the figures add up" adds_up
}
kept_by "one thread, one context, one timeout" --threads 1 --contexts 1 --timeouts 1
kept_by "many contexts" --contexts 1500 --timeouts 5
kept_by "only schedule" --mix 1:0:0:0 --timeouts 1000
kept_by "more timeouts than the limit" --contexts 1 --timeouts 20000 --mix 100:0:1:0
check "calls beyond the limit are refused" [ "$(value refused)" -gt 0 ]

# An interrupt ends stress early, with a complete report.
rc=0
timeout -s INT 2 "$ctl" stress --quiet --json --seconds 100000 --timeouts 1000 >/tmp/said ||
	rc=$?
check "ended by an interrupt" [ $rc = 0 ]
check "the report is complete" kept

# Another process adds timeouts to a context: stress must notice.
{
	echo '{"hwt_save":1,"clock":"monotonic","private":false,"tick_ns":1000000,"ticks_per_wheel":8192,"levels":3,"count":2}'
	echo '{"data":3,"mode":"one-shot","deadline_ns":0,"remaining_ns":0,"period_ns":0}'
	echo '{"data":4294967295,"mode":"one-shot","deadline_ns":0,"remaining_ns":0,"period_ns":0}'
} >/tmp/strangers
"$ctl" stress --quiet --json --seconds 4 --contexts 1 --timeouts 1000 \
	>/tmp/said 2>/tmp/messages &
stress=$!
restored() { "$ctl" restore --pid $stress /tmp/strangers; }
wait_for 20 restored
rc=0
wait $stress || rc=$?
note "$(cat /tmp/said)"
check "strangers: a failure" [ $rc = 1 ]
check "strangers are counted" [ "$(value strange)" = 2 ]
check "strangers make the statistics differ" [ "$(value miscounted)" = 1 ]
check "the promise is reported as broken" [ "$(value kept)" = false ]
check "strangers are named" grep -qx "hwtctl: stress: an event of an unknown timeout" /tmp/messages
check "strangers that look like its own timeouts, too" \
	grep -qx "hwtctl: stress: an event of a timeout that has ended" /tmp/messages
plan
