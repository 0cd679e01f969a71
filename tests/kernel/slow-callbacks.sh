#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Messages about slow callbacks: a call is logged if it takes longer than the present
# slow_callback_us, but at most eight of a wheel in ten minutes.
#
# hwt-test: timeout 120
# hwt-test: load slow_callback_us=1000000
set -eu
. "$HWT_DIR/lib.sh"

param=/sys/module/hwt/parameters/slow_callback_us

# The limit is far from the durations of both slow and quick callbacks.
slow=1200
quick=20

# call PARAMS...: load the module, which calls the callbacks, and unload it
call()
{
	load test_stats what=one "$@" || fail "the callbacks are not called: $*"
	unload test_stats || fail "does not unload"
}

# said TIMES FUNCTION TEXT: the function was logged so many times since the mark
counts()
{
	log_since | grep hwt:
	[ "$(log_since | grep -c "hwt: slow: callback $2 \[test_stats\] took [0-9]* us")" -eq "$1" ]
}
said() { check "$3" counts "$1" "$2"; }

[ "$(cat $param)" = 1000000 ] || fail "slow_callback_us is $(cat $param)"

log_mark
call ms=$quick times=5
said 0 slow_expire "a quick callback is not logged"
call ms=$slow times=2
said 2 slow_expire "each call of a slow callback is logged"
# The callback mostly sleeps.
on_cpu=$(log_since | sed -n 's/.*callback slow_expire .* us, \([0-9]*\) us of that on a CPU.*/\1/p' | head -n 1)
check "with its CPU time: $on_cpu us" [ "${on_cpu:-$((slow * 1000))}" -lt $((slow * 500)) ]
log_mark
call ms=$slow what=other
said 1 slow_other "another slow callback is logged"
log_mark
call ms=$slow what=cancelled
said 1 slow_cancelled "a slow ->cancelled is logged"

echo 0 >$param
log_mark
call ms=$slow
said 0 slow_expire "slow_callback_us=0 switches the messages off"
echo 5000 >$param
[ "$(cat $param)" = 5000 ] || fail "slow_callback_us is $(cat $param)"
call ms=$quick times=12
said 8 slow_expire "a new slow_callback_us is effective at once, and not all calls are logged"
check "a value that is not a number is refused" sh -c "! echo many >$param"
plan
