#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Messages about slow callbacks: each function is logged once, if it takes longer than the present
# slow_callback_us. Callbacks that had to wait for it are logged with its name, and others without.
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
said 1 slow_expire "a slow callback is logged once"
# The callback mostly sleeps.
on_cpu=$(log_since | sed -n 's/.*callback slow_expire .* us, \([0-9]*\) us of that on a CPU.*/\1/p')
check "with its CPU time: $on_cpu us" [ "${on_cpu:-$((slow * 1000))}" -lt $((slow * 500)) ]
log_mark
call ms=$slow what=other
said 1 slow_other "another slow callback is logged"
said 0 slow_expire "the first one is not logged again"
log_mark
call ms=$slow
said 1 slow_expire "after a reload, its function is logged again"
log_mark
call ms=$slow what=cancelled
said 1 slow_cancelled "a slow ->cancelled is logged"
log_mark
call ms=$slow what=handles
said 1 slow_handle "the slow function of a handle is logged"
said 1 other_handle "that of another handle is logged, too"

echo 0 >$param
log_mark
call ms=$slow
said 0 slow_expire "slow_callback_us=0 switches the messages off"
echo 5000 >$param
[ "$(cat $param)" = 5000 ] || fail "slow_callback_us is $(cat $param)"
call ms=$quick
said 1 slow_expire "a new slow_callback_us is effective at once"
check "a value that is not a number is refused" sh -c "! echo many >$param"

echo 0 >$param
log_mark
call ms=$slow what=behind
behind='hwt: slow is behind: kt_expire \[test_stats\] had to wait for [0-9]* ms; callback slow_expire \[test_stats\] took [0-9]* ms'
times=$(log_since | grep -c "$behind") || true
log_since | sed -n 's/^.*hwt:/# &/p'
check "a callback that is behind is logged with the slow one" [ "$times" -ge 1 ]
# There are thirty of them.
check "not all of them are logged: $times" [ "$times" -le 10 ]

# Without slow callbacks: another thread takes the CPU for half a second, if the kernel counts that.
without_cpu()
{
	log_mark
	call what=nocpu
	starved='hwt: starved is behind: kt_expire \[test_stats\] had to wait for [0-9]* ms; its thread had no CPU for'
	off_cpu=$(log_since | sed -n "s/.*$starved \([0-9]*\) of the last [0-9]* ms\$/\1/p")
	log_since | sed -n 's/^.*hwt:/# &/p'
	check "a thread without a CPU is logged, and no callback: $off_cpu ms" [ "${off_cpu:-0}" -ge 200 ]
}
[ ! -e /proc/self/schedstat ] || without_cpu
plan
