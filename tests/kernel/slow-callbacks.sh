#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Slow callbacks in the log: each function is named once, if it takes longer than
# slow_callback_us says at that time; those that had to wait for one are named with it.
#
# hwt-test: timeout 120
# hwt-test: load slow_callback_us=1000000
set -eu
. "$HWT_DIR/lib.sh"

param=/sys/module/hwt/parameters/slow_callback_us

# What counts as slow, and what a quick one takes, are far apart.
slow=1200
quick=20

# call PARAMS...: and the module goes again
call()
{
	load test_stats what=one "$@" || fail "the callbacks are not called: $*"
	unload test_stats || fail "does not unload"
}

# said TIMES FUNCTION TEXT: so often since the mark
counts()
{
	log_since | grep hwt:
	[ "$(log_since | grep -c "hwt: slow: callback $2 \[test_stats\] took [0-9]* us")" -eq "$1" ]
}
said() { check "$3" counts "$1" "$2"; }

[ "$(cat $param)" = 1000000 ] || fail "slow_callback_us is $(cat $param)"

log_mark
call ms=$quick times=5
said 0 slow_expire "a quick one is not worth a word"
call ms=$slow times=2
said 1 slow_expire "a slow one is named once"
# It sleeps.
on_cpu=$(log_since | sed -n 's/.*callback slow_expire .* us, \([0-9]*\) us of that on a CPU.*/\1/p')
check "with its CPU time: $on_cpu us" [ "${on_cpu:-$((slow * 1000))}" -lt $((slow * 500)) ]
log_mark
call ms=$slow what=other
said 1 slow_other "and so is another one"
said 0 slow_expire "which is not taken for the first"
log_mark
call ms=$slow
said 1 slow_expire "loaded again, its functions are new ones"
log_mark
call ms=$slow what=cancelled
said 1 slow_cancelled "a slow ->cancelled is named, too"

echo 0 >$param
log_mark
call ms=$slow
said 0 slow_expire "0 switches it off"
echo 5000 >$param
[ "$(cat $param)" = 5000 ] || fail "slow_callback_us is $(cat $param)"
call ms=$quick
said 1 slow_expire "what counts as slow can be changed at any time"
check "what is no number is refused" sh -c "! echo many >$param"

echo 0 >$param
log_mark
call ms=$slow what=behind
behind='hwt: slow is behind: kt_expire \[test_stats\] had to wait for [0-9]* ms; its slowest callback, slow_expire \[test_stats\], took [0-9]* ms'
times=$(log_since | grep -c "$behind") || true
log_since | sed -n 's/^.*hwt:/# &/p'
check "who waits for longer than a turn is named, and for whom" [ "$times" -ge 1 ]
# Of thirty.
check "but not all of them: $times" [ "$times" -le 10 ]
plan
